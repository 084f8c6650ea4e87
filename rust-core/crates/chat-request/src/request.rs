//! A request as it was read.

use crate::body::Body;
use crate::unreadable::unreadable;
use proofgate_dialect::Untranslatable;
use serde::Deserialize;

/// A request, and the text that it was read from.
pub struct Chat<'b> {
    text: &'b str,
    body: Body<'b>,
}

impl<'b> std::ops::Deref for Chat<'b> {
    type Target = Body<'b>;

    #[inline]
    fn deref(&self) -> &Body<'b> {
        &self.body
    }
}

impl<'b> Chat<'b> {
    /// Reads a request.
    ///
    /// # Errors
    /// [`Untranslatable`] names the field that is of another type.
    pub(super) fn read(text: &'b str) -> Result<Self, Untranslatable> {
        let body = serde_json::from_str(text).map_err(|error| unreadable(text, text, &error))?;
        Ok(Chat { text, body })
    }

    /// Reads a value of the request into what it has to be.
    ///
    /// # Errors
    /// [`Untranslatable`] names the field that is of another type.
    pub fn parse<T: Deserialize<'b>>(&self, value: &'b str) -> Result<T, Untranslatable> {
        serde_json::from_str(value).map_err(|error| unreadable(self.text, value, &error))
    }
}
