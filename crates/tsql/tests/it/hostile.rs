//! No text panics, exhausts the stack, or takes more than linear time.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use windlass_tsql::{NESTING_MAX, fuzz_parse, parse_batch, print_batch};

use crate::refused;

/// Statements that together touch every part of the parser.
const CORPUS: &[&str] = &[
    "BACKUP DATABASE [a]]b] FILE = ('x', @y), READ_WRITE_FILEGROUPS TO DISK = N'it''s', TAPE = @t, d \
     MIRROR TO URL = 'u' WITH DIFFERENTIAL, COMPRESSION (ALGORITHM = ZSTD, LEVEL = LOW), STATS = -5, \
     ENCRYPTION (ALGORITHM = AES_256, SERVER ASYMMETRIC KEY = k), CREDENTIAL = c, THREADCOUNT = AUTO;",
    "RESTORE LOG \"q\"\"r\" PAGE = '1:2' FROM VIRTUAL_DEVICE = @v WITH MOVE 'a' TO 'b', FILE = 2, \
     STOPATMARK = 'lsn:1' AFTER '2020', FILESTREAM (DIRECTORY_NAME = 'd'), SNAPSHOT DBNAME = x",
    "RESTORE DATABASE x FROM DATABASE_SNAPSHOT = 's'\nGO 3 -- thrice\nUSE x",
    "CREATE DATABASE x ON PRIMARY (NAME = 'a', FILENAME = 'b', SIZE = 1GB, FILEGROWTH = 5%), FILEGROUP g \
     (NAME = c) LOG ON (NAME = l, MAXSIZE = UNLIMITED) FOR ATTACH",
    "ALTER DATABASE CURRENT SET RECOVERY FULL, TARGET_RECOVERY_TIME = 1 MINUTES\nALTER DATABASE x SET \
     SINGLE_USER WITH ROLLBACK IMMEDIATE; DROP DATABASE IF EXISTS a, b",
    "DECLARE @a decimal(1, 2) = -(1 + 2.5e1) * CAST(N'x' AS varchar(max)) % f.g(NULL, 0x1f), @b int\n\
     SET @a += (SELECT (1) FROM t WHERE x = ')') PRINT CONVERT(int, USER, 3)",
    "sp_x @a = 1, word OUTPUT, DEFAULT, -1.5, 0xAB\nEXEC @r = a.b..c NULL\nRECONFIGURE WITH OVERRIDE",
    "CREATE TRIGGER t AFTER UPDATE ON x BEGIN SELECT CASE 1 WHEN 2 THEN 3 END; DELETE FROM y; END; \
     WITH c AS (SELECT 1)\nINSERT INTO t\nSELECT /* a /* b */ c */ @@x, N'y' FROM msdb.dbo.z\nPRINT 1",
    "BEGIN TRAN t WITH MARK 'm' COMMIT TRAN @x ROLLBACK WORK CHECKPOINT 5 DBCC TRACEON (1, -1) WITH \
     NO_INFOMSGS DBCC HELP ('x') WAITFOR DELAY '1' SET STATISTICS IO, TIME ON SET LOCK_TIMEOUT 5",
    "ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD = ON (ACCELERATOR = QAT, MODE = SOFTWARE)",
];

/// Bytes that matter to the lexer.
const SEASONING: &[&str] = &[
    "'",
    "\"",
    "[",
    "]",
    "(",
    ")",
    ";",
    ",",
    "=",
    "--",
    "/*",
    "*/",
    "\n",
    "\nGO\n",
    "@",
    "@@",
    "N'",
    "’",
    "“",
    "\u{a0}",
    "\0",
    ".",
    "..",
    "0x",
    "1e",
    "-",
    "BEGIN",
    "END",
    "CASE",
    "WITH",
    " SELECT ",
    "\nSET ",
    "é",
    "\u{10ffff}",
    "\\",
    "$",
    "#",
    "::",
];

/// A deterministic sequence of numbers below a limit.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound.max(1)
    }
}

fn mutated(dice: &mut Dice) -> Vec<u8> {
    let mut bytes = CORPUS[dice.roll(CORPUS.len())].as_bytes().to_vec();
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(bytes.len() + 1);
        let end = (at + dice.roll(12)).min(bytes.len());
        match dice.roll(5) {
            0 => drop(bytes.drain(at..end)),
            1 => bytes.truncate(at),
            2 if at < bytes.len() => bytes[at] = dice.roll(256) as u8,
            3 => {
                let other = CORPUS[dice.roll(CORPUS.len())].as_bytes();
                let from = dice.roll(other.len());
                let to = (from + dice.roll(60)).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            _ => drop(bytes.splice(at..end, SEASONING[dice.roll(SEASONING.len())].bytes())),
        }
    }
    bytes
}

