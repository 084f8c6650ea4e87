//! Request methods.

/// A request method (RFC 9110 section 9.1). Names are case-sensitive: `get` is [`Method::Other`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// `GET`
    Get,
    /// `HEAD`
    Head,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `DELETE`
    Delete,
    /// `OPTIONS`
    Options,
    /// `PATCH` (RFC 5789)
    Patch,
    /// `TRACE`
    Trace,
    /// Any other token. Its text is in [`crate::RequestHead::method_text`].
    Other,
}

impl Method {
    pub(crate) fn from_text(text: &str) -> Self {
        match text {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "POST" => Self::Post,
            "PUT" => Self::Put,
            "DELETE" => Self::Delete,
            "OPTIONS" => Self::Options,
            "PATCH" => Self::Patch,
            "TRACE" => Self::Trace,
            _ => Self::Other,
        }
    }

    /// Returns the method's name; `None` for [`Method::Other`].
    #[must_use]
    pub fn as_str(self) -> Option<&'static str> {
        Some(match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
            Self::Patch => "PATCH",
            Self::Trace => "TRACE",
            Self::Other => return None,
        })
    }

    /// Returns whether a request with this method is refused if it has a body. RFC 9110 forbids a
    /// body for TRACE and defines no meaning of a body for GET and HEAD (sections 9.3.1, 9.3.2 and
    /// 9.3.8), so parsers treat it differently.
    pub(crate) fn refuses_body(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Trace)
    }
}
