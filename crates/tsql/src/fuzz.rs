//! The entry point for fuzzing: everything this crate does with a hostile script.

use crate::batch;
use crate::parser::parse_batch;
use crate::printer::print_batch;

/// Parses the batches of the script `data`, prints what parsed, and parses that again.
///
/// # Panics
///
/// If a printed batch does not parse, or parses to something else.
pub fn fuzz_parse(data: &[u8]) {
    let script = String::from_utf8_lossy(data);
    for batch in batch::split(&script) {
        let statements = match parse_batch(batch.text) {
            Ok(statements) => statements,
            Err(error) => {
                assert!(
                    error.offset <= batch.text.len() && error.line > 0,
                    "{error:?}"
                );
                continue;
            }
        };
        let printed = print_batch(&statements);
        match parse_batch(&printed) {
            Ok(again) => assert_eq!(again, statements, "printed as:\n{printed}"),
            Err(error) => panic!(
                "{error} (line {}) in what was printed:\n{printed}",
                error.line
            ),
        }
    }
}
