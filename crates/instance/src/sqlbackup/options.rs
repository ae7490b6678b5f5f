//! The options of the dialect: parsing, and the reasons for refusing some.

use windlass_base::similar::did_you_mean;
use windlass_codec::Compression;
use windlass_crypt::{Cipher, Passphrase};
use windlass_pipeline::{OnDamage, Overwrite, Probe};
use windlass_source::Recovery;
use windlass_tsql::option::OptionWord;
use windlass_tsql::sqlbackup::{Command, Setting, Verb};

use super::NOT_UNDERSTOOD;
use super::report::WARNING;
use crate::operation::{BackupOptions, CompressionChoice, MissingBase, RestoreOptions};
use crate::retention::Policy;

/// The parsed options of a command.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub(super) struct Options {
    /// The options of a backup; its devices are named once the database is known.
    pub(super) backup: BackupOptions,
    /// The options of a restore, a verification or an inspection of media.
    pub(super) restore: RestoreOptions,
    /// The options that T-SQL has too: the same rules of exclusion apply.
    pub(super) words: Vec<OptionWord>,
    pub(super) full_if_required: bool,
    pub(super) verify: bool,
    pub(super) file_count: u32,
    pub(super) mirror: Option<String>,
    pub(super) copy_to: Vec<String>,
    pub(super) copies_overwrite: bool,
    pub(super) retries: u32,
    pub(super) retry_seconds: u32,
    pub(super) erase: Option<Policy>,
    pub(super) erase_at_start: bool,
    pub(super) erase_remote: Option<Policy>,
    pub(super) single_result: bool,
    pub(super) check_database: bool,
    pub(super) drops: Drops,
    pub(super) password: Option<Password>,
    log_to: Option<String>,
    /// The lowest exit code for which the report is written.
    log_from: i64,
}

#[derive(Debug, Clone)]
pub(super) enum Password {
    /// In the command itself.
    Written(Passphrase),
    /// The first line of a file.
    File(String),
}

/// When a database is dropped after a test restore.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Drops {
    #[default]
    Never,
    /// `DROPDB`
    Always,
    /// `DROPDBIFSUCCESSFUL`
    IfSuccessful,
}

impl Options {
    /// The path of the report for this exit code, if one is written.
    pub(super) fn log_path(&self, exit_code: i64) -> Option<&str> {
        let path = self.log_to.as_deref()?;
        (exit_code >= self.log_from).then_some(path)
    }
}

/// Options that are refused, with the alternative.
const REFUSED: &[(&str, &str)] = &[
    (
        "MAILTO",
        "Use the hooks: windlass sqlbackup --on-success 'command' --on-failure 'command'; the report is their input.",
    ),
    (
        "MAILTO_NOLOG",
        "Use the hooks --on-success and --on-failure.",
    ),
    ("MAILTO_ONERROR", "Use the hook --on-failure."),
    ("MAILTO_ONERRORONLY", "Use the hook --on-failure."),
    ("THREADPRIORITY", "Start the program with nice."),
    ("MAXDATABLOCK", "MAXTRANSFERSIZE sets the size of writes."),
    (
        "USESIMPLECOPY",
        "Use COPYTO without it: nothing stays in the queue if the first attempt succeeds.",
    ),
    (
        "BLOCKSIZE",
        "SQL Backup has no such option; write the backup in T-SQL.",
    ),
    (
        "BUFFERCOUNT",
        "SQL Backup has no such option; write the backup in T-SQL.",
    ),
    (
        "STANDBY",
        "A restored database is writable or restoring; restore a copy to look at it.",
    ),
    ("ORPHAN_CHECK", "A SQLite database has no users."),
    (
        "DISCONNECT_EXISTING",
        "Programs that have the database open cannot be disconnected; stop them yourself.",
    ),
    ("KEEP_REPLICATION", "A SQLite database has no replication."),
    ("KEEP_CDC", "A SQLite database has no change data capture."),
    ("RESTRICTED_USER", "A SQLite database has no users."),
    (
        "DELAY",
        "It is for log shipping: windlass ship keeps a copy current.",
    ),
    (
        "MOVETO",
        "It is for log shipping: windlass ship keeps a copy current.",
    ),
    (
        "ERASEFILES_SECONDARY",
        "There is no second folder; ERASEFILES_REMOTE needs COPYTO.",
    ),
];

