//! A command of SQL Backup that the server of its instance runs: as the same procedure in T-SQL. The report for the hooks
//! is read from its results.

use windlass_base::Message;
use windlass_instance::sqlbackup::Report;
use windlass_instance::{Column, Event, Session, Sink, Value};

use crate::command::literal;
use crate::operate::SqlbackupArguments;
use crate::output::Console;

/// The exit code of a command whose statement failed.
const STATEMENT_FAILED: i64 = 1100;

/// Runs the command in the server, and prints its results.
pub(super) fn run(
    session: &mut Session,
    arguments: &SqlbackupArguments,
    console: &mut Console,
) -> Report {
    let mut heard = Heard {
        console,
        result: Shown::Other,
        report: Report::default(),
        has_codes: false,
        errors: Vec::new(),
    };
    session.execute_batch(&statement(arguments), 1, &mut heard);
    heard.report()
}

/// The command in T-SQL. The variables take the codes: without them, a command that failed would be an error too.
fn statement(arguments: &SqlbackupArguments) -> String {
    let mut call = format!("-SQL \"{}\"", arguments.sql.replace('"', "\"\""));
    if arguments.make_folders {
        call.push_str(" --make-folders");
    }
    if arguments.trust_headers {
        call.push_str(" --trust-headers");
    }
    format!(
        "DECLARE @exitcode int, @sqlerrorcode int; EXECUTE sqlbackup {}, @exitcode OUTPUT, @sqlerrorcode OUTPUT",
        literal(&call)
    )
}

/// Which result set is being heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Lines,
    Codes,
    Other,
}

impl Shown {
    fn of(columns: &[Column]) -> Self {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        match names.as_slice() {
            ["output"] => Self::Lines,
            ["exitcode", "sqlerrorcode", ..] => Self::Codes,
            _ => Self::Other,
        }
    }
}

/// Prints what the server sends, and collects the report.
#[derive(Debug)]
struct Heard<'a> {
    console: &'a mut Console,
    result: Shown,
    report: Report,
    has_codes: bool,
    errors: Vec<Message>,
}

impl Heard<'_> {
    fn row(&mut self, row: &[Value]) {
        match (self.result, row) {
            (Shown::Lines, [line]) => self.report.lines.push(line.to_string()),
            (
                Shown::Codes,
                [
                    Value::Integer(exit_code),
                    Value::Integer(sql_error),
                    files @ ..,
                ],
            ) => {
                self.report.exit_code = *exit_code;
                self.report.sql_error = *sql_error;
                self.report.files = files.iter().map(Value::to_string).collect();
                self.has_codes = true;
            }
            _ => {}
        }
    }

    /// With SINGLERESULTSET, the codes are the last lines.
    fn codes_of_lines(&mut self) {
        let code = |line: &str, name: &str| line.strip_prefix(name)?.parse::<i64>().ok();
        let [.., exit_code, sql_error] = self.report.lines.as_slice() else {
            return;
        };
        let codes =
            code(exit_code, "SQL Backup exit code: ").zip(code(sql_error, "SQL error code: "));
        if let Some((exit_code, sql_error)) = codes {
            (self.report.exit_code, self.report.sql_error) = (exit_code, sql_error);
            self.report.lines.truncate(self.report.lines.len() - 2);
            self.has_codes = true;
        }
    }

    fn report(mut self) -> Report {
        if !self.has_codes {
            self.codes_of_lines();
        }
        if self.has_codes {
            return self.report;
        }
        let error =
            |error: &Message| format!("SQL error {}: {}", error.number, error.visible_text());
        self.report.lines.extend(self.errors.iter().map(error));
        let unknown =
            "Error: the server has sent no report: how far the command came is not known.";
        self.report.lines.push(unknown.to_owned());
        let first = self.errors.first();
        self.report.sql_error = first.map_or(0, |error| i64::from(error.number));
        self.report.exit_code = STATEMENT_FAILED;
        self.report
    }
}

impl Sink for Heard<'_> {
    fn event(&mut self, event: Event<'_>) {
        match &event {
            Event::Columns(columns) => self.result = Shown::of(columns),
            Event::Row(row) => self.row(row),
            Event::Message(message) if message.is_error() => self.errors.push(message.clone()),
            _ => {}
        }
        self.console.event(event);
    }
}

#[cfg(test)]
mod tests {
    use windlass_instance::{ColumnType, ResultSet};

    use super::*;
    use crate::output::Layout;

    fn heard(results: &[(&[&str], Vec<Vec<Value>>)]) -> Report {
        let mut console = Console::new(true, Layout::Table);
        let mut heard = Heard {
            console: &mut console,
            result: Shown::Other,
            report: Report::default(),
            has_codes: false,
            errors: Vec::new(),
        };
        for (names, rows) in results {
            let column = |name: &&str| Column::new(*name, ColumnType::NVarChar(0));
            let columns = names.iter().map(column).collect();
            let rows = rows.clone();
            ResultSet { columns, rows }.send(&mut heard);
        }
        heard.report()
    }

    #[test]
    fn the_report_is_read_from_the_results() {
        let lines = |lines: &[&str]| -> Vec<Vec<Value>> {
            let lines = lines.iter();
            lines.map(|line| vec![Value::text(*line)]).collect()
        };
        let codes = vec![vec![
            Value::Integer(1),
            Value::Integer(0),
            Value::text("/a.bak"),
        ]];
        let names = ["exitcode", "sqlerrorcode", "filename01"];
        let found = heard(&[
            (&["BackupName", "x"], vec![vec![Value::Null, Value::Null]]),
            (&["output"], lines(&["one", "two"])),
            (&names, codes),
        ]);
        assert_eq!(found.lines, ["one", "two"]);
        assert_eq!((found.exit_code, found.sql_error), (1, 0));
        assert_eq!(found.files, ["/a.bak"]);

        let single = ["one", "SQL Backup exit code: 1100", "SQL error code: 3201"];
        let found = heard(&[(&["output"], lines(&single))]);
        assert_eq!(found.lines, ["one"]);
        assert_eq!((found.exit_code, found.sql_error), (1100, 3201));

        let found = heard(&[(&["output"], lines(&["one"]))]);
        assert!(found.has_failed());
        assert_eq!(found.lines.len(), 2);
    }
}
