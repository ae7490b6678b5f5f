//! How much memory there is.

use std::path::Path;

/// Bytes that this process can use without swapping: of the machine, or of its control group if that has less.
/// `None` if the system does not tell.
pub(crate) fn available() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok()?;
    let machine = of_machine(&machine)?;
    let group = of_group(Path::new("/sys/fs/cgroup")).unwrap_or(u64::MAX);
    Some(machine.min(group))
}

/// From the text of `/proc/meminfo`.
fn of_machine(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Of a control group with a limit, as a container sees its own.
fn of_group(folder: &Path) -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        let text = std::fs::read_to_string(folder.join(name)).ok()?;
        text.trim().parse().ok()
    };
    // "max" is no number.
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_of_the_machine_and_its_group_counts() {
        let text = "MemTotal:       24000 kB\nMemAvailable:   12000 kB\n";
        assert_eq!(of_machine(text), Some(12_000 << 10));
        assert_eq!(of_machine("MemTotal: 1 kB"), None);
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        assert_eq!(of_group(folder.path()), None);
        write("memory.current", "300\n");
        write("memory.max", "max\n");
        assert_eq!(of_group(folder.path()), None);
        write("memory.max", "1000\n");
        assert_eq!(of_group(folder.path()), Some(700));
        assert!(available().is_some_and(|bytes| bytes > 0));
    }
}
