//! Conversion between the words of the table and the variants of the syntax tree.
//!
//! Invariant: a plain option's variant has the name of its [`OptionWord`], so one list of names
//! serves both directions.

use super::OptionWord;
use crate::ast::{BackupOption, RestoreOption, Value};

macro_rules! plain_options {
    (
        $option:ident,
        flags: [$($flag:ident)*],
        values: [$($valued:ident)*],
        others: [$($other:ident $other_word:ident)*]
    ) => {
        impl $option {
            /// The first word of the option.
            pub fn word(&self) -> OptionWord {
                match self {
                    $(Self::$flag => OptionWord::$flag,)*
                    $(Self::$valued(_) => OptionWord::$valued,)*
                    $(Self::$other { .. } => OptionWord::$other_word,)*
                }
            }

            /// The value of an option with a word and a value; `None` for all other options.
            pub fn value(&self) -> Option<&Value> {
                match self {
                    $(Self::$valued(value) => Some(value),)*
                    _ => None,
                }
            }

            /// The option that consists only of `word`.
            pub(crate) fn from_flag(word: OptionWord) -> Option<Self> {
                match word {
                    $(OptionWord::$flag => Some(Self::$flag),)*
                    _ => None,
                }
            }

            /// The option that consists of `word` and a value.
            pub(crate) fn from_value(word: OptionWord, value: Value) -> Option<Self> {
                match word {
                    $(OptionWord::$valued => Some(Self::$valued(value)),)*
                    _ => None,
                }
            }
        }
    };
}

plain_options! {
    BackupOption,
    flags: [
        Differential CopyOnly NoCompression NoEncryption FileSnapshot MetadataOnly Snapshot Init NoInit
        Skip NoSkip Format NoFormat Checksum NoChecksum StopOnError ContinueAfterError Restart Rewind
        NoRewind Unload NoUnload NoRecovery NoTruncate NoWrite NoCompressWrite AsIs
    ],
    values: [
        Name Description ExpireDate RetainDays MediaName MediaDescription Password MediaPassword
        BlockSize BufferCount MaxTransferSize BackupOptions Standby MaxRate MaxWriteRate
        SignWith
    ],
    others: [
        Compression Compression Encryption Encryption Credential Credential Stats Stats
        ThreadCount ThreadCount LevelAuto Level Goal Goal Integrity Integrity
    ]
}

plain_options! {
    RestoreOption,
    flags: [
        Partial Recovery NoRecovery Replace Restart RestrictedUser Checksum NoChecksum StopOnError
        ContinueAfterError Rewind NoRewind Unload NoUnload KeepReplication KeepCdc KeepTemporalRetention
        EnableBroker ErrorBrokerConversations NewBroker MetadataOnly Snapshot Verbose LoadHistory
        WithoutKey
        CommitDifferentialBase SnapshotImport AsIs AllowUnencrypted
    ],
    values: [
        Standby File Password MediaPassword MediaName BlockSize BufferCount MaxTransferSize
        RestoreOptions StopAt SnapshotRestorePhase EnhancedIntegrity SignedBy
    ],
    others: [
        Move Move Credential Credential Stats Stats Filestream Filestream DbName DbName
        StopAtMark StopAtMark StopBeforeMark StopBeforeMark
    ]
}
