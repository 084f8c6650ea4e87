use serde_json::value::RawValue;

use crate::dropped::{Dropped, OTHER_FIELDS, plain_name};
use crate::losses::has_effect;
use crate::{Untranslatable, UntranslatableFields};

/// The fields of a request that were left out, or what refuses them.
pub(crate) struct LeftOut(Dropped);

impl LeftOut {
    /// Nothing yet.
    pub(crate) fn new(fields: UntranslatableFields) -> Self {
        LeftOut(Dropped::new(fields))
    }

    /// The names of what was left out.
    pub(crate) fn into_names(self) -> Vec<&'static str> {
        self.0.into_names()
    }

    /// Leaves out a field, known to the [list](crate::losses) as `name`.
    ///
    /// # Errors
    /// [`Untranslatable`] when such fields are refused.
    pub(crate) fn leave(
        &mut self,
        name: &'static str,
        path: impl FnOnce() -> String,
    ) -> Result<(), Untranslatable> {
        self.0.lose(name, 0, path)
    }

    /// Leaves out a field of the body when it is there and asks for something.
    ///
    /// # Errors
    /// As for [`leave`](LeftOut::leave).
    pub(crate) fn leave_value(
        &mut self,
        name: &'static str,
        value: Option<&RawValue>,
    ) -> Result<(), Untranslatable> {
        match value.filter(|value| has_effect(name, value.get())) {
            Some(_) => self.leave(name, || name.to_owned()),
            None => Ok(()),
        }
    }

    /// Notes a field that was said in another way than the client said it.
    pub(crate) fn note(&mut self, name: &'static str) {
        self.0.note(name, 0);
    }

    /// Leaves out what an object has besides the fields that its type knows.
    ///
    /// # Errors
    /// As for [`leave`](LeftOut::leave).
    pub(crate) fn leave_unknown(
        &mut self,
        unknown: Option<&str>,
        path: impl FnOnce(&str) -> String,
    ) -> Result<(), Untranslatable> {
        match unknown {
            Some(name) => self.leave(OTHER_FIELDS, || path(plain_name(name))),
            None => Ok(()),
        }
    }
}
