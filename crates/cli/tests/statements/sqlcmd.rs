//! sqlcmd's words and options.

use std::fs;

use crate::support::Place;

fn run(place: &Place, arguments: &[&str], script: &str) -> (Option<i32>, String, String) {
    fs::write(place.path("s.sql"), script).expect("the script");
    let mut all = vec!["sql", "-i", "s.sql"];
    all.extend(arguments);
    let run = place.run(&all);
    (run.code, run.out, run.err)
}

#[test]
fn included_files_and_variables_belong_to_the_batch_around_them() {
    let place = Place::new();
    fs::write(
        place.path("part.sql"),
        "PRINT '$(what)'\n:setvar what \"it's later\"",
    )
    .expect("a file");
    let script = "DECLARE @x int = 7\n:r part.sql\nPRINT @x\nGO 2\n:setvar what\nPRINT '$(what)'\n";
    let (code, _, err) = run(&place, &["-v", "what=now", "-x"], "PRINT '$(what)'");
    assert_eq!((code, err.as_str()), (Some(0), "$(what)\n"));
    let (code, _, err) = run(&place, &["-v", "what=now", "other=1"], script);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.starts_with("now\n7\nnow\n7\n"), "{err}");
    assert!(
        err.contains("line 6: the variable 'what' is not defined"),
        "{err}"
    );
    // -v precedes the environment, :setvar precedes both.
    let mut command = place.command(&["sql", "-Q", "PRINT '$(a) $(b)'", "-v", "a=v"]);
    let output = command
        .env("a", "e")
        .env("b", "e")
        .output()
        .expect("the program runs");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "v e\n");
    let piped = place.type_in(
        &["sql", "-v", "x=1"],
        ":setvar x 2\nPRINT '$(x)\n:r no'\nGO\n:r part.sql\nGO\n",
    );
    assert!(piped.err.contains("2\n:r no"), "{}", piped.err);
}

#[test]
fn a_file_that_includes_itself_ends() {
    let place = Place::new();
    fs::write(place.path("self.sql"), ":r self.sql\n:r self.sql\n").expect("a file");
    let (code, _, err) = run(&place, &[], ":r self.sql\n");
    assert_eq!(code, Some(2));
    assert!(err.contains("at most 32 deep"), "{err}");
}

#[test]
fn errors_stop_a_script_as_its_words_and_options_say() {
    let place = Place::new();
    let script = "RAISERROR('a', 12, 1)\nGO\nPRINT 'on'\nGO\n";
    for (arguments, words, code, goes_on) in [
        (&[][..], "", 1, true),
        (&["-b"], "", 1, false),
        (&["-b"], ":on error ignore\n", 1, true),
        (&[], ":on error exit\n", 1, false),
        (&["-b", "-V", "13"], "", 0, true),
        (&["-b", "-V", "12"], "", 12, false),
        (&["-V", "11"], "", 12, true),
    ] {
        let (found, _, err) = run(&place, arguments, &format!("{words}{script}"));
        assert_eq!(
            (found, err.contains("on\n")),
            (Some(code), goes_on),
            "{arguments:?} {words}"
        );
    }
}

#[test]
fn a_script_chooses_its_exit_code_and_where_it_ends() {
    let place = Place::new();
    let exits = |script: &str| run(&place, &[], script);
    assert_eq!(exits("PRINT 'x'\n:quit\n").2, "");
    assert_eq!(exits("PRINT 'x'\n:exit\n").0, Some(0));
    let (code, _, err) = exits("PRINT 'x'\n:exit()\nPRINT 'y'");
    assert_eq!((code, err.as_str()), (Some(0), "x\n"));
    let (code, ..) = exits("DECLARE @failed int = 3\n:exit(SELECT @failed + 4 AS c)\n");
    assert_eq!(code, Some(7));
    assert_eq!(exits(":exit(SELECT 'x')").0, Some(154));
    assert_eq!(exits(":exit(SELECT 256)").0, Some(255));
}

#[test]
fn what_is_not_there_is_refused_by_name() {
    let place = Place::new();
    for (script, named) in [
        ("!!ls\n", "runs no other programs"),
        (":connect other\n", ":connect is not supported"),
        (":out file.txt\n", "Redirect standard output"),
        (":nosuch\n", ":nosuch is not supported"),
        (":r nosuch.sql\n", "nosuch.sql"),
        (":setvar a b c\n", "double quotes"),
    ] {
        let (code, _, err) = run(&place, &[], script);
        assert_eq!(code, Some(2), "{script}");
        assert!(err.contains(named), "{script}: {err}");
    }
    for (arguments, named) in [
        (&["-S", "elsewhere"][..], "no other server"),
        (&["-U", "nobody-else"], "as the user of the process"),
        (&["-P", "x"], "no passwords"),
    ] {
        let (code, _, err) = run(&place, arguments, "PRINT 1");
        assert_eq!(code, Some(2), "{arguments:?}");
        assert!(err.contains(named), "{err}");
    }
}

#[test]
fn options_of_sqlcmd_name_this_instance_and_shape_tables() {
    let place = Place::new();
    let script = "SELECT 1 AS a, 'long text' AS b UNION ALL SELECT 22, 'x'";
    let (code, out, _) = run(
        &place,
        &["-S", "localhost", "-E", "-l", "5", "-W", "-s", ";"],
        script,
    );
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "a;b\n--;---------\n1;long text\n22;x\n")
    );
    let (_, out, _) = run(&place, &["-S", ".", "-h", "-1"], script);
    assert_eq!(out, " 1 long text\n22 x\n");
}
