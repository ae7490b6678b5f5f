//! Requests of a client after its login: batches, procedure calls, transactions.

use crate::Error;
use crate::cursor::{Cursor, utf16};
use crate::data_type::DataType;
use crate::value::Value;

/// SQL Server's own limit.
pub const PARAMETERS_MAX: usize = 2100;

const TRANSACTION_HEADER: u16 = 2;
/// Separates two calls of one message.
const NEXT_CALL: u8 = 0xFF;
const NEXT_CALL_UNRUN: u8 = 0xFE;
const BY_NUMBER: u16 = 0xFFFF;
const OUTPUT: u8 = 0x01;
const DEFAULT: u8 = 0x02;
const ENCRYPTED: u8 = 0x08;

/// `ALL_HEADERS`, which precede every request. Only the transaction matters.
fn headers(from: &mut Cursor<'_>) -> Result<u64, Error> {
    const WHAT: &str = "ALL_HEADERS";
    let invalid = |found: u32| Error::invalid(WHAT, found);
    let total = from.u32()?;
    let bytes = (total as usize).checked_sub(4).ok_or(invalid(total))?;
    let mut headers = from.window(bytes)?;
    let mut transaction = 0;
    while !headers.is_empty() {
        let length = headers.u32()?;
        let bytes = (length as usize).checked_sub(4).ok_or(invalid(length))?;
        let mut header = headers.window(bytes)?;
        if header.u16()? == TRANSACTION_HEADER {
            transaction = header.u64()?;
        }
    }
    Ok(transaction)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The client's current transaction; 0 for none.
    pub transaction: u64,
    pub text: String,
}

impl Batch {
    /// Reads the payload of a message of [`Kind::Batch`](crate::packet::Kind::Batch).
    pub fn parse(payload: &[u8]) -> Result<Self, Error> {
        let mut from = Cursor::new(payload, "a batch");
        let transaction = headers(&mut from)?;
        let text = from.rest();
        if !text.len().is_multiple_of(2) {
            return Err(Error::invalid("length of a batch", text.len() as u64));
        }
        Ok(Self {
            transaction,
            text: utf16(text),
        })
    }
}

/// The called procedure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Procedure {
    Named(String),
    /// `sp_executesql`
    ExecuteSql,
    /// `sp_prepare`
    Prepare,
    /// `sp_execute`
    Execute,
    /// `sp_prepexec`
    PrepareExecute,
    /// `sp_unprepare`
    Unprepare,
    /// `sp_cursor` and related procedures, by number.
    Cursor(u16),
}

impl Procedure {
    fn parse(from: &mut Cursor<'_>) -> Result<Self, Error> {
        let units = from.u16()?;
        if units != BY_NUMBER {
            return from
                .take(2 * usize::from(units))
                .map(|name| Self::of_name(utf16(name)));
        }
        Ok(match from.u16()? {
            number @ 1..=9 => Self::Cursor(number),
            10 => Self::ExecuteSql,
            11 => Self::Prepare,
            12 => Self::Execute,
            13 | 14 => Self::PrepareExecute,
            15 => Self::Unprepare,
            number => return Err(Error::invalid("number of a procedure", number)),
        })
    }

    /// Drivers call the same procedures by number and by name.
    fn of_name(name: String) -> Self {
        match &*name.to_ascii_lowercase() {
            "sp_executesql" => Self::ExecuteSql,
            "sp_prepare" => Self::Prepare,
            "sp_execute" => Self::Execute,
            "sp_prepexec" => Self::PrepareExecute,
            "sp_unprepare" => Self::Unprepare,
            _ => Self::Named(name),
        }
    }
}

/// A parameter of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Its name including the `@`; empty for a positional parameter.
    pub name: String,
    /// Whether its value after the call is requested.
    pub is_output: bool,
    /// Whether the procedure's default is requested.
    pub is_default: bool,
    pub data_type: DataType,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub procedure: Procedure,
    /// Column descriptions are not to be sent again.
    pub omits_metadata: bool,
    /// The call is only described, not run.
    pub is_unrun: bool,
    pub parameters: Vec<Parameter>,
}

/// All calls of one message.
#[derive(Debug, Clone, PartialEq)]
pub struct Rpc {
    /// The client's current transaction; 0 for none.
    pub transaction: u64,
    /// The calls, in order; at least one.
    pub calls: Vec<Call>,
}

