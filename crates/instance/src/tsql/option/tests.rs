use windlass_tsql::ast::Statement;
use windlass_tsql::option::{ArgumentKind, BACKUP, OptionRow, RESTORE, StatementKind, Support};
use windlass_tsql::parse_batch;

use super::*;
use crate::operation::RestoreKind;
use crate::{Instance, Session};

/// The option with some argument that it takes.
fn sample(row: &OptionRow) -> String {
    let argument = match (row.word, row.argument) {
        (OptionWord::ExpireDate, _) => " = '2027-01-02'",
        (
            OptionWord::Name
            | OptionWord::Description
            | OptionWord::MediaName
            | OptionWord::MediaDescription
            | OptionWord::SignWith
            | OptionWord::SignedBy
            | OptionWord::BackupOptions
            | OptionWord::RestoreOptions
            | OptionWord::Standby,
            _,
        ) => " = 'x'",
        (OptionWord::StopAt, _) => " = '2026-11-24 10:15:00.120'",
        (_, ArgumentKind::Value | ArgumentKind::OptionalValue | ArgumentKind::Number) => " = 5",
        (OptionWord::BaseRequired, _) => ", DIFFERENTIAL",
        (_, ArgumentKind::None | ArgumentKind::Compression) => "",
        (_, ArgumentKind::Encryption) => " (ALGORITHM = AES_256, SERVER CERTIFICATE = c)",
        (_, ArgumentKind::Credential) => " = 'c'",
        (_, ArgumentKind::ThreadCount) => " = 3",
        (_, ArgumentKind::Auto) => " = AUTO",
        (_, ArgumentKind::Goal) => " = SMALL",
        (_, ArgumentKind::Integrity) => " = QUICK",
        (_, ArgumentKind::Move) => " 'a' TO 'b'",
        (_, ArgumentKind::Filestream) => " (DIRECTORY_NAME = 'd')",
        (_, ArgumentKind::StopMark) => " = 'lsn:33:288:1'",
        (_, ArgumentKind::DatabaseName) => " = d",
    };
    format!("{}{argument}", row.word.spelling())
}

/// What becomes of the option in a statement that has it.
fn outcome(row: &OptionRow, verb: &str) -> Result<(), Failure> {
    let mut session = Session::new(Instance::open(None).unwrap());
    let statement = |what: &str, devices: &str| {
        let text = format!("{verb} {what} {devices} DISK = 'x' WITH {}", sample(row));
        parse_batch(&text).expect(&text).remove(0).node
    };
    if verb == "BACKUP" {
        let what = match row.applies(StatementKind::BackupDatabase) {
            true => "DATABASE a",
            false => "LOG a",
        };
        let Statement::Backup(parsed) = statement(what, "TO") else {
            panic!("{row:?}")
        };
        return read_backup(&parsed, &mut session).map(|_| ());
    }
    let is_restore = row.applies(StatementKind::RestoreDatabase);
    let what = if is_restore {
        "DATABASE a"
    } else {
        "VERIFYONLY"
    };
    let Statement::Restore(parsed) = statement(what, "FROM") else {
        panic!("{row:?}")
    };
    match is_restore {
        true => read_restore(&parsed, RestoreKind::Database, &mut session).map(|_| ()),
        false => read_verify(&parsed, &mut session).map(|_| ()),
    }
}

#[test]
fn every_option_acts_or_is_refused_as_the_table_says() {
    for (verb, rows) in [("BACKUP", BACKUP), ("RESTORE", RESTORE)] {
        for row in rows {
            let outcome = outcome(row, verb);
            let text = outcome
                .as_ref()
                .err()
                .map(|failure| failure.messages[0].text.clone());
            match row.support {
                Support::Acts | Support::NoEffect => assert_eq!(text, None, "{row:?}"),
                Support::Never(hint) => {
                    assert!(text.is_some_and(|text| text.contains(hint)), "{row:?}");
                }
            }
        }
    }
}
