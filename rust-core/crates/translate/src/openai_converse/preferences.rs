use serde_json::value::RawValue;

use crate::dropped::{Dropped, OTHER_FIELDS, plain_name};
use crate::losses::has_effect;
use crate::openai_converse::text::Text;
use crate::{Untranslatable, UntranslatableFields};

/// What becomes of fields without a counterpart, and those that were left out.
pub(super) struct Preferences(Dropped);

impl Preferences {
    pub(super) fn new(fields: UntranslatableFields) -> Self {
        Preferences(Dropped::new(fields))
    }

    /// Leaves a field out that the [list](crate::losses) has under this name, or refuses it; one that asks for nothing is passed
    /// over.
    pub(super) fn leave_out(
        &mut self,
        name: &'static str,
        value: &RawValue,
        param: impl FnOnce() -> String,
    ) -> Result<(), Untranslatable> {
        if !has_effect(name, value.get()) {
            return Ok(());
        }
        self.0.lose(name, place_of(value), param)
    }

    /// Leaves a field out, or refuses it for a reason, which is a sentence.
    pub(super) fn leave_out_for(
        &mut self,
        reason: &'static str,
        name: &'static str,
        value: &RawValue,
        param: impl FnOnce() -> String,
    ) -> Result<(), Untranslatable> {
        self.0
            .drop_or(name, place_of(value), || Untranslatable::new(param(), reason))
    }

    /// Leaves out, or refuses, the first unknown field of an object, given where the object stands.
    pub(super) fn unknown(
        &mut self,
        field: Option<&(Text<'_>, &RawValue)>,
        object: impl FnOnce() -> String,
    ) -> Result<(), Untranslatable> {
        let Some((name, value)) = field else {
            return Ok(());
        };
        self.leave_out(OTHER_FIELDS, value, || {
            let object = object();
            let separator = if object.is_empty() { "" } else { "." };
            format!("{object}{separator}{}", plain_name(name))
        })
    }

    /// Notes a field that was said in another way than the client said it.
    pub(super) fn note(&mut self, name: &'static str, value: &RawValue) {
        self.0.note(name, place_of(value));
    }

    /// The names of what was left out, in the order of the request.
    pub(super) fn names(self) -> Vec<&'static str> {
        self.0.into_names()
    }
}

/// Where in the request a value stands, which is a piece of it.
fn place_of(value: &RawValue) -> usize {
    value.get().as_ptr().addr()
}
