use serde_json::value::RawValue;

use proofgate_dialect::droppable_fields::{OTHER_FIELDS, has_effect};
use proofgate_dialect::dropped_field_log::DroppedFieldLog;
use proofgate_dialect::object::UnknownMember;
use proofgate_dialect::{UntranslatableFieldPolicy, UntranslatableRequest};

/// The fields of a request without a counterpart at its provider.
///
/// A field has a key: its path with `[]` after the name of an array. The [list](proofgate_dialect::droppable_fields) decides
/// how each is handled; cache control has one entry for all locations.
pub struct DroppedFields {
    dropped: DroppedFieldLog,
    /// The keys of the fields that the writer handles itself.
    handled_keys: &'static [&'static str],
}

impl DroppedFields {
    /// Creates an empty record for a writer that handles the fields `says` itself.
    pub(super) fn new(fields: UntranslatableFieldPolicy, says: &'static [&'static str]) -> Self {
        DroppedFields {
            dropped: DroppedFieldLog::new(fields),
            handled_keys: says,
        }
    }

    /// Whether the writer handles a field itself.
    pub(super) fn is_handled(&self, key: &str) -> bool {
        self.handled_keys.contains(&key)
    }

    /// Drops a field, unless the writer handles it itself or the value has no effect.
    ///
    /// # Errors
    /// The refusal, if the list never allows dropping the field, or if it is lossy and lossy fields are refused.
    pub(super) fn drop_unless_handled(
        &mut self,
        key: &'static str,
        json: Option<&str>,
        path: impl FnOnce() -> String,
    ) -> Result<(), UntranslatableRequest> {
        match json.filter(|_| !self.is_handled(key)) {
            Some(json) => self.drop_listed(key, json, path),
            None => Ok(()),
        }
    }

    /// Drops a field with the value `json`, as written in the body, unless the value has no effect.
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

    /// Drops a top-level field of the body, whose key is its path.
    ///
    /// # Errors
    /// As for [`drop_unless_handled`](DroppedFields::drop_unless_handled).
    pub fn drop_body_field(&mut self, key: &'static str, json: &str) -> Result<(), UntranslatableRequest> {
        self.drop_listed(key, json, || key.to_owned())
    }

    /// Drops or refuses a field. The sentence `reason` explains the refusal.
    ///
    /// # Errors
    /// The refusal, if such fields are refused.
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

    /// Drops the unknown members of an object, which is harmless.
    pub fn drop_unknown(&mut self, unknown: Option<&UnknownMember<'_>>) {
        if let Some((_, value)) = unknown {
            self.record_field(OTHER_FIELDS, value.get());
        }
    }

    /// Records a field that was translated differently from what the client sent.
    pub fn record_field(&mut self, key: &'static str, json: &str) {
        self.dropped.record_field(reported_name(key), value_address(json));
    }

    /// Returns the names of the dropped fields, in the order of the request.
    pub(super) fn into_names(self) -> Vec<&'static str> {
        self.dropped.into_names()
    }
}

/// Returns the reported name of a dropped field: all cache control has one name.
fn reported_name(key: &'static str) -> &'static str {
    if key.ends_with(".cache_control") {
        "cache_control"
    } else {
        key
    }
}

/// Returns the address of a value, which is a slice of the request.
fn value_address(json: &str) -> usize {
    json.as_ptr().addr()
}

/// Returns a value as JSON.
pub fn raw_json(value: Option<&RawValue>) -> Option<&str> {
    value.map(RawValue::get)
}
