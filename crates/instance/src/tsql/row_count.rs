//! What a statement that succeeded leaves in `@@ROWCOUNT` and `@@ERROR`.

use windlass_tsql::ast::{Cursor, Statement};

use crate::Session;

impl Session {
    pub(crate) fn succeeded(&mut self, statement: &Statement) {
        if let Some(count) = counted(statement) {
            self.row_count = count;
        }
        // Reading @@ERROR or declaring a variable must not reset it.
        if !matches!(statement, Statement::Declare(_)) {
            self.last_error = self.keeps_error.take().unwrap_or(0);
        }
    }
}

/// What `@@ROWCOUNT` is after a statement without rows; `None` if it stays, or the statement sets it.
fn counted(statement: &Statement) -> Option<i64> {
    match statement {
        Statement::SetVariable(_) => Some(1),
        Statement::Declare(declared) => {
            let has_value = declared.iter().any(|one| one.value.is_some());
            has_value.then_some(1)
        }
        Statement::Use(_)
        | Statement::SetOption(_)
        | Statement::Print(_)
        | Statement::RaiseError(_)
        | Statement::Transaction(_)
        | Statement::Cursor(Cursor::Close(_) | Cursor::Deallocate(_)) => Some(0),
        _ => None,
    }
}
