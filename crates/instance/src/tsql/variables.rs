//! The variables of a batch.

use std::collections::BTreeMap;

use windlass_base::message::table;

use super::expression::convert_from;
use crate::{DataType, Failure, Value};

/// Declared variables; names are case-insensitive.
#[derive(Debug, Clone, Default)]
pub struct Variables(BTreeMap<String, (DataType, Value)>);

impl Variables {
    /// Removes all variables at the start of a batch.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Declares a variable with its first value, which has the type `from`. A declaration in a loop runs
    /// again, and keeps the value if it gives none.
    ///
    /// # Errors
    /// A failed conversion.
    pub fn declare(
        &mut self,
        name: &str,
        data_type: DataType,
        value: Option<(Value, DataType)>,
    ) -> Result<(), Failure> {
        let known = self.0.entry(key(name)).or_insert((data_type, Value::Null));
        if let Some((value, from)) = value {
            known.1 = convert_from(&value, from, data_type, None)?;
        }
        Ok(())
    }

    /// Assigns a value of the type `from` to a declared variable.
    ///
    /// # Errors
    /// 137 if it was not declared; a failed conversion.
    pub(crate) fn set(&mut self, name: &str, value: &Value, from: DataType) -> Result<(), Failure> {
        let (data_type, held) = self.0.get_mut(&key(name)).ok_or_else(|| undeclared(name))?;
        *held = convert_from(value, from, *data_type, None)?;
        Ok(())
    }

    /// The value of a declared variable.
    ///
    /// # Errors
    /// 137 if it was not declared.
    pub fn value(&self, name: &str) -> Result<Value, Failure> {
        let found = self.0.get(&key(name));
        found
            .map(|(_, value)| value.clone())
            .ok_or_else(|| undeclared(name))
    }

    /// The type of a declared variable.
    ///
    /// # Errors
    /// 137 if it was not declared.
    pub(crate) fn data_type(&self, name: &str) -> Result<DataType, Failure> {
        let found = self.0.get(&key(name));
        found.map(|(ty, _)| *ty).ok_or_else(|| undeclared(name))
    }
}

fn key(name: &str) -> String {
    name.to_lowercase()
}

fn undeclared(name: &str) -> Failure {
    Failure::ending(table::undeclared_variable(name))
}
