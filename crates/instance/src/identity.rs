//! The names of server, machine and login for headers, history and functions.

use std::path::Path;

use windlass_pipeline::Requester;

use crate::Value;

/// The first word of `@@VERSION`.
pub const PRODUCT: &str = "Windlass";

/// Names of server, machine and login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The server: the machine name, then a backslash and the instance's directory name.
    pub server: String,
    pub machine: String,
    pub user: String,
    /// `None` for the default instance.
    pub instance: Option<String>,
}

/// The name that `/etc/passwd` has for a user; else the number.
pub(crate) fn name_of_user(number: u32) -> String {
    let number = number.to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1) == Some(number.as_str())).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| format!("uid{number}"))
}

impl Identity {
    /// Reads the names from the system. `instance` is the name of the instance's directory.
    pub fn of_process(instance: Option<String>) -> Self {
        let machine = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        let user = std::env::var("USER")
            .or_else(|_| std::env::var("LOGNAME"))
            .ok()
            .filter(|user| !user.is_empty())
            .unwrap_or_else(|| name_of_user(rustix::process::getuid().as_raw()));
        let identity = Self {
            server: String::new(),
            machine: String::new(),
            user,
            instance,
        };
        identity.on_machine(machine)
    }

    /// That of the instance in a folder, which exists.
    pub fn of_instance(folder: Option<&Path>) -> Self {
        let name = folder.and_then(Path::file_name);
        Self::of_process(name.map(|name| name.to_string_lossy().into_owned()))
    }

    /// The same on a machine by another name.
    #[must_use]
    pub fn on_machine(self, machine: String) -> Self {
        let server = match &self.instance {
            Some(name) => format!("{machine}\\{name}"),
            None => machine.clone(),
        };
        Self {
            server,
            machine,
            ..self
        }
    }

    pub fn to_requester(&self) -> Requester {
        Requester {
            user: self.user.clone(),
            server: self.server.clone(),
            machine: self.machine.clone(),
        }
    }

    /// `@@VERSION`
    pub fn version_text() -> String {
        format!(
            "{PRODUCT} {} (SQLite {})",
            env!("CARGO_PKG_VERSION"),
            rusqlite::version()
        )
    }

    /// `SERVERPROPERTY('...')`; NULL for unknown properties.
    pub fn property(&self, name: &str) -> Value {
        match name.to_ascii_lowercase().as_str() {
            "servername" => Value::text(&self.server),
            "machinename" | "computernamephysicalnetbios" => Value::text(&self.machine),
            "instancename" => Value::optional_text(self.instance.as_deref()),
            "productversion" => Value::text(env!("CARGO_PKG_VERSION")),
            "edition" => Value::text(PRODUCT),
            _ => Value::Null,
        }
    }
}
