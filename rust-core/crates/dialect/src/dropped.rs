//! Fields of a request that the provider has no counterpart for.

use std::borrow::Cow;

use crate::losses::{DropImpact, find};
use crate::{UntranslatableFieldPolicy, UntranslatableRequest};

/// The longest name of a field that an error repeats, in bytes: nothing that a client calls a field is longer.
const MAX_NAME_LEN: usize = 64;

/// Refuses such fields, or notes what was left out.
#[derive(Debug)]
pub struct DroppedFieldLog {
    fields: UntranslatableFieldPolicy,
    /// Each name once, and where it stands.
    names: Vec<(usize, &'static str)>,
}

impl DroppedFieldLog {
    /// Nothing yet.
    pub fn new(fields: UntranslatableFieldPolicy) -> Self {
        DroppedFieldLog {
            fields,
            names: Vec::new(),
        }
    }

    /// Leaves a field out, which stands at `at`, or refuses it.
    ///
    /// # Errors
    /// The `refusal`, where such fields are refused.
    pub fn drop_or_reject(
        &mut self,
        name: &'static str,
        at: usize,
        refusal: impl FnOnce() -> UntranslatableRequest,
    ) -> Result<(), UntranslatableRequest> {
        match self.fields {
            UntranslatableFieldPolicy::Refuse => Err(refusal()),
            UntranslatableFieldPolicy::Drop => {
                self.note(name, at);
                Ok(())
            }
        }
    }

    /// Loses a field of a chat request, by the verdict that the [list](crate::losses) has for its name.
    ///
    /// # Errors
    /// The refusal of what is impossible, and of what is lossy where such fields are refused.
    pub fn drop_listed(
        &mut self,
        name: &str,
        at: usize,
        path: impl FnOnce() -> String,
    ) -> Result<(), UntranslatableRequest> {
        let loss = find(name);
        match loss.class {
            DropImpact::Harmless => {
                self.note(loss.name, at);
                Ok(())
            }
            DropImpact::Lossy => self.drop_or_reject(loss.name, at, || no_counterpart_error(path())),
            DropImpact::Impossible(reason) => Err(UntranslatableRequest::new(path(), reason)),
        }
    }

    /// Notes what was left out, whatever becomes of other fields.
    pub fn note(&mut self, name: &'static str, at: usize) {
        match self.names.iter_mut().find(|(_, noted)| *noted == name) {
            Some((first, _)) => *first = at.min(*first),
            None => self.names.push((at, name)),
        }
    }

    /// The names of what was left out, by where it stands; what stands at one place, as it was noted.
    pub fn into_names(mut self) -> Vec<&'static str> {
        self.names.sort_by_key(|(at, _)| *at);
        self.names.into_iter().map(|(_, name)| name).collect()
    }
}

/// The refusal of a field for which there is no other reason.
pub fn no_counterpart_error(path: impl Into<Cow<'static, str>>) -> UntranslatableRequest {
    UntranslatableRequest::new(
        path,
        "This field has no counterpart at the provider of this model.",
    )
}

/// A name of a field as an error may show it: anything that does not look like one could be text of the prompt.
pub fn printable_name(name: &str) -> &str {
    let is_name = name.len() <= MAX_NAME_LEN
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    if is_name { name } else { "?" }
}
