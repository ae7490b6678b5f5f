//! What SQLite calls: the trees of the running statement, and the collations.
//!
//! Within a statement SQLite keeps dates and identifiers as text, and exact numbers as 16 bytes that
//! sort as the numbers do. In tables that other programs read, exact numbers are SQLite's own.

mod pack;
mod sum;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value as SqliteValue, ValueRef};
use rusqlite::{Connection, Error};
use windlass_base::message::table;

use super::expression::collation::{compare, compare_exactly};
use super::expression::eval::{Inputs, eval};
use super::expression::{Bound, Facts, convert_from, number_in, type_of};
use crate::{DataType, Decimal, Failure, Value};

/// A tree that SQLite calls with the values of its leaves.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) tree: Bound,
    pub(crate) leaf_types: Vec<DataType>,
    /// Whether the leaves come in packs, because they are more than SQLite takes as arguments.
    pub(crate) is_packed: bool,
    /// Whether the result goes into a table.
    pub(crate) is_stored: bool,
}

/// The running statement, shared with the functions of the connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program(Arc<Mutex<Running>>);

#[derive(Debug, Default)]
struct Running {
    trees: Vec<Arc<Compiled>>,
    facts: Option<Arc<Facts>>,
    /// Why the statement failed: SQLite only keeps a text.
    failure: Option<Failure>,
    /// The current database of the session.
    database: String,
}

impl Program {
    pub(crate) fn enter(&self, database: &str) {
        database.clone_into(&mut self.running().database);
    }

