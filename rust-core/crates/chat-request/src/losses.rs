use serde_json::value::RawValue;

use proofgate_dialect::dropped::Dropped;
use proofgate_dialect::losses::{OTHER_FIELDS, has_effect};
use proofgate_dialect::object::Unknown;
use proofgate_dialect::{Untranslatable, UntranslatableFields};

/// What a request has and its provider has no words for.
///
/// A field is known by a key, its path with `[]` behind the name of an array. The [list](proofgate_dialect::losses) has a
/// verdict for each; marks for a cache have one for all places.
pub struct Losses {
    dropped: Dropped,
    /// The keys of what the writer says itself.
    says: &'static [&'static str],
}

impl Losses {
    /// None yet, of a writer that says these fields itself.
    pub(super) fn new(fields: UntranslatableFields, says: &'static [&'static str]) -> Self {
        Losses {
            dropped: Dropped::new(fields),
            says,
        }
    }

    /// Whether the writer says a field itself.
    pub(super) fn says(&self, key: &str) -> bool {
        self.says.contains(&key)
    }

    /// Leaves a field out unless the writer says it itself, or it asks for nothing.
    ///
    /// # Errors
    /// The refusal of what is impossible, and of what is lossy where such fields are refused.
    pub(super) fn offer(
        &mut self,
        key: &'static str,
        json: Option<&str>,
        path: impl FnOnce() -> String,
    ) -> Result<(), Untranslatable> {
        match json.filter(|_| !self.says(key)) {
            Some(json) => self.lose(key, json, path),
            None => Ok(()),
        }
    }

    /// Leaves a field out, given as it stands in the body, unless it asks for nothing.
    ///
    /// # Errors
    /// As for [`offer`](Losses::offer).
    pub fn lose(
        &mut self,
        key: &'static str,
        json: &str,
        path: impl FnOnce() -> String,
    ) -> Result<(), Untranslatable> {
        let name = name_of(key);
        if !has_effect(name, json) {
            return Ok(());
        }
        self.dropped.lose(name, place_of(json), path)
    }

    /// Leaves a field of the body out, whose key is its path.
    ///
    /// # Errors
    /// As for [`offer`](Losses::offer).
    pub fn lose_field(&mut self, key: &'static str, json: &str) -> Result<(), Untranslatable> {
        self.lose(key, json, || key.to_owned())
    }

    /// Leaves out or refuses a field for a reason, which is a sentence.
    ///
    /// # Errors
    /// The refusal, where such fields are refused.
    pub fn lose_for(
        &mut self,
        reason: &'static str,
        key: &'static str,
        json: &str,
    ) -> Result<(), Untranslatable> {
        self.dropped
            .drop_or(key, place_of(json), || Untranslatable::new(key, reason))
    }

    /// Leaves out what an object has besides its known members, which is harmless.
    pub fn unknown(&mut self, unknown: Option<&Unknown<'_>>) {
        if let Some((_, value)) = unknown {
            self.note(OTHER_FIELDS, value.get());
        }
    }

    /// Notes a field that was said in another way than the client said it.
    pub fn note(&mut self, key: &'static str, json: &str) {
        self.dropped.note(name_of(key), place_of(json));
    }

    /// The names of what was left out, in the order of the request.
    pub(super) fn into_names(self) -> Vec<&'static str> {
        self.dropped.into_names()
    }
}

/// The name of a loss: there is one for all marks for a cache.
fn name_of(key: &'static str) -> &'static str {
    if key.ends_with(".cache_control") {
        "cache_control"
    } else {
        key
    }
}

/// Where in the request a value stands, which is a piece of it.
fn place_of(json: &str) -> usize {
    json.as_ptr().addr()
}

/// A value as JSON.
pub fn json(value: Option<&RawValue>) -> Option<&str> {
    value.map(RawValue::get)
}
