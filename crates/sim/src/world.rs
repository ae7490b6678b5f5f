//! Placeholder while building the engine tests.
/// Outcome.
#[derive(Debug, Default)]
pub struct Outcome;
