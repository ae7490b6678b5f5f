//! Errors: SQL Server's numbers and wording, and their positions.

use crate::refused;

/// Number, line, column, text of an error, and the source it points to.
fn place(text: &str) -> (u32, u32, u32, String, String) {
    let error = refused(text);
    assert_eq!((error.severity, error.state), (15, 1));
    let rest: String = text[error.offset..].chars().take(4).collect();
    (error.number, error.line, error.column, error.text, rest)
}

#[test]
fn an_unknown_option_is_155_with_the_verb() {
    let (number, line, column, text, rest) =
        place("BACKUP DATABASE x\nTO DISK = 'a'\nWITH INIT, TURBO = 5");
    assert_eq!((number, line, column), (155, 3, 12));
    assert_eq!(text, "'TURBO' is not a recognized BACKUP option.");
    assert_eq!(rest, "TURB");
    assert_eq!(
        place("RESTORE DATABASE x FROM d WITH turbo").3,
        "'turbo' is not a recognized RESTORE option."
    );
}

#[test]
fn a_word_too_many_is_102_and_a_keyword_156() {
    assert_eq!(
        place("BACKUP DATABASE x y TO d"),
        (
            102,
            1,
            19,
            "Incorrect syntax near 'y'.".to_owned(),
            "y TO".to_owned()
        )
    );
    let (number, _, column, text, _) = place("BACKUP DATABASE table TO d");
    assert_eq!((number, column), (156, 17));
    assert_eq!(text, "Incorrect syntax near the keyword 'table'.");
}

#[test]
fn a_string_is_named_by_its_content() {
    assert_eq!(
        place("BACKUP DATABASE N'x' TO d").3,
        "Incorrect syntax near 'x'."
    );
}

#[test]
fn a_statement_that_ends_too_early_names_its_last_token() {
    let (number, line, column, text, _) = place("BACKUP DATABASE x\n  TO");
    assert_eq!((number, line, column), (102, 2, 3));
    assert_eq!(text, "Incorrect syntax near 'TO'.");
}

#[test]
fn an_unclosed_string_is_105_and_a_comment_113() {
    let (number, line, _, text, _) = place("PRINT 1\nPRINT 'abc\nPRINT 2");
    assert_eq!((number, line), (105, 2));
    assert_eq!(
        text,
        "Unclosed quotation mark after the character string 'abc\nPRINT 2'."
    );
    assert_eq!(place("PRINT 1 /* a").3, "Missing end comment mark '*/'.");
}

#[test]
fn the_quote_of_the_first_article_is_named_with_its_place() {
    let script = "BACKUP DATABASE ourcooldatabasenamehere\n\nTO DISK = N’LOCATION’\n\n\
                  WITH COMPRESSION (ALGORITHM = ZSTD, LEVEL = MEDIUM);";
    let error = refused(script);
    assert_eq!((error.number, error.line, error.column), (50002, 3, 12));
    assert!(error.text.contains("’ (U+2019) at line 3, column 12"));
    assert!(error.text.contains("Type ' (apostrophe) instead."));
    assert!(script[error.offset..].starts_with('’'));
}

#[test]
fn what_is_not_there_is_refused_by_name() {
    for (text, word) in [
        ("EXEC @procedure", "EXECUTE of a variable"),
        (
            "CREATE OR ALTER FUNCTION f() RETURNS int AS RETURN 1",
            "CREATE FUNCTION",
        ),
        ("DECLARE @c CURSOR", "CURSOR"),
        ("DECLARE c CURSOR GLOBAL FOR SELECT 1", "A GLOBAL cursor"),
        ("WAITFOR TIME '10:00'", "WAITFOR other than DELAY"),
        ("SAVE TRANSACTION s", "SAVE TRANSACTION"),
        ("SET IDENTITY_INSERT t ON", "SET IDENTITY_INSERT"),
        (
            "ALTER SERVER CONFIGURATION SET PROCESS AFFINITY CPU = AUTO",
            "ALTER SERVER CONFIGURATION SET PROCESS",
        ),
        ("BACKUP MASTER KEY TO FILE = 'x'", "BACKUP MASTER"),
        (
            "SELECT TOP 1 WITH TIES a FROM t ORDER BY a",
            "TOP WITH TIES",
        ),
        ("SELECT * FROM t PIVOT (SUM(a) FOR b IN ([x])) p", "PIVOT"),
        ("SELECT a FROM t FOR XML PATH('')", "FOR XML"),
        ("IF 1 > ALL (SELECT 2) PRINT 1", "A comparison with ALL"),
        ("DELETE FROM t OUTPUT deleted.a", "OUTPUT"),
        ("GRANT SELECT ON t TO u", "GRANT"),
        ("MERGE t USING u ON 1 = 1", "MERGE"),
    ] {
        let error = refused(text);
        assert_eq!(error.number, 50005, "{text}: {error:?}");
        assert!(
            error.text.starts_with(word) && error.text.contains("not supported"),
            "{error}"
        );
        assert!(error.hint.is_some());
    }
    assert_eq!(refused("PRINT 1\n\n  GRANT SELECT ON t TO u").line, 3);
}

#[test]
fn a_block_must_end_and_a_condition_must_be_one() {
    for (text, number, near) in [
        ("BEGIN PRINT 1", 102, "'1'"),
        ("IF 1 = 1", 102, "'1'"),
        ("PRINT 1 ELSE PRINT 2", 156, "'ELSE'"),
        ("END", 156, "'END'"),
        ("IF 1 PRINT 1", 4145, "'PRINT'"),
        ("WHILE NOT 2 PRINT 1", 4145, "'PRINT'"),
        ("BEGIN TRY PRINT 1 END TRY PRINT 2", 156, "'PRINT'"),
        ("PRINT 1 = 1", 102, "'='"),
        ("SELECT a FROM", 102, "'FROM'"),
        ("SELECT 1 FROM t WHERE", 102, "'WHERE'"),
        ("SELECT 1\nFROM t\nWERE a = 1", 102, "'a'"),
    ] {
        let error = refused(text);
        assert_eq!(error.number, number, "{text}: {error:?}");
        assert!(error.text.contains(near), "{text}: {error}");
    }
}

#[test]
fn names_have_limits() {
    assert_eq!(refused("USE []").number, 1038);
    assert_eq!(refused(&format!("USE {}", "x".repeat(129))).number, 103);
    assert_eq!(
        refused("RESTORE DATABASE x FROM DATABASE_SNAPSHOT = ''").number,
        1038
    );
}

#[test]
fn settings_and_columns_have_messages_of_their_own() {
    assert_eq!(
        refused("SET SPEED ON").text,
        "'SPEED' is not a recognized SET option."
    );
    assert_eq!(refused("SET SPEED ON").number, 195);
    assert_eq!(refused("PRINT x").number, 128);
}

#[test]
fn go_on_a_line_with_others_gets_a_hint() {
    assert!(
        refused("PRINT 1 GO")
            .hint
            .unwrap()
            .contains("line of its own")
    );
    assert!(refused("GO;").hint.unwrap().contains("line of its own"));
}

#[test]
fn the_first_error_refuses_the_whole_batch() {
    assert_eq!(refused("PRINT 1; PRINT 2; PRINT ; PRINT 3").column, 25);
}

#[test]
fn the_words_of_an_error_are_bounded() {
    let error = refused(&format!("PRINT 1 {}", "x".repeat(10_000)));
    assert!(error.text.len() < 300);
}
