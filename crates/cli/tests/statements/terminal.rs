//! A pseudo-terminal with the program at its other end.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Terminal {
    keys: File,
    screen: Receiver<Vec<u8>>,
    child: Child,
    /// What was shown and not yet waited for.
    shown: String,
}

impl Terminal {
    /// Starts a command on a terminal of its own.
    pub(crate) fn start(command: &Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).expect("its rights");
        unlockpt(&master).expect("its lock");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let name = name.to_str().expect("a path").to_owned();
        let end = || {
            let mut options = File::options();
            let flags = OFlags::NOCTTY.bits().cast_signed();
            let options = options.read(true).write(true).custom_flags(flags);
            options.open(&name).expect("the other end")
        };
        // The program must own the terminal, or Ctrl-C would reach no process.
        let mut owned = Command::new("setsid");
        owned.args(["--ctty", "--wait"]).arg(command.get_program());
        owned.args(command.get_args()).env("TERM", "xterm");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => owned.env(name, value),
                None => owned.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            owned.current_dir(folder);
        }
        let child = owned
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("setsid of util-linux");
        let keys = File::from(master);
        let mut reader = keys.try_clone().expect("a second handle");
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            keys,
            screen,
            child,
            shown: String::new(),
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("a keyboard");
    }

    /// Waits until a text is shown, and returns what was shown up to it.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.shown.find(text) {
                let rest = self.shown.split_off(at + text.len());
                return std::mem::replace(&mut self.shown, rest);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                Ok(bytes) => self.shown.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("'{text}' is not shown, but: {}", self.shown)
                }
            }
        }
    }

    /// Waits until the program has ended, and returns how, and what was shown last.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().expect("a child") {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    self.child.kill().expect("a child");
                    panic!("it does not end, but shows: {}", self.shown)
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        // The terminal is closed by the last who had it open.
        while let Ok(bytes) = self.screen.recv_timeout(Duration::from_secs(1)) {
            self.shown.push_str(&String::from_utf8_lossy(&bytes));
        }
        (status, self.shown)
    }
}
