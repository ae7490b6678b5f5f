//! `parse(print(statement)) == statement`.

use proptest::prelude::*;
use windlass_tsql::ast::Statement;
use windlass_tsql::{Spanned, batch, parse_batch, print_batch};

use crate::generate;

fn assert_round_trip(statements: Vec<Statement>) {
    let statements: Vec<_> = statements.into_iter().map(Spanned::unplaced).collect();
    let printed = print_batch(&statements);
    let again = parse_batch(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(again, statements, "{printed}");
    assert_eq!(print_batch(&again), printed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn backup(statement in generate::backup()) {
        assert_round_trip(vec![statement]);
    }

    #[test]
    fn restore(statement in generate::restore()) {
        assert_round_trip(vec![statement]);
    }

    #[test]
    fn procedures_variables_and_databases(statement in prop_oneof![
        generate::execute(),
        generate::variables(),
        generate::flow(),
        generate::create_database(),
    ]) {
        assert_round_trip(vec![statement]);
    }

    #[test]
    fn several_statements(statements in prop::collection::vec(
        prop_oneof![generate::backup(), generate::restore(), generate::execute()],
        0..4,
    )) {
        assert_round_trip(statements);
    }

    #[test]
    fn a_printed_batch_holds_no_go_line(statements in prop::collection::vec(generate::restore(), 1..4)) {
        let statements: Vec<_> = statements.into_iter().map(Spanned::unplaced).collect();
        let printed = print_batch(&statements);
        prop_assert_eq!(batch::split(&printed).len(), 1);
    }
}
