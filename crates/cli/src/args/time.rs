//! Times with a unit, such as `15m`.

/// The number and what follows it; `None` if there is no number.
pub(crate) fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit))
}