impl Rpc {
    /// Reads the payload of a message of [`Kind::Rpc`](crate::packet::Kind::Rpc).
    pub fn parse(payload: &[u8]) -> Result<Self, Error> {
        let mut from = Cursor::new(payload, "a procedure call");
        let transaction = headers(&mut from)?;
        let mut calls = vec![call(&mut from)?];
        while !from.is_empty() {
            let separator = from.u8()?;
            if let Some(last) = calls.last_mut() {
                last.is_unrun = separator == NEXT_CALL_UNRUN;
            }
            if !from.is_empty() {
                calls.push(call(&mut from)?);
            }
        }
        Ok(Self { transaction, calls })
    }
}

/// A call, up to the end or the separator before the next one, which is not consumed.
fn call(from: &mut Cursor<'_>) -> Result<Call, Error> {
    let procedure = Procedure::parse(from)?;
    let options = from.u16()?;
    let mut parameters = Vec::new();
    while !matches!(
        from.rest().first(),
        None | Some(&(NEXT_CALL | NEXT_CALL_UNRUN))
    ) {
        if parameters.len() == PARAMETERS_MAX {
            return Err(Error::invalid(
                "number of parameters",
                PARAMETERS_MAX as u64 + 1,
            ));
        }
        parameters.push(parameter(from)?);
    }
    Ok(Call {
        procedure,
        omits_metadata: options & 0x02 != 0,
        is_unrun: false,
        parameters,
    })
}

fn parameter(from: &mut Cursor<'_>) -> Result<Parameter, Error> {
    let name = from.short_text()?;
    let status = from.u8()?;
    if status & ENCRYPTED != 0 {
        return Err(Error::NotSupported {
            what: "a parameter under column encryption",
        });
    }
    let (data_type, layout) = DataType::parse(from)?;
    let value = Value::parse(data_type, layout, from)?;
    Ok(Parameter {
        name,
        is_output: status & OUTPUT != 0,
        is_default: status & DEFAULT != 0,
        data_type,
        value,
    })
}

/// A request to the transaction manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transaction {
    Begin {
        /// May be empty.
        name: String,
    },
    /// Commits; may start the next transaction.
    Commit {
        /// Whether the next transaction starts immediately.
        begins_next: bool,
    },
    /// Rolls back, to a savepoint or entirely; may start the next transaction.
    Rollback {
        /// The savepoint.
        name: String,
        /// Whether the next transaction starts immediately.
        begins_next: bool,
    },
    /// Creates a savepoint.
    Save { name: String },
    /// A step of a distributed transaction; not supported.
    Distributed(u16),
}

