//! The arguments of a call, which are the variables of the procedure.

use windlass_base::message::table;
use windlass_base::{Guid, Message};

use crate::tsql::expression::{integer, text_of, type_of};
use crate::{Failure, Value, Variables};

/// The most characters of a name.
const NAME_CHARACTERS_MAX: usize = 128;

#[derive(Debug)]
pub(super) struct Arguments<'a>(pub(super) &'a mut Variables);

impl Arguments<'_> {
    /// The value of a parameter; `None` for NULL.
    pub(super) fn value(&self, name: &str) -> Option<Value> {
        self.0.value(name).ok().filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        text_of(&self.value(name)?).ok()
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        integer(&self.value(name)?).ok()
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        self.number(name).is_some_and(|number| number != 0)
    }

    /// A name without spaces around it.
    pub(super) fn name(&self, name: &str) -> Result<Option<String>, Failure> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let text = text.trim();
        if text.is_empty() {
            return Err(table::agent_value_invalid(name).into());
        }
        if text.chars().count() > NAME_CHARACTERS_MAX {
            return Err(table::agent_value_too_long(name, NAME_CHARACTERS_MAX).into());
        }
        Ok(Some(text.to_owned()))
    }

    pub(super) fn required_name(&self, name: &str) -> Result<String, Failure> {
        self.name(name)?
            .ok_or_else(|| table::agent_value_invalid(name).into())
    }

    /// Replaces what is given.
    pub(super) fn replace(&self, name: &str, number: &mut i64) {
        if let Some(given) = self.number(name) {
            *number = given;
        }
    }

    /// The same for a number within bounds; `shown` tells them.
    pub(super) fn replace_within(
        &self,
        name: &str,
        number: &mut i64,
        bounds: (i64, i64),
        shown: &str,
    ) -> Result<(), Failure> {
        self.replace(name, number);
        match (bounds.0..=bounds.1).contains(number) {
            true => Ok(()),
            false => Err(table::agent_value_not_among(name, shown).into()),
        }
    }

    /// The same for a choice of no and yes.
    pub(super) fn replace_choice(&self, name: &str, choice: &mut bool) -> Result<(), Failure> {
        let mut number = i64::from(*choice);
        self.replace_within(name, &mut number, (0, 1), "0, 1")?;
        *choice = number == 1;
        Ok(())
    }

    /// Refuses a value of a parameter that has no effect here.
    pub(super) fn refuse(&self, name: &str, reason: &str) -> Result<(), Failure> {
        let is_given = self.text(name).is_some_and(|text| !text.trim().is_empty());
        match is_given {
            true => Err(not_supported(name, reason).into()),
            false => Ok(()),
        }
    }

    /// Sets what an OUTPUT parameter returns.
    pub(super) fn give(&mut self, name: &str, value: &Value) -> Result<(), Failure> {
        self.0.set(name, value, type_of(value))
    }

    pub(super) fn give_identity(&mut self, name: &str, identity: &str) -> Result<(), Failure> {
        match identity.parse::<Guid>() {
            Ok(identity) => self.give(name, &Value::Guid(identity)),
            Err(_) => Err(table::internal_consistency().into()),
        }
    }
}

pub(super) fn not_supported(name: &str, reason: &str) -> Message {
    table::agent_option_not_supported(name, reason)
}
