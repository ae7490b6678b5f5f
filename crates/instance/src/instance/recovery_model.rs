//! The recovery model of a database of either kind.

use windlass_catalog::DatabaseRecord;
use windlass_engine::RecoveryModel;

use super::Instance;

impl Instance {
    /// The recovery model of a database, as `sys.databases` has it: SIMPLE where it is not known.
    pub(crate) fn recovery_model(&self, record: &DatabaseRecord) -> RecoveryModel {
        let is_full = match &record.log_path {
            Some(log) => self.engines.recovery_model(log) == Some(RecoveryModel::Full),
            None => self.kept_log(record).is_some(),
        };
        match is_full {
            true => RecoveryModel::Full,
            false => RecoveryModel::Simple,
        }
    }
}
