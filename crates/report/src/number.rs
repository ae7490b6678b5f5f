//! Numbers in human-readable form.

/// Separates groups of three digits: a narrow no-break space.
const GROUP: char = '\u{202f}';

/// A number with `decimals` decimal places, and a narrow space between thousands from five digits
/// on. `-` for what is not a number.
pub fn number(value: f64, decimals: usize) -> String {
    grouped(&plain(value, decimals))
}

/// A number with `decimals` decimal places.
pub(crate) fn plain(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let text = format!("{value:.decimals$}");
    // A negative number that rounds to zero.
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|digit| matches!(digit, '0' | '.')) => rest.to_owned(),
        _ => text,
    }
}

fn grouped(text: &str) -> String {
    let (whole, fraction) = text
        .split_once('.')
        .map_or((text, None), |(whole, fraction)| (whole, Some(fraction)));
    let (sign, digits) = match whole.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", whole),
    };
    let mut result = sign.to_owned();
    let is_long = digits.len() > 4;
    for (index, digit) in digits.chars().enumerate() {
        if is_long && index > 0 && (digits.len() - index).is_multiple_of(3) {
            result.push(GROUP);
        }
        result.push(digit);
    }
    if let Some(fraction) = fraction {
        result.push('.');
        result.push_str(fraction);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart_from_five_digits_on() {
        assert_eq!(number(1234.0, 0), "1234");
        assert_eq!(number(12345.678, 2), "12\u{202f}345.68");
        assert_eq!(number(-1_234_567.0, 0), "-1\u{202f}234\u{202f}567");
        assert_eq!(number(-0.001, 2), "0.00");
        assert_eq!(number(f64::NAN, 2), "-");
        assert_eq!(number(f64::INFINITY, 0), "-");
    }
}
