//! The tokens of an answer (MS-TDS 2.2.7).
//!
//! An answer is one message: results, messages, and a DONE at its end. The caller moves the written
//! tokens into packets with [`Packets`](crate::packet::Packets) at any time; messages of a running
//! backup are moved immediately, because drivers stop their timers at the first packet.

use crate::Error;
use crate::collation::Collation;
use crate::data_type::{DataType, Length};
use crate::value::Value;

/// Status bits and commands of a DONE.
pub mod done {
    /// More results follow.
    pub const MORE: u16 = 0x0001;
    /// The statement failed.
    pub const ERROR: u16 = 0x0002;
    /// The number of rows is valid.
    pub const COUNT: u16 = 0x0010;
    /// A cancel is acknowledged.
    pub const ATTENTION: u16 = 0x0020;
    /// The session ends with it.
    pub const SEVERE: u16 = 0x0100;
    /// The command of a query.
    pub const SELECT: u16 = 0x00C1;
    /// The command of an acknowledged cancel.
    pub const CANCEL: u16 = 0x00FD;
}

/// What ends: a statement of a batch, or a procedure, or a statement of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Ends {
    /// A statement of a batch.
    Statement = 0xFD,
    Procedure = 0xFE,
    StatementInProcedure = 0xFF,
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name; may be empty.
    pub name: String,
    pub data_type: DataType,
    /// Whether it may be NULL.
    pub is_nullable: bool,
}

/// A message for the client: information, or an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note<'a> {
    pub number: i32,
    pub state: u8,
    /// Its severity: above 10 is an error.
    pub class: u8,
    pub text: &'a str,
    /// The server's name.
    pub server: &'a str,
    /// The procedure in which it occurred; empty in a batch.
    pub procedure: &'a str,
    /// The line of the batch or procedure.
    pub line: i32,
}

/// What changed in the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// The database: new name, old name.
    Database(&'a str, &'a str),
    /// The language: new, old.
    Language(&'a str, &'a str),
    /// The packet size: new, old.
    PacketBytes(u16, u16),
    Collation(Collation),
    /// A transaction started.
    Begun(u64),
    Committed(u64),
    RolledBack(u64),
    /// The session was reset.
    Reset,
}

/// Writes tokens.
#[derive(Debug, Default)]
pub struct Answer {
    /// Tokens that have not been moved into packets.
    pub tokens: Vec<u8>,
    columns: Vec<DataType>,
}

impl Answer {
    /// An ENVCHANGE.
    pub fn change(&mut self, change: Change<'_>) {
        self.with_length(0xE3, |out| match change {
            Change::Database(new, old) => texts(out, 1, new, old),
            Change::Language(new, old) => texts(out, 2, new, old),
            Change::PacketBytes(new, old) => texts(out, 4, &new.to_string(), &old.to_string()),
            Change::Collation(collation) => bytes(out, 7, &collation.0, &[]),
            Change::Begun(id) => bytes(out, 8, &id.to_le_bytes(), &[]),
            Change::Committed(id) => bytes(out, 9, &[], &id.to_le_bytes()),
            Change::RolledBack(id) => bytes(out, 10, &[], &id.to_le_bytes()),
            Change::Reset => bytes(out, 18, &[], &[]),
        });
    }

    /// INFO or ERROR, depending on the class.
    pub fn note(&mut self, note: Note<'_>) {
        let token = if note.class > 10 { 0xAA } else { 0xAB };
        self.with_length(token, |out| {
            out.extend(note.number.to_le_bytes());
            out.extend([note.state, note.class]);
            long_text(out, note.text);
            short_text(out, note.server);
            short_text(out, note.procedure);
            out.extend(note.line.to_le_bytes());
        });
    }

    /// LOGINACK. `tds_version` is the client's own.
    pub fn login_accepted(&mut self, tds_version: u32, program: &str, version: [u8; 4]) {
        self.with_length(0xAD, |out| {
            out.push(1);
            out.extend(tds_version.to_be_bytes());
            short_text(out, program);
            out.extend(version);
        });
    }

    /// FEATUREEXTACK for the only supported feature: UTF-8.
    pub fn utf8_accepted(&mut self) {
        self.tokens.extend([0xAE, 0x0A, 1, 0, 0, 0, 1, 0xFF]);
    }

    /// COLMETADATA: rows of these columns follow.
    pub fn columns(&mut self, columns: &[Column]) {
        let out = &mut self.tokens;
        out.push(0x81);
        out.extend((columns.len() as u16).to_le_bytes());
        for column in columns {
            out.extend(0_u32.to_le_bytes());
            out.extend(u16::from(column.is_nullable).to_le_bytes());
            column.data_type.emit(out);
            short_text(out, &column.name);
        }
        self.columns.clear();
        self.columns
            .extend(columns.iter().map(|column| column.data_type));
    }

    /// A row. If most values are NULL, the shorter form that omits them is used.
    ///
    /// # Errors
    /// A value that does not fit its column, or a wrong number of values: nothing is written then.
    pub fn row(&mut self, values: &[Value]) -> Result<(), Error> {
        if values.len() != self.columns.len() {
            return Err(Error::invalid(
                "number of values in a row",
                values.len() as u64,
            ));
        }
        let start = self.tokens.len();
        let nulls = values.iter().filter(|value| **value == Value::Null).count();
        let is_sparse = nulls > values.len().div_ceil(8);
        match is_sparse {
            true => {
                self.tokens.push(0xD2);
                self.null_bitmap(values);
            }
            false => self.tokens.push(0xD1),
        }
        for (value, data_type) in values.iter().zip(&self.columns) {
            if is_sparse && *value == Value::Null {
                continue;
            }
            value
                .emit(*data_type, &mut self.tokens)
                .inspect_err(|_| self.tokens.truncate(start))?;
        }
        Ok(())
    }

