//! The limits that the system sets for the process.

/// Lets the process open as many files as its hard limit allows; the usual soft limit is for programs that wait with
/// `select`.
///
/// # Errors
/// If the kernel refuses it.
pub fn raise_open_files() -> std::io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    Ok(setrlimit(Resource::Nofile, raised)?)
}
