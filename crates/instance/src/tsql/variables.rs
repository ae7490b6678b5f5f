//! The variables of a batch.

use std::collections::BTreeMap;

use windlass_base::message::table;

use crate::{DataType, Failure, Value, assign};

/// Declared variables; names are case-insensitive.
#[derive(Debug, Clone, Default)]
pub struct Variables(BTreeMap<String, (DataType, Value)>);

impl Variables {
    /// Removes all variables at the start of a batch.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Declares a variable with its first value.
    ///
    /// # Errors
    /// 134 if it already exists; a failed conversion.
    pub fn declare(
        &mut self,
        name: &str,
        data_type: DataType,
        value: &Value,
    ) -> Result<(), Failure> {
        if self.0.contains_key(&key(name)) {
            return Err(Failure::ending(table::variable_declared_twice(name)));
        }
        let value = assign(value, data_type)?;
        self.0.insert(key(name), (data_type, value));
        Ok(())
    }

    /// Assigns a value to a declared variable.
    ///
    /// # Errors
    /// 137 if it was not declared; a failed conversion.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), Failure> {
        let (data_type, held) = self.0.get_mut(&key(name)).ok_or_else(|| undeclared(name))?;
        *held = assign(value, *data_type)?;
        Ok(())
    }

    /// The value of a declared variable.
    ///
    /// # Errors
    /// 137 if it was not declared.
    pub fn value(&self, name: &str) -> Result<Value, Failure> {
        self.0
            .get(&key(name))
            .map(|(_, value)| value.clone())
            .ok_or_else(|| undeclared(name))
    }
}

fn key(name: &str) -> String {
    name.to_lowercase()
}

fn undeclared(name: &str) -> Failure {
    Failure::ending(table::undeclared_variable(name))
}