/// Reads the options of a command.
pub(super) fn read(command: &Command) -> Result<Options, String> {
    let mut options = Options {
        file_count: 1,
        retry_seconds: 30,
        ..Options::default()
    };
    for setting in &command.options {
        let name = setting.name.as_str();
        if let Some((_, hint)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            return Err(format!("{name} is not supported. {hint}"));
        }
        if read_common(setting, &mut options)? {
            options.words.extend(word(setting));
            continue;
        }
        if !read_own(&command.verb, setting, &mut options)? {
            let hint = suggestion(&command.verb, name).unwrap_or_default();
            return Err(format!("{name} is not an option of this command.{hint}"));
        }
        options.words.extend(word(setting));
    }
    if options.backup.cipher.is_some() && options.password.is_none() {
        return Err("KEYSIZE needs PASSWORD or PASSWORDFILE.".to_owned());
    }
    if options.mirror.is_some() && command.disks.len() > 1 {
        return Err("MIRRORFILE needs a backup to one file.".to_owned());
    }
    Ok(options)
}

/// Reads an option of the command; returns whether it was one.
fn read_own(verb: &Verb, setting: &Setting, options: &mut Options) -> Result<bool, String> {
    match verb {
        Verb::Backup(_) => read_backup(setting, options),
        Verb::Restore(_) => read_restore(setting, options),
        Verb::VerifyOnly if read_password(setting, options)? => Ok(true),
        _ => read_reading(setting, options),
    }
}

/// The names of all options that some command reads.
const NAMES: &[&str] = &[
    "CHECKDB",
    "CHECKSUM",
    "COMPRESSION",
    "CONTINUE_AFTER_ERROR",
    "COPYTO",
    "COPY_ONLY",
    "DESCRIPTION",
    "DIFFERENTIAL",
    "DISKRETRYCOUNT",
    "DISKRETRYINTERVAL",
    "DROPDB",
    "DROPDBIFSUCCESSFUL",
    "ERASEFILES",
    "ERASEFILES_ATSTART",
    "ERASEFILES_PRIMARY",
    "ERASEFILES_REMOTE",
    "FILECOUNT",
    "FILEOPTIONS",
    "FORMAT",
    "FULLIFREQUIRED",
    "INIT",
    "KEYSIZE",
    "LOGTO",
    "LOG_ONERROR",
    "LOG_ONERRORONLY",
    "MAXTRANSFERSIZE",
    "MIRRORFILE",
    "MOVE",
    "NAME",
    "NOCOMPRESSWRITE",
    "NOINIT",
    "NOLOG",
    "NORECOVERY",
    "NOWRITE",
    "NO_CHECKSUM",
    "PASSWORD",
    "PASSWORDFILE",
    "RECOVERY",
    "REPLACE",
    "SINGLERESULTSET",
    "SKIP",
    "STOP_ON_ERROR",
    "THREADCOUNT",
    "VERIFY",
];

/// The option of the command that a name was probably meant to be, as a sentence.
fn suggestion(verb: &Verb, name: &str) -> Option<String> {
    let has = |known: &&&str| {
        let setting = Setting {
            name: (**known).to_owned(),
            value: None,
            target: None,
        };
        let mut unused = Options::default();
        // An error says that it needs a value.
        read_common(&setting, &mut unused) != Ok(false)
            || read_own(verb, &setting, &mut unused) != Ok(false)
    };
    let known = NAMES.iter().filter(has).copied();
    did_you_mean(name, known).map(|hint| format!(" {hint}"))
}