    fn null_bitmap(&mut self, values: &[Value]) {
        for eight in values.chunks(8) {
            let bits = eight.iter().enumerate().map(|(index, value)| {
                let is_null = u8::from(*value == Value::Null);
                is_null << index
            });
            self.tokens.push(bits.sum());
        }
    }

    /// RETURNSTATUS of a procedure.
    pub fn return_status(&mut self, status: i32) {
        self.tokens.push(0x79);
        self.tokens.extend(status.to_le_bytes());
    }

    /// RETURNVALUE: an output parameter.
    ///
    /// # Errors
    /// A value that does not fit its type: nothing is written then.
    pub fn return_value(
        &mut self,
        ordinal: u16,
        name: &str,
        data_type: DataType,
        value: &Value,
    ) -> Result<(), Error> {
        let start = self.tokens.len();
        let out = &mut self.tokens;
        out.push(0xAC);
        out.extend(ordinal.to_le_bytes());
        short_text(out, name);
        out.push(1);
        out.extend([0; 6]);
        data_type.emit(out);
        value
            .emit(data_type, out)
            .inspect_err(|_| self.tokens.truncate(start))
    }

    /// DONE, DONEPROC or DONEINPROC. `status` and `command` are sums of [`done`].
    pub fn done(&mut self, ends: Ends, status: u16, command: u16, rows: u64) {
        self.tokens.push(ends as u8);
        self.tokens.extend(status.to_le_bytes());
        self.tokens.extend(command.to_le_bytes());
        self.tokens.extend(rows.to_le_bytes());
    }

    /// The whole second message after a cancel; the first ends the interrupted answer.
    pub fn cancel_acknowledged(&mut self) {
        self.done(Ends::Statement, done::ATTENTION, done::CANCEL, 0);
    }

    /// A token with a two-byte length before its content.
    fn with_length(&mut self, token: u8, content: impl FnOnce(&mut Vec<u8>)) {
        self.tokens.extend([token, 0, 0]);
        let start = self.tokens.len();
        content(&mut self.tokens);
        let length = (self.tokens.len() - start) as u16;
        self.tokens[start - 2..start].copy_from_slice(&length.to_le_bytes());
    }
}

fn texts(out: &mut Vec<u8>, code: u8, new: &str, old: &str) {
    out.push(code);
    short_text(out, new);
    short_text(out, old);
}

fn bytes(out: &mut Vec<u8>, code: u8, new: &[u8], old: &[u8]) {
    out.push(code);
    for value in [new, old] {
        out.push(value.len() as u8);
        out.extend(value);
    }
}

/// Text with the number of its UTF-16 units in one byte; longer text is truncated.
fn short_text(out: &mut Vec<u8>, text: &str) {
    let units = units(text, 255);
    out.push(units.len() as u8);
    out.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
}

/// Maximum length of a message text: its token, with everything else in it, stays below 64 KB.
const MESSAGE_UNITS_MAX: usize = 30_000;

fn long_text(out: &mut Vec<u8>, text: &str) {
    let units = units(text, MESSAGE_UNITS_MAX);
    out.extend((units.len() as u16).to_le_bytes());
    out.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
}

/// At most `most` units, without half a surrogate pair at the end.
fn units(text: &str, most: usize) -> Vec<u16> {
    let mut units: Vec<u16> = text.encode_utf16().take(most).collect();
    if units.len() == most
        && units
            .last()
            .is_some_and(|unit| (0xD800..0xDC00).contains(unit))
    {
        units.pop();
    }
    units
}

/// The type of names in most catalog views: `nvarchar(128)`.
pub fn name_column(name: &str) -> Column {
    Column {
        name: name.to_owned(),
        data_type: DataType::NVarChar(Length::Bytes(256), Collation::DEFAULT),
        is_nullable: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_bytes_that_drivers_expect() {
        let mut answer = Answer::default();
        answer.note(Note {
            number: 3013,
            state: 1,
            class: 16,
            text: "ab",
            server: "s",
            procedure: "",
            line: 2,
        });
        let expected = [
            0xAA, 20, 0, 0xC5, 0x0B, 0, 0, 1, 16, 2, 0, b'a', 0, b'b', 0, 1, b's', 0, 0, 2, 0, 0, 0,
        ];
        assert_eq!(answer.tokens, expected);
    }

    #[test]
    fn a_row_of_nulls_is_a_bitmap() {
        let mut answer = Answer::default();
        let columns: Vec<_> = (0..9)
            .map(|index| name_column(&index.to_string()))
            .collect();
        answer.columns(&columns);
        answer.tokens.clear();
        let mut values = vec![Value::Null; 9];
        values[8] = Value::Text("x".to_owned());
        answer.row(&values).unwrap();
        assert_eq!(answer.tokens, [0xD2, 0xFF, 0, 2, 0, b'x', 0]);
    }

    #[test]
    fn a_row_that_does_not_fit_leaves_nothing() {
        let mut answer = Answer::default();
        answer.columns(&[name_column("a")]);
        let before = answer.tokens.clone();
        assert!(answer.row(&[Value::Integer(1)]).is_err());
        assert!(answer.row(&[]).is_err());
        assert_eq!(answer.tokens, before);
    }

    #[test]
    fn a_text_that_is_cut_keeps_whole_characters() {
        let text = format!("{}🚀", "x".repeat(254));
        let mut out = Vec::new();
        short_text(&mut out, &text);
        assert_eq!(out[0], 254);
    }

    #[test]
    fn a_cancel_is_acknowledged_by_a_done_of_its_own() {
        let mut answer = Answer::default();
        answer.cancel_acknowledged();
        assert_eq!(
            answer.tokens,
            [0xFD, 0x20, 0, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        );
    }
}
