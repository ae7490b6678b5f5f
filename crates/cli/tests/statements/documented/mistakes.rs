//! `docs/mistakes.md`: every command there is run, and must say what the page says.
//!
//! A comment above a block says what is done before: `<!-- before: command -->`.

use std::io::Write as _;
use std::process::Command;

use super::{Figures, document, play, run, steps};
use crate::support::Place;

/// Mistakes on the page.
const COUNT: usize = 44;

/// What the page calls the folder.
const FOLDER: &str = "/srv";

#[test]
fn every_mistake_of_the_page_gets_the_message_of_the_page() {
    let page = std::fs::read_to_string(document("mistakes.md")).expect("the page");
    let mistakes: Vec<&str> = page.split("\n### ").skip(1).collect();
    assert_eq!(mistakes.len(), COUNT);
    let mut wrong = Vec::new();
    for (index, mistake) in mistakes.iter().enumerate() {
        let number = format!("{}. ", index + 1);
        assert!(mistake.starts_with(&number), "{mistake}");
        if let Err(difference) = played(mistake) {
            wrong.push(format!("### {number}\n{difference}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn played(mistake: &str) -> Result<(), String> {
    let place = Place::new();
    std::fs::write(place.path("pass"), "a good secret\n").expect("a passphrase");
    std::fs::write(place.path("wrong"), "another secret\n").expect("a passphrase");
    let needs_disk = mistake.contains("small/");
    let small = needs_disk.then(|| SmallDisk::mount(&place)).flatten();
    if needs_disk && small.is_none() {
        return Ok(());
    }
    for line in mistake.lines() {
        let before = line.strip_prefix("<!-- before: ");
        if let Some(command) = before.and_then(|line| line.strip_suffix(" -->")) {
            let (printed, succeeds) = run(&place, command, FOLDER);
            assert!(succeeds, "{command}: {printed}");
        }
    }
    play(&place, &steps(mistake), FOLDER, Figures::Exact)
}

/// A file system of 300 KB in the folder `small`; unmounted when dropped. Needs the right to mount.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    #[expect(
        clippy::disallowed_methods,
        reason = "said past the capture of a test's output"
    )]
    fn mount(place: &Place) -> Option<Self> {
        let folder = place.path("small");
        std::fs::create_dir(&folder).expect("a folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=300k", "tmpfs"])
            .arg(&folder)
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(folder));
        }
        let line =
            "SKIPPED: no right to mount a small file system for the mistakes of full disks\n";
        std::io::stderr()
            .write_all(line.as_bytes())
            .expect("standard error");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(&self.0).status());
    }
}
