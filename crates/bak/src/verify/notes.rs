//! What a verification says of transactions and of encrypted pages: neither is damage.

use super::State;

/// Maximum number of open transactions that are named.
const TRANSACTIONS_NAMED: usize = 100;

impl State {
    /// Says that pages seem to be encrypted: their own checks say nothing of their content.
    pub(super) fn report_sealed(&mut self) {
        if let Some((first, flags)) = self.first_sealed {
            self.unchecked.push(format!(
                "the content of {} pages that seem to be encrypted, as in a database with transparent data \
                 encryption, of which no backup was ever seen (the first is {first}, with the page flags {flags:#06x}). \
                 Allocation maps may be encrypted, too: then they do not match the extents",
                self.sealed_pages
            ));
        }
    }

    /// Names the transactions that a server would undo.
    pub(super) fn report_transactions(&mut self) {
        let log = std::mem::take(&mut self.transactions);
        self.checked.log_records = log.records;
        let open = log.open();
        let named = open.iter().take(TRANSACTIONS_NAMED);
        self.notes.extend(named.map(ToString::to_string));
        if open.len() > TRANSACTIONS_NAMED {
            let more = open.len() - TRANSACTIONS_NAMED;
            self.notes
                .push(format!("{more} more transactions have no end in the log"));
        }
        if log.unreadable_blocks > 0 {
            self.unchecked.push(format!(
                "whether all transactions had ended: the records of {} log blocks cannot be read",
                log.unreadable_blocks
            ));
        } else if log.is_cut {
            self.unchecked.push(
                "whether more transactions had not ended: the log has more than are kept in memory"
                    .to_owned(),
            );
        }
    }
}
