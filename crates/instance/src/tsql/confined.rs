//! Sessions that touch no files, for fuzzing: which statements they run, and how many.

use std::sync::atomic::Ordering;

use windlass_tsql::ast::{SqlTree, Statement};

use super::procedure::touches_files as procedure_touches_files;
use crate::Session;

/// Whether a statement reads or changes files, settings or the instance, or may wait.
fn touches_files(statement: &Statement) -> bool {
    if matches!(statement, control_flow!()) {
        return false;
    }
    match statement {
        Statement::Declare(_)
        | Statement::DeclareTable { .. }
        | Statement::SetVariable(_)
        | Statement::SetOption(_)
        | Statement::Print(_)
        | Statement::Transaction(_)
        | Statement::Throw(_)
        | Statement::RaiseError(_)
        | Statement::ExecuteText(_)
        | Statement::Cursor(_)
        | Statement::DefineProcedure(_)
        | Statement::DropProcedure(_) => false,
        Statement::Execute(execute) => procedure_touches_files(&execute.procedure.node.object.text),
        // SQLite's own words attach files and write to them.
        Statement::Sql(sql) => matches!(sql.tree, SqlTree::Native),
        _ => true,
    }
}

impl Session {
    /// Runs only statements that touch no files, and cancels itself after so many.
    #[must_use]
    pub(crate) fn confined(mut self, steps: u32) -> Self {
        self.steps_left = Some(steps);
        self
    }

    /// Counts a statement of a confined session; whether it runs.
    pub(crate) fn permits(&mut self, statement: &Statement) -> bool {
        let Some(left) = self.steps_left else {
            return true;
        };
        self.steps_left = Some(left.saturating_sub(1));
        if left == 0 {
            self.cancel_flag().store(true, Ordering::Relaxed);
        }
        left > 0 && !touches_files(statement)
    }

    /// Checks that what a batch opened was closed.
    pub(crate) fn assert_outermost(&self) {
        assert_eq!(
            (self.tries, self.nesting, self.caught.len()),
            (0, 0, 0),
            "TRY, batches and CATCH that are open"
        );
    }
}
