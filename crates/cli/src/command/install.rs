//! `windlass install`: a unit of systemd that serves an instance.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use serde_json::json;

use super::{Outcome, misused};
use crate::args::{Arguments, Command, Common, InstallArguments, Patience};
use crate::output::{error_line, result_json, result_line};

/// Time for what remains after `--patience`: cancelled requests take back their files, and databases close.
const SECONDS_TO_CLOSE: u32 = 300;

/// What every unit has. `@NAME@` is replaced.
const UNIT: &str = include_str!("windlass.service");

/// What a unit says.
struct Unit<'a> {
    program: &'a str,
    instance: &'a str,
    user: &'a str,
    writable: Vec<&'a str>,
    options: Vec<&'a str>,
    patience: Patience,
}

/// Runs the command.
pub(crate) fn run(arguments: &InstallArguments, common: &Common) -> Outcome {
    let Some(instance) = &common.instance else {
        return misused("install needs --instance DIR: the folder of the instance to serve");
    };
    match install(arguments, instance, common.json) {
        Ok(()) => Outcome::Succeeded,
        Err(error) => {
            error_line(&error);
            Outcome::Failed
        }
    }
}

fn install(arguments: &InstallArguments, instance: &Path, is_json: bool) -> Result<(), String> {
    let absolute = |path: &Path| {
        windlass_instance::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let instance = absolute(instance)?;
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let writable = arguments.writable.iter();
    let writable: Vec<PathBuf> = writable
        .map(|path| absolute(path))
        .collect::<Result<_, _>>()?;
    let options = arguments.options.iter();
    let options: Vec<&str> = options
        .map(|option| written(Path::new(option)))
        .collect::<Result<_, _>>()?;
    let folders = writable.iter();
    let unit = Unit {
        program: written(&program)?,
        instance: written(&instance)?,
        user: &arguments.user,
        writable: folders
            .map(|path| written(path))
            .collect::<Result<_, _>>()?,
        patience: patience(&options)?,
        options,
    }
    .text()?;
    if arguments.to == Path::new("-") {
        if is_json {
            result_json(&json!({ "unit": unit }).to_string());
            return Ok(());
        }
        for line in unit.lines() {
            result_line(line);
        }
        return Ok(());
    }
    keep(&arguments.to, &unit, arguments.replace)
        .map_err(|error| format!("{}: {error}", arguments.to.display()))?;
    // Units are found by their names in systemd's folders only.
    let path = super::absolute(&arguments.to);
    let is_found = path.starts_with("/etc/systemd/system/");
    let name = match is_found {
        true => path.rsplit('/').next().unwrap_or_default(),
        false => &path,
    };
    let (user, instance) = (&arguments.user, instance.display());
    let next = [
        format!(
            "id {user} || useradd --system --home-dir '{instance}' --shell /usr/sbin/nologin {user}"
        ),
        format!("mkdir -p '{instance}' && chown -R {user}: '{instance}'"),
        format!("systemctl daemon-reload && systemctl enable --now {name}"),
    ];
    let written = arguments.to.display().to_string();
    if is_json {
        result_json(&json!({ "written": written, "next": next }).to_string());
        return Ok(());
    }
    result_line(&format!("{written}: written"));
    result_line("next:");
    for command in next {
        result_line(&format!("  {command}"));
    }
    Ok(())
}

/// The options must be those of the command that the unit starts.
fn patience(options: &[&str]) -> Result<Patience, String> {
    let words = ["windlass", "serve", "--instance", "/"];
    let words = words.iter().chain(options);
    let parsed = Arguments::try_parse_from(words).map_err(|error| {
        let text = error.to_string();
        text.trim_start_matches("error: ").to_owned()
    })?;
    match parsed.command {
        Command::Serve(serve) => Ok(serve.patience),
        _ => Err("the options are not those of serve".to_owned()),
    }
}

/// A path as it may stand in a unit.
fn written(path: &Path) -> Result<&str, String> {
    let text = path
        .to_str()
        .filter(|text| !text.contains(char::is_control));
    text.ok_or_else(|| {
        format!(
            "'{}' cannot stand in a unit: it is not UTF-8, or has control characters",
            path.display()
        )
    })
}

fn keep(path: &Path, unit: &str, replaces: bool) -> std::io::Result<()> {
    if replaces {
        return windlass_io::own::replace(path, unit.as_bytes());
    }
    let mut file = std::fs::File::create_new(path).map_err(|error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            return std::io::Error::other("it is there already; --replace replaces it");
        }
        error
    })?;
    file.write_all(unit.as_bytes())?;
    file.sync_all()
}

