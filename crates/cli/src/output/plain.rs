//! Messages of statements, in the words of the command line.
//!
//! A plain command runs a statement, whose messages name T-SQL's options and end with SQL Server's closing lines.
//! Whoever typed `windlass restore` has options that begin with `--`, and needs no line to say that it failed. The
//! numbers stay: `docs/messages.md` explains them.

use windlass_base::Message;
use windlass_base::message::table;

/// What follows the message that says why, and says nothing more.
const CLOSING: &[u32] = &[3013, 3119, 3156];

/// Numbers, words of their texts, and what is said instead.
const WORDS: &[(u32, &str, &str)] = &[
    (
        3035,
        " Perform a full database backup by reissuing BACKUP DATABASE, omitting the WITH DIFFERENTIAL option.",
        "",
    ),
    (3038, "Reissue the BACKUP statement with a", "Give a"),
    (
        3042,
        "BACKUP WITH CONTINUE_AFTER_ERROR successfully generated a backup of the damaged database. Refer to the SQL \
         Server error log for information about the errors that were encountered.",
        "The damaged database was backed up; the messages before this one say where it is damaged.",
    ),
    (3044, "Reissue the BACKUP statement with a", "Give a"),
    (3057, "Reissue the BACKUP statement with a", "Give a"),
    (
        3101,
        "because the database is in use.",
        "because the database is in use by another program or session. Nothing was written. Stop that, or restore to \
         another file with --to.",
    ),
    (
        3118,
        "RESTORE can only create a database when restoring either a full backup or a file backup of the primary file.",
        "It is made by its full backup: restore that first.",
    ),
    (3142, table::WITH_REPLACE, ""),
    (
        3142,
        "Use WITH MOVE to identify an alternate location; to overwrite it, name it WITH MOVE, and use WITH REPLACE.",
        "",
    ),
    (
        3156,
        "Use WITH MOVE to identify a valid location for the file.",
        "",
    ),
    (
        3159,
        "Use BACKUP LOG WITH NORECOVERY to backup the log if it contains work you do not want to lose. Use the WITH \
         REPLACE or WITH STOPAT clause of the RESTORE statement to just overwrite the contents of the log.",
        "Back it up with windlass backup NAME --log --no-recovery if it has work that you do not want to lose; \
         --replace overwrites it.",
    ),
    (
        3176,
        "The WITH MOVE clause can be used to relocate one or more files.",
        "--move LOGICAL=FILE gives one of them another place.",
    ),
    (
        3184,
        "RESTORE WITH CONTINUE_AFTER_ERROR was successful but some damage was encountered.",
        "The restore was finished, but some damage was encountered.",
    ),
    (
        3187,
        "RESTORE WITH CHECKSUM cannot be specified",
        "--checksum cannot be given",
    ),
    (3215, "Use WITH FORMAT to create", "Use --format to create"),
    (
        3234,
        "Use RESTORE FILELISTONLY to list the logical file names.",
        "windlass files lists the logical file names.",
    ),
    (3241, "The media family on device ", ""),
    (
        3241,
        " is incorrectly formed. SQL Server cannot process this media family.",
        " has no backup that Windlass can read.",
    ),
    (3243, "SQL Server supports", "Windlass supports"),
    (3254, "The volume on device ", ""),
    (3254, " is empty.", " has no complete backup set."),
    (
        3256,
        "was terminated while it was being created and is incomplete. RESTORE sequence is terminated abnormally.",
        "is incomplete: it was interrupted, or the file is a partial copy. Copy it again from where it came from, or \
         restore another backup.",
    ),
    (
        3258,
        " Ensure that the backup devices are loaded with the correct media.",
        "",
    ),
    (3258, "RESTORE LABELONLY shows", "windlass label FILE shows"),
    (3287, "The file ID ", "There is no backup set "),
    (3287, " is incorrectly formed and can not be read.", "."),
    (
        4208,
        "Use BACKUP DATABASE or change the recovery model using ALTER DATABASE.",
        "Make a full or differential backup, or set the recovery model FULL (windlass sql -Q \"ALTER DATABASE ... \
         SET RECOVERY FULL\").",
    ),
    (
        4214,
        "BACKUP LOG cannot be performed because there is no current database backup.",
        "A log backup cannot be made, because there is no current database backup. Make a full backup first.",
    ),
    (
        4338,
        "The STOPAT clause specifies a point too early to allow this backup set to be restored. Choose a different \
         stop point or use RESTORE DATABASE WITH RECOVERY to recover at the current point.",
        "The moment is too early for this backup set. Choose a later one.",
    ),
    (
        33111,
        table::CERTIFICATE_ADVICE,
        "Name its key: --key FILE; or, with --instance, create it from its backup (CREATE CERTIFICATE ... FROM FILE). \
         To check what can be checked without it: windlass verify --without-key.",
    ),
    (50028, "with AS_IS.", "with --as-is."),
    (50029, "with SIGNED_BY.", "with --signed-by."),
    (
        50029,
        "with ALLOW_UNENCRYPTED.",
        "with --allow-unencrypted.",
    ),
    (50040, "with INIT or FORMAT,", "with --init or --format,"),
    (
        50041,
        "In a command of SQL Backup (EXEC sqlbackup): PASSWORDFILE = [FILE]; RESTORE in T-SQL has no option for it, \
         windlass restore has --passphrase-file FILE. To check what can be checked without it: RESTORE VERIFYONLY \
         ... WITH WITHOUTKEY.",
        "Name the file that it is in: --passphrase-file FILE. To check what can be checked without it: windlass \
         verify --without-key.",
    ),
    (50046, "with SIGNED_BY.", "with --signed-by."),
    (
        50050,
        "To use it unchanged, specify AS_IS (BACKUP ... WITH AS_IS, CREATE DATABASE ... FOR ATTACH WITH AS_IS).",
        "windlass backup --as-is backs it up as it is.",
    ),
    (50052, "CONTINUE_AFTER_ERROR", "--continue-after-error"),
    (50053, "CONTINUE_AFTER_ERROR", "--continue-after-error"),
    (50069, "WITH REPLACE", "with --replace"),
    (50180, "CONTINUE_AFTER_ERROR", "--continue-after-error"),
    (
        50310,
        "STOPATMARK or STOPBEFOREMARK = 'lsn:N'.",
        "--at lsn:N.",
    ),
    (
        50332,
        "Omit NORECOVERY, STANDBY and STOPAT.",
        "Omit --no-recovery and --at.",
    ),
    (
        50333,
        "Name it with MOVE.",
        "Name it with --move LOGICAL=FILE, or one place for all with --to FOLDER.",
    ),
    (50352, "ALTER CREDENTIAL.", "windlass credential set."),
];

