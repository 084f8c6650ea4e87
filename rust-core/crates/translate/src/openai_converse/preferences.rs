use serde_json::value::RawValue;

use crate::openai_converse::text::Text;
use crate::{Untranslatable, UntranslatableFields};

const NO_COUNTERPART: &str = "Converse has no counterpart of this field.";

/// What becomes of fields without a counterpart, and those that were left out.
pub(super) struct Preferences {
    policy: UntranslatableFields,
    /// A field's name, and where in the body its value stands.
    left_out: Vec<(usize, &'static str)>,
}

impl Preferences {
    pub(super) fn new(policy: UntranslatableFields) -> Self {
        Preferences {
            policy,
            left_out: Vec::new(),
        }
    }

    /// Leaves a field out, or refuses it.
    pub(super) fn leave_out(
        &mut self,
        name: &'static str,
        value: &RawValue,
        param: impl FnOnce() -> String,
    ) -> Result<(), Untranslatable> {
        self.leave_out_for(NO_COUNTERPART, name, value, param)
    }

    /// Leaves a field out, or refuses it for a reason, which is a sentence.
    pub(super) fn leave_out_for(
        &mut self,
        reason: &'static str,
        name: &'static str,
        value: &RawValue,
        param: impl FnOnce() -> String,
    ) -> Result<(), Untranslatable> {
        match self.policy {
            UntranslatableFields::Refuse => Err(Untranslatable::new(param(), reason)),
            UntranslatableFields::Drop => {
                if self.left_out.iter().all(|(_, other)| *other != name) {
                    self.left_out.push((value.get().as_ptr() as usize, name));
                }
                Ok(())
            }
        }
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
        self.leave_out("other fields", value, || {
            let object = object();
            let separator = if object.is_empty() { "" } else { "." };
            // Anything may be a name; only what looks like one is repeated.
            let like_a_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
            let name = if name.len() <= 64 && name.bytes().all(like_a_name) {
                name
            } else {
                "*"
            };
            format!("{object}{separator}{name}")
        })
    }

    /// The names of what was left out, in the order of the request.
    pub(super) fn names(mut self) -> Vec<&'static str> {
        self.left_out.sort_unstable();
        self.left_out.into_iter().map(|(_, name)| name).collect()
    }
}