impl Unit<'_> {
    fn text(&self) -> Result<String, String> {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
        if self.user.is_empty() || !self.user.chars().all(is_name) {
            return Err(format!("'{}' is no name of a user", self.user));
        }
        let mut start = format!("{} serve", quoted(self.program));
        for word in ["--instance", self.instance].iter().chain(&self.options) {
            // Writing to a String cannot fail.
            let _ = write!(start, " {}", quoted(word).replace('$', "$$"));
        }
        let mut folders = quoted(self.instance);
        for folder in &self.writable {
            let _ = write!(folders, " {}", quoted(folder));
        }
        let is_at_home = |path: &&str| {
            ["/home/", "/root/"]
                .iter()
                .any(|home| path.starts_with(home))
        };
        let mut paths = self.writable.iter().chain([&self.program, &self.instance]);
        let protects_home = if paths.any(is_at_home) { "no" } else { "yes" };
        let stop = match self.patience {
            Patience::Seconds(seconds) => seconds.saturating_add(SECONDS_TO_CLOSE).to_string(),
            Patience::Forever => "infinity".to_owned(),
        };
        Ok(UNIT
            .replace("@USER@", self.user)
            .replace("@HOME@", protects_home)
            .replace("@STOP@", &stop)
            .replace("@FOLDERS@", &folders)
            .replace("@START@", &start))
    }
}

/// A word of a unit: in quotes, without the meaning of `%` there. In command lines `$` has one, too.
fn quoted(word: &str) -> String {
    let mut text = String::from("\"");
    for letter in word.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '%' => text.push_str("%%"),
            letter => text.push(letter),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit() -> Unit<'static> {
        Unit {
            program: "/usr/bin/windlass",
            instance: "/srv/my windlass",
            user: "windlass",
            writable: vec!["/srv/100%"],
            options: vec!["--on-job-failure", "echo \"$x\""],
            patience: Patience::Seconds(10),
        }
    }

    #[test]
    fn words_mean_in_a_unit_what_was_written() {
        let text = unit().text().unwrap();
        assert!(text.contains(
            r#"ExecStart="/usr/bin/windlass" serve "--instance" "/srv/my windlass" "--on-job-failure" "echo \"$$x\"""#
        ));
        assert!(text.contains(r#"ReadWritePaths="/srv/my windlass" "/srv/100%%""#));
        assert!(text.contains("TimeoutStopSec=310\n") && text.contains("ProtectHome=yes\n"));
        assert_eq!(text.matches('@').count(), 2, "@system-service, twice");
    }

    #[test]
    fn folders_at_home_are_not_hidden_from_the_server() {
        let mut unit = unit();
        unit.instance = "/home/me/windlass";
        assert!(unit.text().unwrap().contains("ProtectHome=no\n"));
    }

    #[test]
    fn users_and_options_are_checked() {
        let mut unit = unit();
        unit.user = "root\nExecStartPre=/bin/sh";
        assert!(unit.text().is_err());
        assert!(patience(&["--tds", "nowhere"]).is_err());
        assert_eq!(patience(&["--patience", "forever"]), Ok(Patience::Forever));
        assert!(written(Path::new("/srv/a\nb")).is_err());
    }
}