/// Reads an option that every command has; returns whether it was one.
fn read_common(setting: &Setting, options: &mut Options) -> Result<bool, String> {
    match setting.name.as_str() {
        "SINGLERESULTSET" => options.single_result = flag(setting)?,
        "LOGTO" => options.log_to = Some(text(setting)?),
        "LOG_ONERROR" if flag(setting)? => options.log_from = WARNING,
        "LOG_ONERRORONLY" if flag(setting)? => options.log_from = NOT_UNDERSTOOD,
        // With no code at all.
        "NOLOG" if flag(setting)? => options.log_from = i64::MAX,
        "DISKRETRYCOUNT" => options.retries = number(setting, 1, 50)?,
        "DISKRETRYINTERVAL" => options.retry_seconds = number(setting, 1, 120)?,
        "MAXTRANSFERSIZE" => {
            let bytes = Some(i64::from(number(setting, 65_536, 4 << 20)?));
            options.backup.transfer_bytes = bytes;
            options.restore.transfer_bytes = bytes;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn read_backup(setting: &Setting, options: &mut Options) -> Result<bool, String> {
    if read_password(setting, options)? {
        return Ok(true);
    }
    let backup = &mut options.backup;
    match setting.name.as_str() {
        "COPY_ONLY" => backup.is_copy_only = flag(setting)?,
        "NOINIT" => return flag(setting),
        "INIT" if flag(setting)? && backup.overwrite == Overwrite::Format => {}
        "INIT" => backup.overwrite = Overwrite::Initialize,
        "FORMAT" if flag(setting)? => backup.overwrite = Overwrite::Format,
        "SKIP" => backup.skips_checks = flag(setting)?,
        "CHECKSUM" => backup.checksum = Some(flag(setting)?),
        "NO_CHECKSUM" => backup.checksum = Some(!flag(setting)?),
        "CONTINUE_AFTER_ERROR" if flag(setting)? => backup.on_damage = OnDamage::Continue,
        "STOP_ON_ERROR" if flag(setting)? => backup.on_damage = OnDamage::Stop,
        "DIFFERENTIAL" => backup.is_differential = flag(setting)?,
        "FULLIFREQUIRED" if flag(setting)? => {
            options.full_if_required = true;
            // A full backup is made instead.
            backup.missing_base = MissingBase::Refuses;
        }
        "VERIFY" => options.verify = flag(setting)?,
        "NOWRITE" if flag(setting)? => backup.probe = Some(Probe::Transform),
        "NOCOMPRESSWRITE" if flag(setting)? => backup.probe = Some(Probe::Read),
        "NAME" => backup.name = Some(text(setting)?),
        "DESCRIPTION" => backup.description = Some(text(setting)?),
        "COMPRESSION" => {
            let fixed = compression(number(setting, 0, 4)?);
            backup.compression = Some(CompressionChoice::Fixed(fixed));
        }
        "THREADCOUNT" => backup.threads = Some(number(setting, 1, 32)?.into()),
        "KEYSIZE" => {
            backup.cipher = Some(match number(setting, 128, 256)? {
                128 => Cipher::Aes128,
                256 => Cipher::Aes256,
                bits => return Err(format!("KEYSIZE is {bits}; it must be 128 or 256.")),
            });
        }
        "FILECOUNT" => options.file_count = number(setting, 1, 32)?,
        "MIRRORFILE" => options.mirror = Some(text(setting)?),
        "COPYTO" => options.copy_to.push(text(setting)?),
        "ERASEFILES" | "ERASEFILES_PRIMARY" => options.erase = Some(policy(setting)?),
        "ERASEFILES_ATSTART" => {
            options.erase = Some(policy(setting)?);
            options.erase_at_start = true;
        }
        "ERASEFILES_REMOTE" => options.erase_remote = Some(policy(setting)?),
        "FILEOPTIONS" => file_options(setting, options)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Reads `PASSWORD` or `PASSWORDFILE`; returns whether the option was one of them. Errors never
/// quote the password.
fn read_password(setting: &Setting, options: &mut Options) -> Result<bool, String> {
    let password = match setting.name.as_str() {
        "PASSWORD" => {
            let text = text(setting)?;
            if text.contains("<OBFUSCATEDPASSWORD>") {
                return Err("PASSWORD is obfuscated, which only SQL Backup Pro undoes; write the password itself to a file and name it with PASSWORDFILE.".to_owned());
            }
            match text.get(..5) {
                Some(prefix) if prefix.eq_ignore_ascii_case("FILE:") => {
                    Password::File(text[5..].to_owned())
                }
                _ => Password::Written(Passphrase::new(text)),
            }
        }
        "PASSWORDFILE" => Password::File(text(setting)?),
        _ => return Ok(false),
    };
    if options.password.replace(password).is_some() {
        return Err("The password is specified twice.".to_owned());
    }
    Ok(true)
}

/// 1 deletes in the folder of copies too, 4 overwrites copies; 2 requests an attribute of Windows.
fn file_options(setting: &Setting, options: &mut Options) -> Result<(), String> {
    let bits = number(setting, 0, 7)?;
    if bits & 2 != 0 {
        return Err(
            "FILEOPTIONS 2 requests the ARCHIVE attribute, which files here do not have."
                .to_owned(),
        );
    }
    if bits & 1 != 0 {
        options.erase_remote = options.erase_remote.or(options.erase);
    }
    options.copies_overwrite |= bits & 4 != 0;
    Ok(())
}

fn read_restore(setting: &Setting, options: &mut Options) -> Result<bool, String> {
    if read_password(setting, options)? || read_checks(setting, options)? {
        return Ok(true);
    }
    let restore = &mut options.restore;
    match setting.name.as_str() {
        "REPLACE" => restore.replaces = flag(setting)?,
        "RECOVERY" if flag(setting)? => restore.recovery = Recovery::Recovery,
        "NORECOVERY" if flag(setting)? => restore.recovery = Recovery::NoRecovery,
        "MOVE" => {
            let target = setting.target.clone().unwrap_or_default();
            restore.moves.push((text(setting)?, target));
        }
        "CHECKDB" => options.check_database = flag(setting)?,
        "DROPDB" if flag(setting)? => options.drops = Drops::Always,
        "DROPDBIFSUCCESSFUL" if flag(setting)? => options.drops = Drops::IfSuccessful,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Reads an option for checksums or damage; returns whether it was one.
fn read_checks(setting: &Setting, options: &mut Options) -> Result<bool, String> {
    let restore = &mut options.restore;
    match setting.name.as_str() {
        "CHECKSUM" => restore.media.needs_checksums = flag(setting)?,
        // Windlass always verifies its own checksums.
        "NO_CHECKSUM" => return flag(setting),
        "CONTINUE_AFTER_ERROR" if flag(setting)? => restore.on_damage = OnDamage::Continue,
        "STOP_ON_ERROR" if flag(setting)? => restore.on_damage = OnDamage::Stop,
        _ => return Ok(false),
    }
    Ok(true)
}

fn read_reading(setting: &Setting, options: &mut Options) -> Result<bool, String> {
    match setting.name.as_str() {
        "PASSWORD" | "PASSWORDFILE" => Err(format!(
            "{} is not needed: headers are not encrypted.",
            setting.name
        )),
        _ => read_checks(setting, options),
    }
}

/// The T-SQL option with the same meaning and the same rules of exclusion.
fn word(setting: &Setting) -> Option<OptionWord> {
    match (setting.name.as_str(), setting.value.as_deref()) {
        ("PASSWORD" | "DIFFERENTIAL", _) => None,
        ("COMPRESSION", Some("0")) => Some(OptionWord::NoCompression),
        (name, _) => OptionWord::find(name),
    }
}

/// The levels, ordered by what they cost and save on database pages (see `docs/codecs.md`).
fn compression(level: u32) -> Compression {
    match level {
        0 => Compression::NONE,
        1 => Compression::ZSTD_LOW,
        2 => Compression::ZSTD_MEDIUM,
        _ => Compression::ZSTD_HIGH,
    }
}

/// Checks that an option has no value.
fn flag(setting: &Setting) -> Result<bool, String> {
    match setting.value {
        None => Ok(true),
        Some(_) => Err(format!("{} takes no value.", setting.name)),
    }
}

fn text(setting: &Setting) -> Result<String, String> {
    let text = setting.value.clone().filter(|text| !text.is_empty());
    text.ok_or_else(|| format!("{} needs a value.", setting.name))
}

fn number(setting: &Setting, least: u32, most: u32) -> Result<u32, String> {
    let text = text(setting)?;
    let number = text
        .parse()
        .ok()
        .filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| {
        format!(
            "{} is {text}; it must be from {least} to {most}.",
            setting.name
        )
    })
}

fn policy(setting: &Setting) -> Result<Policy, String> {
    text(setting)?
        .parse::<Policy>()
        .map_err(|error| format!("{}: {error}.", setting.name))
}