    /// The current database of the session.
    pub(crate) fn database(&self) -> String {
        self.running().database.clone()
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the trees of the statement that runs next.
    pub(crate) fn load(&self, trees: Vec<Arc<Compiled>>, facts: Facts) {
        let mut running = self.running();
        running.trees = trees;
        running.facts = Some(Arc::new(facts));
        running.failure = None;
    }

    pub(crate) fn take_failure(&self) -> Option<Failure> {
        self.running().failure.take()
    }

    fn refuse(&self, failure: Failure) -> Error {
        let text = failure.messages.first().map(|message| message.text.clone());
        self.running().failure.get_or_insert(failure);
        Error::UserFunctionError(text.unwrap_or_default().into())
    }

    fn call(&self, context: &Context<'_>) -> rusqlite::Result<SqliteValue> {
        let id: i64 = context.get(0)?;
        let (compiled, facts) = {
            let running = self.running();
            let compiled = usize::try_from(id)
                .ok()
                .and_then(|id| running.trees.get(id).cloned());
            (compiled, running.facts.clone())
        };
        let (Some(compiled), Some(facts)) = (compiled, facts) else {
            return Err(self.refuse(table::internal_consistency().into()));
        };
        let Some(leaves) = leaves(&compiled, context) else {
            return Err(self.refuse(table::internal_consistency().into()));
        };
        let inputs = Inputs {
            leaves: &leaves,
            facts: &facts,
            variables: None,
        };
        let value = eval(&compiled.tree, &inputs).and_then(|value| match compiled.is_stored {
            true => kept(&value),
            false => Ok(encode(&value, compiled.tree.ty)),
        });
        value.map_err(|failure| self.refuse(failure))
    }

    /// Adds the functions and collations to a connection.
    pub(crate) fn register(&self, connection: &Connection) -> rusqlite::Result<()> {
        let text = FunctionFlags::SQLITE_UTF8;
        let program = self.clone();
        let constant = text | FunctionFlags::SQLITE_DETERMINISTIC;
        connection.create_scalar_function("windlass_eval", -1, constant, move |context| {
            program.call(context)
        })?;
        let program = self.clone();
        connection.create_scalar_function("windlass_each", -1, text, move |context| {
            program.call(context)
        })?;
        let program = self.clone();
        connection.create_scalar_function(
            "windlass_single",
            2,
            text,
            move |context| match context.get::<i64>(1)? {
                0 | 1 => context.get::<SqliteValue>(0),
                _ => Err(program.refuse(table::subquery_many_rows().into())),
            },
        )?;
        let program = self.clone();
        connection.create_scalar_function("windlass_level", 2, text, move |context| {
            let (level, most) = (context.get::<i64>(0)? + 1, context.get::<i64>(1)?);
            match most > 0 && level > most {
                true => Err(program.refuse(table::recursion_exhausted(most).into())),
                false => Ok(level),
            }
        })?;
        let program = self.clone();
        connection.create_scalar_function("windlass_number", 1, constant, move |context| {
            let value = decode(context.get_raw(0), DataType::Variant);
            let number = number_in(&value, DataType::Float);
            number
                .map(|number| stored(&number))
                .map_err(|failure| program.refuse(failure))
        })?;
        let sum = sum::Sum(self.clone());
        connection.create_window_function("windlass_sum", 1, constant, sum)?;
        connection.create_scalar_function("windlass_pack", -1, constant, |context| {
            Ok(pack::packed(
                (0..context.len()).map(|index| context.get_raw(index)),
            ))
        })?;
        connection.create_scalar_function("windlass_split", 2, constant, |context| {
            let (Some(text), Some(separator)) = (
                context.get::<Option<String>>(0)?,
                context.get::<Option<String>>(1)?,
            ) else {
                return Ok("[]".to_owned());
            };
            let parts: Vec<&str> = match separator.is_empty() {
                true => vec![text.as_str()],
                false => text.split(separator.as_str()).collect(),
            };
            Ok(serde_json::json!(parts).to_string())
        })?;
        connection.create_collation("windlass_ci", compare)?;
        connection.create_collation("windlass_bin", compare_exactly)
    }
}

/// The values of a tree's leaves; `None` if they do not fit the tree.
fn leaves(compiled: &Compiled, context: &Context<'_>) -> Option<Vec<Value>> {
    let types = &compiled.leaf_types;
    let arguments = (1..context.len()).map(|index| context.get_raw(index));
    let mut leaves = Vec::with_capacity(types.len());
    if compiled.is_packed {
        for pack in arguments {
            for value in pack::unpacked(pack.as_blob().ok()?) {
                let ty = types.get(leaves.len())?;
                leaves.push(decode(value?, *ty));
            }
        }
    } else {
        let each = arguments.zip(types);
        leaves.extend(each.map(|(value, ty)| decode(value, *ty)));
    }
    (leaves.len() == types.len()).then_some(leaves)
}

/// A value as SQLite keeps it within a statement.
pub(crate) fn encode(value: &Value, ty: DataType) -> SqliteValue {
    let Value::Decimal(decimal) = value else {
        return stored(value);
    };
    let Some((_, scale)) = ty.digits() else {
        return stored(value);
    };
    let exact = decimal.rescaled(scale).unwrap_or(*decimal).unscaled();
    SqliteValue::Blob(sortable(exact).to_vec())
}

/// With the sign turned, the bytes sort as the numbers do.
fn sortable(exact: i128) -> [u8; 16] {
    ((exact as u128) ^ (1 << 127)).to_be_bytes()
}

fn exact(sortable: &[u8]) -> Option<i128> {
    let bytes = <[u8; 16]>::try_from(sortable).ok()?;
    Some((u128::from_be_bytes(bytes) ^ (1 << 127)) as i128)
}

/// A value as tables keep it, unless they would change it.
pub(crate) fn kept(value: &Value) -> Result<SqliteValue, Failure> {
    match (value, stored(value)) {
        // In a column of numbers, SQLite makes a float of the text.
        (Value::Decimal(_), SqliteValue::Text(digits)) => {
            Err(table::number_too_long(digits).into())
        }
        (_, stored) => Ok(stored),
    }
}

/// A value as tables keep it.
pub(crate) fn stored(value: &Value) -> SqliteValue {
    match value {
        Value::Null => SqliteValue::Null,
        Value::Bit(bit) => SqliteValue::Integer(i64::from(*bit)),
        Value::Integer(number) => SqliteValue::Integer(*number),
        Value::Float(number) => SqliteValue::Real(*number),
        Value::Decimal(decimal) => {
            let whole = decimal
                .rescaled(0)
                .filter(|whole| whole.compare(*decimal).is_eq());
            match whole.and_then(|whole| i64::try_from(whole.truncated()).ok()) {
                Some(number) => SqliteValue::Integer(number),
                None if decimal.precision() <= 15 => SqliteValue::Real(decimal.to_f64()),
                // More digits than a float has stay text.
                None => SqliteValue::Text(decimal.to_string()),
            }
        }
        Value::Binary(bytes) => SqliteValue::Blob(bytes.clone()),
        // In the history's format, so that comparing the texts compares the dates.
        Value::DateTime(at) | Value::DateTime2(at) => {
            SqliteValue::Text(at.strftime("%Y-%m-%d %H:%M:%S%.f").to_string())
        }
        other => SqliteValue::Text(other.to_string()),
    }
}

/// A value of SQLite as a value of the type `ty`. What is of another kind stays what it is.
pub(crate) fn decode(value: ValueRef<'_>, ty: DataType) -> Value {
    let plain = match value {
        ValueRef::Null => return Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Float(number),
        ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => {
            if let (Some((_, scale)), Some(exact)) = (ty.digits(), exact(bytes)) {
                return Decimal::scaled(exact, scale).map_or(Value::Null, Value::Decimal);
            }
            Value::Binary(bytes.to_vec())
        }
    };
    let is_kept = match (&plain, ty) {
        (_, DataType::Variant | DataType::Null | DataType::Binary { .. })
        | (
            Value::Text(_),
            DataType::Text { .. } | DataType::Integer(_) | DataType::Bit | DataType::Float,
        )
        | (Value::Float(_), DataType::Float)
        | (Value::Integer(_), DataType::Integer(_)) => true,
        // A number is no date here.
        (Value::Integer(_) | Value::Float(_), ty) => ty.is_date() || ty.is_text(),
        _ => false,
    };
    if is_kept {
        return plain;
    }
    let exact = match ty {
        DataType::SmallDateTime => DataType::DateTime,
        // The digits of a column are not checked when it is read.
        DataType::Decimal { scale, .. } => DataType::Decimal {
            precision: 38,
            scale,
        },
        other => other,
    };
    convert_from(&plain, type_of(&plain), exact, None).unwrap_or(plain)
}
