//! Statements that are typed in or come through a pipe.

use crate::support::Place;

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
