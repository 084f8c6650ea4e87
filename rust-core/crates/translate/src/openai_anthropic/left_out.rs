use crate::openai_anthropic::place::plain_name;
use crate::{Untranslatable, UntranslatableFields};

/// The name under which fields are noted that no list knows.
pub(super) const OTHER_FIELDS: &str = "other fields";

/// The fields of a request that were left out, or what refuses them.
pub(super) struct LeftOut {
    rule: UntranslatableFields,
    pub(super) names: Vec<&'static str>,
}

impl LeftOut {
    /// Nothing yet.
    pub(super) fn new(rule: UntranslatableFields) -> Self {
        LeftOut {
            rule,
            names: Vec::new(),
        }
    }

    /// Leaves out a field, known to the list of what was left out as `name`.
    ///
    /// # Errors
    /// [`Untranslatable`] when such fields are refused.
    pub(super) fn leave(
        &mut self,
        name: &'static str,
        path: impl FnOnce() -> String,
    ) -> Result<(), Untranslatable> {
        if self.rule == UntranslatableFields::Refuse {
            let path = path();
            let message = format!("{path} has no counterpart at this model's provider; leave it out");
            return Err(Untranslatable::new(path, message));
        }
        if !self.names.contains(&name) {
            self.names.push(name);
        }
        Ok(())
    }

    /// Leaves out a field of the body when it is there.
    ///
    /// # Errors
    /// As for [`leave`](LeftOut::leave).
    pub(super) fn leave_if(&mut self, present: bool, name: &'static str) -> Result<(), Untranslatable> {
        if present {
            self.leave(name, || name.to_owned())?;
        }
        Ok(())
    }

    /// Leaves out what an object has besides the fields that its type knows.
    ///
    /// # Errors
    /// As for [`leave`](LeftOut::leave).
    pub(super) fn leave_unknown(
        &mut self,
        unknown: Option<&str>,
        path: impl FnOnce(&str) -> String,
    ) -> Result<(), Untranslatable> {
        match unknown {
            Some(name) => self.leave(OTHER_FIELDS, || path(&plain_name(name))),
            None => Ok(()),
        }
    }
}
