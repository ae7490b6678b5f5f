//! Recursive common tables: a column counts the depth of each row, and its greatest value ends the query.

use windlass_base::message::table as messages;
use windlass_tsql::ast::{Body, Query, SetOperator};

use super::Binder;
use super::query::BoundQuery;
use crate::{DataType, Failure};

type Result<T> = std::result::Result<T, Failure>;

/// How deep a common table may be without OPTION (MAXRECURSION n), and at most with it; 0 is no limit.
const DEFAULT: u32 = 100;
const MOST: u32 = 32_767;

/// The column that counts the depth.
pub(super) const LEVEL: &str = "\"windlass level\"";

/// A common table that is being defined: its place among them, and how deep it may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defining {
    pub(super) index: usize,
    pub(super) most: u32,
}

/// The recursion of the statement.
#[derive(Debug)]
pub(super) struct Recursion {
    pub(super) defining: Option<Defining>,
    /// `OPTION (MAXRECURSION n)`
    pub(super) most: u32,
    /// Whether the SELECT that was bound last reads the table that is being defined.
    pub(super) has_level: bool,
}

impl Default for Recursion {
    fn default() -> Self {
        Self {
            defining: None,
            most: DEFAULT,
            has_level: false,
        }
    }
}

impl Binder<'_> {
    /// `OPTION (MAXRECURSION n)`
    pub(super) fn limit_recursion(&mut self, query: &Query) -> Result<()> {
        match query.max_recursion {
            Some(most) if most > MOST => {
                return Err(messages::recursion_limit_invalid(most).into());
            }
            Some(most) => self.recursion.most = most,
            None => {}
        }
        Ok(())
    }

    /// A recursive table is joined by UNION ALL, and its parts have the types of the first.
    pub(super) fn check_recursion(
        &self,
        others: &[(SetOperator, Body)],
        parts: &[BoundQuery],
        levels: &[bool],
        types: &[DataType],
    ) -> Result<()> {
        let defining = self.recursion.defining;
        let common = defining.and_then(|defining| self.commons.get(defining.index));
        let name = common.map_or("", |common| common.name.as_str());
        if others
            .iter()
            .any(|(operator, _)| *operator != SetOperator::UnionAll)
        {
            return Err(messages::recursion_without_union_all(name).into());
        }
        let alike = |one: DataType, two: DataType| {
            one == two || one.is_text() && two.is_text() || one.is_whole() && two.is_whole()
        };
        let recursive = parts.iter().zip(levels).filter(|(_, level)| **level);
        for (part, _) in recursive {
            let mut columns = part.outputs.iter().zip(types).enumerate();
            if let Some((index, _)) = columns.find(|(_, (output, ty))| !alike(output.ty, **ty)) {
                let column = common.and_then(|common| common.columns.get(index));
                let column = column.map_or("", |(column, _)| column.as_str());
                return Err(messages::recursion_types_differ(column, name).into());
            }
        }
        Ok(())
    }
}