impl Transaction {
    /// Reads the payload of a message of [`Kind::Transaction`](crate::packet::Kind::Transaction).
    pub fn parse(payload: &[u8]) -> Result<Self, Error> {
        let mut from = Cursor::new(payload, "a transaction request");
        headers(&mut from)?;
        let request = from.u16()?;
        if request == 5 {
            let _isolation = from.u8()?;
        }
        if !matches!(request, 5 | 7..=9) {
            return Ok(Self::Distributed(request));
        }
        let units = usize::from(from.u8()?) / 2;
        let name = utf16(from.take(2 * units)?);
        let mut begins_next = || match from.is_empty() {
            true => Ok(false),
            false => from.u8().map(|flags| flags & 1 != 0),
        };
        Ok(match request {
            5 => Self::Begin { name },
            7 => Self::Commit {
                begins_next: begins_next()?,
            },
            8 => Self::Rollback {
                name,
                begins_next: begins_next()?,
            },
            _ => Self::Save { name },
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data_type::Length;

    /// The headers sent by all current drivers.
    fn all_headers(transaction: u64) -> Vec<u8> {
        let mut out = vec![0x16, 0, 0, 0, 0x12, 0, 0, 0, 2, 0];
        out.extend(transaction.to_le_bytes());
        out.extend(1_u32.to_le_bytes());
        out
    }

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    fn with_parameter(out: &mut Vec<u8>, name: &str, status: u8, of: DataType, value: &Value) {
        out.push(name.len() as u8);
        out.extend(wide(name));
        out.push(status);
        of.emit(out);
        value.emit(of, out).unwrap();
    }

    #[test]
    fn a_batch_is_text_behind_its_headers() {
        let payload = [all_headers(7), wide("SELECT 1")].concat();
        let batch = Batch::parse(&payload).unwrap();
        assert_eq!((batch.transaction, &*batch.text), (7, "SELECT 1"));
        assert!(Batch::parse(&payload[..payload.len() - 1]).is_err());
    }

    #[test]
    fn a_call_of_sp_executesql_brings_its_parameters() {
        let text = DataType::nvarchar(usize::MAX);
        let mut payload = all_headers(0);
        payload.extend([0xFF, 0xFF, 10, 0, 0, 0]);
        let statement = Value::Text("BACKUP DATABASE @db TO DISK = @f".to_owned());
        with_parameter(&mut payload, "@statement", 0, text, &statement);
        with_parameter(&mut payload, "", OUTPUT, DataType::Integer(4), &Value::Null);
        payload.push(NEXT_CALL);
        payload.extend([6, 0]);
        payload.extend(wide("sp_who"));
        payload.extend([0, 0]);
        let rpc = Rpc::parse(&payload).unwrap();
        let [first, second] = &*rpc.calls else {
            panic!("{rpc:?}");
        };
        assert_eq!(first.procedure, Procedure::ExecuteSql);
        assert_eq!(first.parameters[0].value, statement);
        assert_eq!(first.parameters[0].name, "@statement");
        assert!(first.parameters[1].is_output);
        assert_eq!(second.procedure, Procedure::Named("sp_who".to_owned()));
    }

    #[test]
    fn a_table_as_parameter_is_refused_by_name() {
        let mut payload = all_headers(0);
        payload.extend([0xFF, 0xFF, 10, 0, 0, 0, 0, 0, 0xF3]);
        let found = Rpc::parse(&payload);
        assert!(
            matches!(found, Err(Error::NotSupported { .. })),
            "{found:?}"
        );
    }

    #[test]
    fn more_parameters_than_sql_server_takes_are_refused() {
        let mut payload = all_headers(0);
        payload.extend([0xFF, 0xFF, 10, 0, 0, 0]);
        for _ in 0..=PARAMETERS_MAX {
            with_parameter(&mut payload, "", 0, DataType::Bit, &Value::Null);
        }
        assert!(Rpc::parse(&payload).is_err());
    }

    #[test]
    fn transactions_begin_commit_and_roll_back() {
        let of = |request: &[u8]| Transaction::parse(&[&*all_headers(0), request].concat());
        let name = String::new();
        assert_eq!(
            of(&[5, 0, 2, 0]),
            Ok(Transaction::Begin { name: name.clone() })
        );
        assert_eq!(
            of(&[7, 0, 0, 0]),
            Ok(Transaction::Commit { begins_next: false })
        );
        let begins_next = true;
        assert_eq!(
            of(&[8, 0, 0, 1]),
            Ok(Transaction::Rollback { name, begins_next })
        );
        assert_eq!(of(&[1, 0, 0]), Ok(Transaction::Distributed(1)));
        assert!(of(&[5, 0]).is_err());
    }

    #[test]
    fn headers_that_overlap_their_own_length_are_refused() {
        for bytes in [[3, 0, 0, 0], [0xFF, 0xFF, 0xFF, 0xFF]] {
            assert!(Batch::parse(&bytes).is_err());
        }
        assert!(Batch::parse(&[8, 0, 0, 0, 3, 0, 0, 0]).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_request_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let payload = [all_headers(0), bytes].concat();
            drop((Batch::parse(&payload), Rpc::parse(&payload), Transaction::parse(&payload)));
        }
    }

    #[test]
    fn a_value_that_claims_more_than_the_message_holds_is_cut_short() {
        let mut payload = all_headers(0);
        payload.extend([0xFF, 0xFF, 10, 0, 0, 0, 0, 0]);
        DataType::VarBinary(Length::Max).emit(&mut payload);
        payload.extend(u64::MAX.wrapping_sub(1).to_le_bytes());
        payload.extend(0x7FFF_FFFF_u32.to_le_bytes());
        let found = Rpc::parse(&payload);
        assert!(matches!(found, Err(Error::CutShort { .. })), "{found:?}");
    }
}
