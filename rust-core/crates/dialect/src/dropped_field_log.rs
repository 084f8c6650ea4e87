//! Records fields of a request without a counterpart at the provider.

use std::borrow::Cow;

use crate::droppable_fields::{DropImpact, find_droppable_field};
use crate::{UntranslatableFieldPolicy, UntranslatableRequest};

/// Maximum length of a field name that an error repeats, in bytes: no field name that clients use is longer.
const MAX_NAME_LEN: usize = 64;

/// Refuses fields without a counterpart, or records the dropped ones.
#[derive(Debug)]
pub struct DroppedFieldLog {
    fields: UntranslatableFieldPolicy,
    /// The dropped names, each once and with its location.
    names: Vec<(usize, &'static str)>,
}

impl DroppedFieldLog {
    /// Creates an empty log.
    pub fn new(fields: UntranslatableFieldPolicy) -> Self {
        DroppedFieldLog {
            fields,
            names: Vec::new(),
        }
    }

    /// Drops the field at `at`, or refuses it.
    ///
    /// # Errors
    /// The `refusal`, if such fields are refused.
    pub fn drop_or_reject(
        &mut self,
        name: &'static str,
        at: usize,
        refusal: impl FnOnce() -> UntranslatableRequest,
    ) -> Result<(), UntranslatableRequest> {
        match self.fields {
            UntranslatableFieldPolicy::Refuse => Err(refusal()),
            UntranslatableFieldPolicy::Drop => {
                self.record_field(name, at);
                Ok(())
            }
        }
    }

    /// Drops a field of a chat request, as the [list](crate::droppable_fields) decides for its name.
    ///
    /// # Errors
    /// The refusal, if the list never allows dropping the field, or if it is lossy and lossy fields are refused.
    pub fn drop_listed(
        &mut self,
        name: &str,
        at: usize,
        path: impl FnOnce() -> String,
    ) -> Result<(), UntranslatableRequest> {
        let loss = find_droppable_field(name);
        match loss.impact {
            DropImpact::Harmless => {
                self.record_field(loss.name, at);
                Ok(())
            }
            DropImpact::Lossy => self.drop_or_reject(loss.name, at, || no_counterpart_error(path())),
            DropImpact::Impossible(reason) => Err(UntranslatableRequest::new(path(), reason)),
        }
    }

    /// Records a dropped field, whatever the policy is.
    pub fn record_field(&mut self, name: &'static str, at: usize) {
        match self.names.iter_mut().find(|(_, noted)| *noted == name) {
            Some((first, _)) => *first = at.min(*first),
            None => self.names.push((at, name)),
        }
    }

    /// Returns the names of the dropped fields, ordered by location; at the same location, in the order recorded.
    pub fn into_names(mut self) -> Vec<&'static str> {
        self.names.sort_by_key(|(at, _)| *at);
        self.names.into_iter().map(|(_, name)| name).collect()
    }
}

/// Returns the refusal of a field without a more specific reason.
pub fn no_counterpart_error(path: impl Into<Cow<'static, str>>) -> UntranslatableRequest {
    UntranslatableRequest::new(
        path,
        "This field has no counterpart at the provider of this model.",
    )
}

/// Returns a field name that is safe to show in an error: text that does not look like a name could be part of the
/// prompt.
pub fn printable_name(name: &str) -> &str {
    let is_name = name.len() <= MAX_NAME_LEN
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    if is_name { name } else { "?" }
}
