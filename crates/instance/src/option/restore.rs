//! The options of RESTORE, for all of its statements.

use windlass_base::message::table;
use windlass_pipeline::{OnDamage, Tuning};
use windlass_source::Recovery;
use windlass_tsql::ast::RestoreOption;
use windlass_tsql::option::{OptionWord, RESTORE, StatementKind};
use windlass_tsql::span::Spanned;

use super::{block_size, buffer_count, check, file, number, refused, stats, text, transfer_size};
use crate::{Environment, Failure};

/// What the options of a RESTORE say.
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
#[derive(Debug, Clone)]
pub(crate) struct RestoreChoices {
    pub(crate) recovery: Recovery,
    /// Logical names and the paths they go to, as written.
    pub(crate) moves: Vec<(String, String)>,
    pub(crate) replace: bool,
    pub(crate) restart: bool,
    /// `FILE = n`
    pub(crate) position: Option<u16>,
    pub(crate) media_name: Option<String>,
    pub(crate) block_bytes: Option<u32>,
    pub(crate) tuning: Tuning,
    /// `CHECKSUM`: the set must have checksums.
    pub(crate) needs_checksums: bool,
    /// What was written; each statement has its own default.
    pub(crate) on_damage: Option<OnDamage>,
    pub(crate) stats: Option<u32>,
    pub(crate) loads_history: bool,
    /// `WITHOUTKEY`: encrypted sets are checked by their checksums alone.
    pub(crate) without_key: bool,
    /// `AS_IS`: what is restored need not be a database.
    pub(crate) as_is: bool,
    /// `ALLOW_UNENCRYPTED`: a set may follow upon one that is better protected.
    pub(crate) allows_unencrypted: bool,
    /// `SIGNED_BY`: files of public keys, one of which must have signed the set.
    pub(crate) signed_by: Vec<String>,
}

impl RestoreChoices {
    fn new() -> Self {
        Self {
            recovery: Recovery::Recovery,
            moves: Vec::new(),
            replace: false,
            restart: false,
            position: None,
            media_name: None,
            block_bytes: None,
            tuning: Tuning::default(),
            needs_checksums: false,
            on_damage: None,
            stats: None,
            loads_history: false,
            without_key: false,
            as_is: false,
            allows_unencrypted: false,
            signed_by: Vec::new(),
        }
    }
}

/// Reads the options of a RESTORE statement.
///
/// # Errors
/// 3031, 3032, 3217, 3250, 3253, 4353, and the refusal of what is not built.
pub(crate) fn choose(
    options: &[Spanned<RestoreOption>],
    statement: StatementKind,
    environment: &mut dyn Environment,
) -> Result<RestoreChoices, Failure> {
    let words: Vec<OptionWord> = options.iter().map(|option| option.word()).collect();
    check(&words, RESTORE, statement)?;
    let mut choices = RestoreChoices::new();
    for option in options {
        apply(&option.node, &mut choices, environment)?;
    }
    Ok(choices)
}

fn apply(
    option: &RestoreOption,
    choices: &mut RestoreChoices,
    environment: &mut dyn Environment,
) -> Result<(), Failure> {
    use RestoreOption as O;
    match option {
        O::Recovery => choices.recovery = Recovery::Recovery,
        O::NoRecovery => choices.recovery = Recovery::NoRecovery,
        O::Move { logical, path } => {
            let logical = text(&logical.node, environment)?.unwrap_or_default();
            let path = text(&path.node, environment)?.unwrap_or_default();
            add_move(choices, logical, path)?;
        }
        O::Replace => choices.replace = true,
        O::Restart => choices.restart = true,
        O::File(value) => {
            let position = number(
                OptionWord::File,
                value,
                1..=i64::from(u16::MAX),
                environment,
            )?;
            choices.position = u16::try_from(position).ok();
        }
        O::MediaName(value) => choices.media_name = text(value, environment)?,
        O::BlockSize(_) | O::BufferCount(_) | O::MaxTransferSize(_) => {
            apply_tuning(option, choices, environment)?;
        }
        O::Checksum => choices.needs_checksums = true,
        O::StopOnError => choices.on_damage = Some(OnDamage::Stop),
        O::ContinueAfterError => choices.on_damage = Some(OnDamage::Continue),
        O::Stats(value) => choices.stats = Some(stats(value.as_ref(), environment)?),
        O::LoadHistory => choices.loads_history = true,
        O::WithoutKey => choices.without_key = true,
        O::AsIs => choices.as_is = true,
        O::AllowUnencrypted => choices.allows_unencrypted = true,
        O::SignedBy(value) => choices
            .signed_by
            .push(file(option.word(), value, environment)?),
        // Checksums of ours are verified always; tapes are not known on disk.
        O::NoChecksum | O::Rewind | O::NoRewind | O::Unload | O::NoUnload | O::Verbose => {}
        O::Partial
        | O::Standby(_)
        | O::RestrictedUser
        | O::Credential(_)
        | O::Password(_)
        | O::MediaPassword(_)
        | O::KeepReplication
        | O::KeepCdc
        | O::KeepTemporalRetention
        | O::Filestream { .. }
        | O::EnableBroker
        | O::ErrorBrokerConversations
        | O::NewBroker
        | O::MetadataOnly
        | O::Snapshot
        | O::DbName(_)
        | O::RestoreOptions(_)
        | O::StopAt(_)
        | O::StopAtMark(_)
        | O::StopBeforeMark(_)
        | O::CommitDifferentialBase
        | O::SnapshotImport
        | O::SnapshotRestorePhase(_)
        | O::EnhancedIntegrity(_) => {
            return Err(refused(option.word()));
        }
    }
    Ok(())
}

/// The numbers of the run.
fn apply_tuning(
    option: &RestoreOption,
    choices: &mut RestoreChoices,
    environment: &mut dyn Environment,
) -> Result<(), Failure> {
    use RestoreOption as O;
    match option {
        O::BlockSize(value) => choices.block_bytes = Some(block_size(value, environment)?),
        O::BufferCount(value) => {
            choices.tuning.buffer_count = Some(buffer_count(value, environment)?);
        }
        O::MaxTransferSize(value) => {
            choices.tuning.transfer_bytes = Some(transfer_size(value, environment)?);
        }
        _ => {}
    }
    Ok(())
}

fn add_move(choices: &mut RestoreChoices, logical: String, path: String) -> Result<(), Failure> {
    if choices
        .moves
        .iter()
        .any(|(known, _)| known.eq_ignore_ascii_case(&logical))
    {
        return Err(table::move_given_twice(logical).into());
    }
    choices.moves.push((logical, path));
    Ok(())
}
