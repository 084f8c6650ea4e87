//! The parsed request.

use crate::body::Body;
use crate::parse_error::parse_error;
use proofgate_dialect::UntranslatableRequest;
use serde::Deserialize;

/// A request, and the text that it was parsed from.
pub struct ChatRequest<'b> {
    text: &'b str,
    body: Body<'b>,
}

impl<'b> std::ops::Deref for ChatRequest<'b> {
    type Target = Body<'b>;

    #[inline]
    fn deref(&self) -> &Body<'b> {
        &self.body
    }
}

impl<'b> ChatRequest<'b> {
    /// Parses a request.
    ///
    /// # Errors
    /// [`UntranslatableRequest`] naming the field that has a wrong type.
    pub(super) fn read(text: &'b str) -> Result<Self, UntranslatableRequest> {
        let body = serde_json::from_str(text).map_err(|error| parse_error(text, text, &error))?;
        Ok(ChatRequest { text, body })
    }

    /// Parses a value of the request into its type.
    ///
    /// # Errors
    /// [`UntranslatableRequest`] naming the field that has a wrong type.
    pub fn parse<T: Deserialize<'b>>(&self, value: &'b str) -> Result<T, UntranslatableRequest> {
        serde_json::from_str(value).map_err(|error| parse_error(self.text, value, &error))
    }
}
