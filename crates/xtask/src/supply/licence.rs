//! Licence expressions of crates: whether one can be met with a list of accepted licences.

/// Whether the accepted licences meet an expression, such as `MIT OR (Apache-2.0 AND ISC)`. The old form with a slash
/// between alternatives is read, too.
pub(super) fn is_met(expression: &str, accepted: &[String]) -> Result<bool, String> {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    let met = alternatives(&mut words, accepted)?;
    match words.next() {
        None => Ok(met),
        Some(word) => Err(format!("'{word}' is unexpected in '{expression}'")),
    }
}

type Words<'text> = std::iter::Peekable<std::str::SplitWhitespace<'text>>;

fn alternatives(words: &mut Words<'_>, accepted: &[String]) -> Result<bool, String> {
    let mut met = conditions(words, accepted)?;
    while words.next_if_eq(&"OR").is_some() {
        met |= conditions(words, accepted)?;
    }
    Ok(met)
}

fn conditions(words: &mut Words<'_>, accepted: &[String]) -> Result<bool, String> {
    let mut met = single(words, accepted)?;
    while words.next_if_eq(&"AND").is_some() {
        met &= single(words, accepted)?;
    }
    Ok(met)
}

fn single(words: &mut Words<'_>, accepted: &[String]) -> Result<bool, String> {
    let word = words.next().ok_or("a licence expression ends too early")?;
    if word == "(" {
        let met = alternatives(words, accepted)?;
        return match words.next() {
            Some(")") => Ok(met),
            _ => Err("a parenthesis of a licence expression is not closed".to_owned()),
        };
    }
    let mut name = word.to_owned();
    if words.next_if_eq(&"WITH").is_some() {
        let exception = words.next().ok_or("a licence exception has no name")?;
        name = format!("{name} WITH {exception}");
    }
    Ok(accepted.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::is_met;

    fn met(expression: &str) -> bool {
        let accepted = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
        is_met(expression, &accepted).unwrap()
    }

    #[test]
    fn one_alternative_is_enough_and_every_condition_is_needed() {
        assert!(met("MIT"));
        assert!(met("GPL-3.0 OR MIT"));
        assert!(met("Apache-2.0/MIT"));
        assert!(!met("MIT AND GPL-3.0"));
        assert!(met("ISC AND (GPL-3.0 OR MIT)"));
        assert!(!met("ISC AND (GPL-3.0 OR Apache-2.0)"));
        // AND binds before OR.
        assert!(met("MIT OR ISC AND GPL-3.0"));
    }

    #[test]
    fn an_exception_belongs_to_its_licence() {
        assert!(met("Apache-2.0 WITH LLVM-exception"));
        assert!(!met("Apache-2.0"));
        assert!(!met("MIT WITH LLVM-exception"));
    }

    #[test]
    fn an_expression_that_is_none_is_an_error() {
        for wrong in ["", "MIT ISC", "(MIT", "MIT AND", "MIT WITH"] {
            assert!(is_met(wrong, &[]).is_err(), "{wrong}");
        }
    }
}
