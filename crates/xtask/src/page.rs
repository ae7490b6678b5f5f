//! Pages of the documentation that are printed from a table in the code.

/// Writes a page; with `check`, fails if it is out of date. `task` is the task that prints it.
pub(crate) fn write(path: &str, text: &str, task: &str, check: bool) -> Result<(), String> {
    if check {
        return match std::fs::read_to_string(path) {
            Ok(current) if current == text => Ok(()),
            _ => Err(format!("{path} is stale: run `cargo xtask {task}`")),
        };
    }
    std::fs::write(path, text).map_err(|error| format!("{path}: {error}"))
}
