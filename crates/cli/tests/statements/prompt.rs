//! Statements that are typed in or come through a pipe.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Place, rows};
use crate::terminal::Terminal;

#[test]
fn batches_run_at_go_and_at_the_end() {
    let place = Place::new();
    let run = place.type_in(
        &["sql"],
        "PRINT 'a'\nGO\nPRINT 'b'\nPRINT '\nGO\n'\ngo 2\n:reset\nPRINT 'c'\n",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(run.err, "a\nb\n\nGO\n\nb\n\nGO\n\nc\n");
}

#[test]
fn quit_leaves_and_reset_forgets() {
    let place = Place::new();
    let run = place.type_in(
        &["sql"],
        "PRINT 'x'\n:reset\nPRINT 'y'\nGO\n:quit\nPRINT 'z'\nGO\n",
    );
    assert_eq!(run.err, "y\n");
}

#[test]
fn an_error_makes_the_exit_code_one() {
    let place = Place::new();
    let run = place.type_in(&["sql"], "SELECT nonsense\nGO\nPRINT 'on'\nGO\n");
    assert_eq!(run.code, Some(1));
    assert!(run.err.ends_with("on\n"), "{}", run.err);
    let run = place.type_in(&["sql", "-b"], "SELECT nonsense\nGO\nPRINT 'on'\nGO\n");
    assert!(!run.err.contains("on\n"), "{}", run.err);
}

#[test]
fn a_script_may_come_from_standard_input() {
    let place = Place::new();
    let run = place.type_in(&["sql", "-i", "-"], "PRINT 'a'\nGO\nPRINT 'b'");
    assert_eq!(run.err, "a\nb\n");
}

/// A prompt on a terminal, with `app` attached and a folder of its own for the history.
fn prompt(place: &Place) -> Terminal {
    let mut command = place.command(&["sql", "--attach", "app=app.db", "-d", "app"]);
    command.env("XDG_STATE_HOME", place.path("state"));
    let mut terminal = Terminal::start(&command);
    terminal.wait_for("1> ");
    terminal
}

fn type_batch(terminal: &mut Terminal, lines: &[&str]) {
    for line in lines {
        terminal.press(&format!("{line}\r"));
        terminal.wait_for("> ");
    }
}

#[test]
fn ctrl_c_at_the_prompt_discards_what_was_typed_and_cuts_no_later_batch() {
    let place = Place::new();
    let mut terminal = prompt(&place);
    type_batch(&mut terminal, &["DELETE FROM t", "WHERE id <"]);
    terminal.press("300\x03");
    terminal.wait_for("discarded");
    terminal.wait_for("1> ");
    terminal.press("\x03");
    terminal.wait_for("1> ");
    let batch = [
        "BEGIN TRAN",
        "DELETE FROM t",
        "ROLLBACK",
        "PRINT 'to the end'",
        "GO",
    ];
    for line in batch {
        terminal.press(&format!("{line}\r"));
    }
    terminal.wait_for("\r\nto the end");
    terminal.wait_for("1> ");
    terminal.press("\x04");
    let (status, _) = terminal.end();
    assert!(status.success());
    assert_eq!(rows(&place.path("app.db")), 400);
}

#[test]
fn ctrl_c_ends_the_batch_that_runs_and_no_other() {
    let place = Place::new();
    let mut terminal = prompt(&place);
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
    terminal.press(&format!("PRINT 'it ' + 'runs'\r{endless}\rGO\r"));
    terminal.wait_for("it runs");
    terminal.press("\x03");
    terminal.wait_for("1> ");
    terminal.press("PRINT 'a ' + 'second'\rPRINT 'to ' + 'the end'\rGO\r");
    terminal.wait_for("a second");
    terminal.wait_for("to the end");
    terminal.press(":quit\r");
    assert!(terminal.end().0.success());
}

#[test]
fn text_that_is_pending_at_ctrl_d_is_not_dropped_in_silence() {
    let place = Place::new();
    let mut terminal = prompt(&place);
    type_batch(&mut terminal, &["DELETE FROM t"]);
    terminal.press("\x04");
    terminal.wait_for("has not been run");
    terminal.wait_for("2> ");
    terminal.press("GO\r");
    terminal.wait_for("(400 rows affected)");
    // Before the prompt is there, the terminal itself would take Ctrl-D.
    terminal.wait_for("1> ");
    type_batch(&mut terminal, &["DROP TABLE t"]);
    terminal.press("\x04");
    terminal.wait_for("has not been run");
    terminal.wait_for("2> ");
    terminal.press("\x04");
    let (status, shown) = terminal.end();
    assert_eq!(status.code(), Some(1), "{shown}");
    assert!(
        shown.contains("1 line typed without GO; nothing was run."),
        "{shown}"
    );
    assert_eq!(rows(&place.path("app.db")), 0);
}

#[test]
fn lines_are_edited_and_remembered_but_never_secrets() {
    let place = Place::new();
    let mut terminal = prompt(&place);
    type_batch(&mut terminal, &["PRINT 'onex'"]);
    terminal.press("GO\r");
    terminal.wait_for("onex\r\n");
    terminal.wait_for("1> ");
    type_batch(&mut terminal, &["PRINT 'by", "PASSWORD", "hunter2'", "GO"]);
    terminal.press(":quit\r");
    assert!(terminal.end().0.success());
    let file = place.path("state/windlass/sql_history");
    let kept = std::fs::read_to_string(&file).expect("a history");
    assert!(kept.contains("PRINT 'onex'"), "{kept}");
    assert!(!kept.contains("hunter2"), "{kept}");
    let mode = |path: &std::path::Path| path.metadata().expect("it").permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(&place.path("state/windlass")), 0o700);
    // The next session has them: two up, to the end, back over the quote and the x.
    let mut terminal = prompt(&place);
    terminal.press("\x1b[A\x1b[A\x05\x7f\x7f-edited'\r");
    terminal.wait_for("2> ");
    terminal.press("GO\r");
    terminal.wait_for("one-edited\r\n");
    // Before the prompt is there, the terminal itself would take Ctrl-D.
    terminal.wait_for("1> ");
    terminal.press("\x04");
    assert!(terminal.end().0.success());
}

#[test]
fn a_request_to_terminate_ends_an_idle_prompt() {
    let place = Place::new();
    let mut child = place
        .command(&["sql"])
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = child.stdin.take().expect("its input");
    input.write_all(b"PRINT 'ready'\nGO\n").expect("it listens");
    let mut said = [0; 6];
    let mut messages = child.stderr.take().expect("its messages");
    messages.read_exact(&mut said).expect("a message");
    // Between the message and the next read there is a moment in which the batch still runs.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let killed = std::process::Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(killed.expect("kill").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(143));
}
