//! The sum of exact numbers.

use rusqlite::functions::{Aggregate, Context, WindowAggregate};
use rusqlite::types::{Value as SqliteValue, ValueRef};
use rusqlite::{Error, Result};
use windlass_base::message::table;

use super::{Program, exact, sortable};
use crate::Decimal;

/// `windlass_sum`, also with OVER.
pub(super) struct Sum(pub(super) Program);

#[derive(Debug, Default)]
pub(super) struct Total {
    /// Without the point.
    exact: i128,
    /// How many values are not NULL.
    count: u64,
}

impl Sum {
    fn overflow(&self) -> Error {
        self.0.refuse(table::arithmetic_overflow("numeric").into())
    }

    fn inconsistent(&self) -> Error {
        self.0.refuse(table::internal_consistency().into())
    }

    fn argument(&self, context: &Context<'_>) -> Result<Option<i128>> {
        match context.get_raw(0) {
            ValueRef::Null => Ok(None),
            ValueRef::Blob(bytes) => exact(bytes).map(Some).ok_or_else(|| self.inconsistent()),
            _ => Err(self.inconsistent()),
        }
    }

    fn shown(&self, total: &Total) -> Result<SqliteValue> {
        if total.count == 0 {
            return Ok(SqliteValue::Null);
        }
        match Decimal::whole(total.exact) {
            Some(_) => Ok(SqliteValue::Blob(sortable(total.exact).to_vec())),
            None => Err(self.overflow()),
        }
    }
}

impl Aggregate<Total, SqliteValue> for Sum {
    fn init(&self, _: &mut Context<'_>) -> Result<Total> {
        Ok(Total::default())
    }

    fn step(&self, context: &mut Context<'_>, total: &mut Total) -> Result<()> {
        if let Some(value) = self.argument(context)? {
            let sum = total.exact.checked_add(value);
            total.exact = sum.ok_or_else(|| self.overflow())?;
            total.count += 1;
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, total: Option<Total>) -> Result<SqliteValue> {
        self.shown(&total.unwrap_or_default())
    }
}

impl WindowAggregate<Total, SqliteValue> for Sum {
    fn value(&self, total: Option<&mut Total>) -> Result<SqliteValue> {
        total.map_or(Ok(SqliteValue::Null), |total| self.shown(total))
    }

    fn inverse(&self, context: &mut Context<'_>, total: &mut Total) -> Result<()> {
        if let Some(value) = self.argument(context)? {
            let rest = total.exact.checked_sub(value);
            total.exact = rest.ok_or_else(|| self.overflow())?;
            total.count = total.count.saturating_sub(1);
        }
        Ok(())
    }
}