#[test]
fn mutated_statements_never_panic_and_what_parses_prints_and_parses_again() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for _ in 0..30_000 {
        fuzz_parse(&mutated(&mut dice));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_is_read_without_panic(text in any::<String>()) {
        fuzz_parse(text.as_bytes());
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz_parse(&bytes);
    }

    #[test]
    fn any_row_of_tokens_is_read_without_panic(
        pieces in prop::collection::vec(prop::sample::select(words()), 0..40)
    ) {
        fuzz_parse(pieces.join(" ").as_bytes());
    }
}

/// The words of the corpus, the seasoning, and the option table.
fn words() -> Vec<String> {
    let corpus = CORPUS.iter().flat_map(|text| text.split_whitespace());
    let options = windlass_tsql::option::OptionWord::ALL
        .iter()
        .map(|word| word.spelling());
    corpus
        .chain(SEASONING.iter().copied())
        .chain(options)
        .map(str::to_owned)
        .collect()
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    let nested = |depth: usize| format!("PRINT {}1{}", "(".repeat(depth), ")".repeat(depth));
    parse_batch(&nested(NESTING_MAX - 2)).unwrap();
    for text in [
        nested(NESTING_MAX),
        nested(1_000_000),
        format!("PRINT {}1", "- ".repeat(1_000_000)),
        format!("PRINT {}1{}", "f(".repeat(100_000), ")".repeat(100_000)),
        format!("PRINT {}1", "f(1, ".repeat(100_000)),
        format!("PRINT 1{}", " + 1".repeat(100_000)),
    ] {
        assert_eq!(refused(&text).number, 191);
    }
    let chain = format!("PRINT 'a'{}", " + 'b'".repeat(900));
    fuzz_parse(chain.as_bytes());
}

#[test]
fn the_deepest_expression_that_parses_also_prints_and_parses() {
    let signs = format!("PRINT {}1", "- ".repeat(NESTING_MAX - 2));
    fuzz_parse(signs.as_bytes());
    parse_batch(&signs).unwrap();
    let alternating = format!(
        "PRINT {}1{}",
        "1 - (".repeat(NESTING_MAX - 2),
        ")".repeat(NESTING_MAX - 2)
    );
    let printed = print_batch(&parse_batch(&alternating).unwrap());
    parse_batch(&printed).unwrap();
}

/// Times a text and one eight times as long. Only repeated slowness counts, because the machine may
/// be busy.
fn assert_linear(what: &str, piece: &str, suffix: &str) {
    let time = |count: usize| {
        let text = format!("{}{suffix}", piece.repeat(count));
        let start = Instant::now();
        fuzz_parse(text.as_bytes());
        start.elapsed()
    };
    let count = 100_000 / piece.len();
    let mut measured = Vec::new();
    for _ in 0..10 {
        let short = time(count).max(Duration::from_millis(2));
        let long = time(8 * count);
        if long < short * 32 {
            return;
        }
        measured.push((short, long));
    }
    panic!("{what}: {measured:?} for {count} and for eight times as many");
}

#[test]
fn time_grows_with_the_length_of_the_text() {
    for (what, piece, suffix) in [
        ("statements", "PRINT 1;\n", ""),
        ("batches", "PRINT 1\nGO\n", ""),
        ("unfinished GO lines", "GO 1 /* x */ y\n", ""),
        ("SELECT lines", "SELECT 1 AS a\n", ""),
        (
            "one long SELECT",
            "SELECT a, (b) FROM t UNION ALL ",
            "SELECT 1",
        ),
        ("quotes", "''", ""),
        ("unclosed quotes", "GO\n'", ""),
        ("brackets", "SELECT [", ""),
        ("open parentheses", "SELECT (", ""),
        ("comments", "/* /* */ */ -- x\n", ""),
        ("open comments", "/*", ""),
        ("options", "INIT, ", ""),
        ("devices", "d, ", ""),
        ("variables", "SELECT @a,@b,@c#, ", "1"),
        (
            "ALTER DATABASE",
            "ALTER DATABASE x SET RECOVERY FULL, y\n",
            "",
        ),
        ("blank lines", "\n", ""),
    ] {
        let head = match what {
            "options" => "BACKUP DATABASE x TO d WITH ",
            "devices" => "BACKUP DATABASE x TO ",
            _ => "",
        };
        assert_linear(what, piece, suffix);
        if !head.is_empty() {
            let text = format!("{head}{}INIT", piece.repeat(50_000));
            fuzz_parse(text.as_bytes());
        }
    }
}
