use serde_json::value::RawValue;

use proofgate_dialect::dropped::DroppedFieldLog;
use proofgate_dialect::losses::{OTHER_FIELDS, has_effect};
use proofgate_dialect::object::UnknownMember;
use proofgate_dialect::{UntranslatableFieldPolicy, UntranslatableRequest};

/// What a request has and its provider has no words for.
///
/// A field is known by a key, its path with `[]` behind the name of an array. The [list](proofgate_dialect::losses) has a
/// verdict for each; marks for a cache have one for all places.
pub struct DroppedFields {
    dropped: DroppedFieldLog,
    /// The keys of what the writer says itself.
    handled_keys: &'static [&'static str],
}

impl DroppedFields {
    /// None yet, of a writer that says these fields itself.
    pub(super) fn new(fields: UntranslatableFieldPolicy, says: &'static [&'static str]) -> Self {
        DroppedFields {
            dropped: DroppedFieldLog::new(fields),
            handled_keys: says,
        }
    }

    /// Whether the writer says a field itself.
    pub(super) fn says(&self, key: &str) -> bool {
        self.handled_keys.contains(&key)
    }

    /// Leaves a field out unless the writer says it itself, or it asks for nothing.
    ///
    /// # Errors
    /// The refusal of what is impossible, and of what is lossy where such fields are refused.
    pub(super) fn drop_unless_handled(
        &mut self,
        key: &'static str,
        json: Option<&str>,
        path: impl FnOnce() -> String,
    ) -> Result<(), UntranslatableRequest> {
        match json.filter(|_| !self.says(key)) {
            Some(json) => self.drop_listed(key, json, path),
            None => Ok(()),
        }
    }

    /// Leaves a field out, given as it stands in the body, unless it asks for nothing.
    ///
    /// # Errors
    /// As for [`drop_unless_handled`](DroppedFields::drop_unless_handled).
    pub fn drop_listed(
        &mut self,
        key: &'static str,
        json: &str,
        path: impl FnOnce() -> String,
    ) -> Result<(), UntranslatableRequest> {
        let name = reported_name(key);
        if !has_effect(name, json) {
            return Ok(());
        }
        self.dropped.drop_listed(name, value_address(json), path)
    }

    /// Leaves a field of the body out, whose key is its path.
    ///
    /// # Errors
    /// As for [`drop_unless_handled`](DroppedFields::drop_unless_handled).
    pub fn drop_body_field(&mut self, key: &'static str, json: &str) -> Result<(), UntranslatableRequest> {
        self.drop_listed(key, json, || key.to_owned())
    }

    /// Leaves out or refuses a field for a reason, which is a sentence.
    ///
    /// # Errors
    /// The refusal, where such fields are refused.
    pub fn drop_with_reason(
        &mut self,
        reason: &'static str,
        key: &'static str,
        json: &str,
    ) -> Result<(), UntranslatableRequest> {
        self.dropped.drop_or_reject(key, value_address(json), || {
            UntranslatableRequest::new(key, reason)
        })
    }

    /// Leaves out what an object has besides its known members, which is harmless.
    pub fn drop_unknown(&mut self, unknown: Option<&UnknownMember<'_>>) {
        if let Some((_, value)) = unknown {
            self.note(OTHER_FIELDS, value.get());
        }
    }

    /// Notes a field that was said in another way than the client said it.
    pub fn note(&mut self, key: &'static str, json: &str) {
        self.dropped.note(reported_name(key), value_address(json));
    }

    /// The names of what was left out, in the order of the request.
    pub(super) fn into_names(self) -> Vec<&'static str> {
        self.dropped.into_names()
    }
}

/// The name of a loss: there is one for all marks for a cache.
fn reported_name(key: &'static str) -> &'static str {
    if key.ends_with(".cache_control") {
        "cache_control"
    } else {
        key
    }
}

/// Where in the request a value stands, which is a piece of it.
fn value_address(json: &str) -> usize {
    json.as_ptr().addr()
}

/// A value as JSON.
pub fn json(value: Option<&RawValue>) -> Option<&str> {
    value.map(RawValue::get)
}