/// Whether a message closes those that say why something failed.
pub(super) fn is_closing(message: &Message) -> bool {
    CLOSING.contains(&message.number)
}

/// The message with the options of plain commands instead of T-SQL's.
pub(super) fn reworded(mut message: Message) -> Message {
    let of_number = WORDS
        .iter()
        .filter(|(number, ..)| *number == message.number);
    for (_, written, said) in of_number {
        // Names come first in most texts: what looks alike in one is left alone.
        if let Some(start) = message.text.rfind(written) {
            message
                .text
                .replace_range(start..start + written.len(), said);
        }
    }
    message.text.truncate(message.text.trim_end().len());
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts that are a parameter of their message.
    const PARAMETERS: &[&str] = &[
        table::WITH_REPLACE,
        table::WITH_MOVE,
        table::CERTIFICATE_ADVICE,
        table::OTHER_MEDIA_SET,
    ];

    #[test]
    fn what_is_replaced_is_in_the_text_of_its_number() {
        for (number, written, _) in WORDS {
            let entry = table::Entry::of(*number).expect("a number with one text");
            let is_parameter = PARAMETERS.iter().any(|text| text.contains(written));
            assert!(
                entry.template.contains(written) || is_parameter,
                "{number}: {written}"
            );
        }
    }

    #[test]
    fn a_file_in_the_way_is_told_without_the_options_of_statements() {
        for way in [table::WITH_REPLACE, table::WITH_MOVE] {
            let message = reworded(table::file_exists("a", "a", way));
            assert!(!message.text.contains("WITH "), "{}", message.text);
            assert!(message.text.starts_with("File \"a\""), "{}", message.text);
        }
    }

    #[test]
    fn a_name_that_looks_like_an_option_stays() {
        let message = reworded(table::integrity_failed("CONTINUE_AFTER_ERROR", "1 problem"));
        assert!(
            message.text.contains("'CONTINUE_AFTER_ERROR'"),
            "{}",
            message.text
        );
        assert!(
            message.text.contains("--continue-after-error"),
            "{}",
            message.text
        );
    }
}
