//! What `expire` keeps because it is needed elsewhere, or because what it needs cannot be seen now.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::{Place, Run};

const INSTANCE: [&str; 2] = ["--instance", "instance"];

fn run(place: &Place, words: &[&str]) -> Run {
    place.run(&[words, &INSTANCE].concat())
}

fn succeed(place: &Place, words: &[&str]) -> Run {
    place.succeed(&[words, &INSTANCE].concat())
}

/// However its folder is named.
#[test]
fn a_backup_that_waits_to_be_copied_stays() {
    let place = Place::new();
    succeed(&place, &["sql", "-Q", "EXEC sp_attach_db 'app', 'app.db'"]);
    let command = format!(
        "BACKUP DATABASE app TO DISK = [{}] WITH COPYTO = [{}]",
        place.text("temp/1.bak"),
        place.text("later")
    );
    // The folder for the copy does not exist: it waits.
    let _failed_copy = run(&place, &["sqlbackup", "-SQL", &command]);
    succeed(&place, &["backup", "app", "--to", "temp/2.bak"]);
    symlink("temp", place.path("link")).expect("a link");
    fs::create_dir(place.path("deep")).expect("a folder");
    let whole = [place.text("temp"), place.text("deep/../temp")];
    for folder in ["temp", "./temp", "link", "deep/../temp"]
        .into_iter()
        .chain(whole.iter().map(String::as_str))
    {
        let kept = succeed(&place, &["expire", folder, "--last", "1", "--delete"]);
        assert!(
            kept.out.contains("waits to be copied"),
            "{folder}: {}",
            kept.out
        );
        assert_eq!(place.files("temp"), ["1.bak", "2.bak"], "{folder}");
    }
    fs::create_dir(place.path("later")).expect("a folder");
    succeed(&place, &["copies", "--run", "--now"]);
    assert_eq!(place.files("later"), ["1.bak"]);
    succeed(&place, &["expire", "temp", "--last", "1", "--delete"]);
    assert_eq!(place.files("temp"), ["2.bak"]);
}
