//! Paths in a request, and the handling of fields without a counterpart.

use std::borrow::Cow;
use std::fmt;

use proofgate_dialect::droppable_fields::OTHER_FIELDS;
use proofgate_dialect::dropped_field_log::{DroppedFieldLog, no_counterpart_error, printable_name};
use proofgate_dialect::{UntranslatableFieldPolicy, UntranslatableRequest};

/// A path in a request, written as `messages[3].content[0].type`.
#[derive(Debug, Clone, Copy)]
pub(super) enum JsonPath<'p> {
    /// The body.
    Body,
    /// A field of an object.
    Field(&'p JsonPath<'p>, &'p str),
    /// An element of an array.
    Element(&'p JsonPath<'p>, usize),
}

impl<'p> JsonPath<'p> {
    pub(super) fn field(&'p self, name: &'p str) -> JsonPath<'p> {
        JsonPath::Field(self, name)
    }

    pub(super) fn element(&'p self, at: usize) -> JsonPath<'p> {
        JsonPath::Element(self, at)
    }

    /// Returns an error for this path.
    pub(super) fn error(&self, message: impl Into<Cow<'static, str>>) -> UntranslatableRequest {
        UntranslatableRequest::new(self.path(), message)
    }

    fn path(&self) -> String {
        match self {
            JsonPath::Body => "body".to_owned(),
            place => place.to_string(),
        }
    }

    /// Returns the error for a required field that is missing.
    pub(super) fn missing_error(&self) -> UntranslatableRequest {
        self.error("Field required")
    }
}

impl fmt::Display for JsonPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonPath::Body => Ok(()),
            JsonPath::Field(JsonPath::Body, name) => f.write_str(name),
            JsonPath::Field(place, name) => write!(f, "{place}.{name}"),
            JsonPath::Element(place, at) => write!(f, "{place}[{at}]"),
        }
    }
}

/// Fields that do not reach the model (cache marks, the user, transport), and fields that only
/// permit its default behaviour: thinking, and dropping earlier thinking. They are left out, and
/// never refused.
const IGNORED_FIELDS: [&str; 9] = [
    OTHER_FIELDS,
    "thinking",
    "context_management",
    "cache_control",
    "metadata.user_id",
    "diagnostics",
    "eager_input_streaming",
    "caller",
    "strict",
];

/// Records the fields that are left out of a request, or refuses the request.
#[derive(Debug)]
pub(super) struct DroppedFields(DroppedFieldLog);

impl DroppedFields {
    pub(super) fn new(fields: UntranslatableFieldPolicy) -> Self {
        DroppedFields(DroppedFieldLog::new(fields))
    }

    /// Returns the names of the fields that were left out, in the order of the written request.
    pub(super) fn into_names(self) -> Vec<&'static str> {
        self.0.into_names()
    }

    /// Records a name, once.
    pub(super) fn record_field(&mut self, name: &'static str) {
        self.0.record_field(name, 0);
    }

    /// Drops a field without a counterpart at the provider, or refuses it if it reaches the model
    /// and such fields are refused.
    pub(super) fn drop_preference(
        &mut self,
        place: &JsonPath<'_>,
        name: &'static str,
    ) -> Result<(), UntranslatableRequest> {
        if IGNORED_FIELDS.contains(&name) {
            self.record_field(name);
            return Ok(());
        }
        self.0
            .drop_or_reject(name, 0, || no_counterpart_error(place.path()))
    }

    /// Drops an unknown field, if there is one.
    pub(super) fn drop_unknown(
        &mut self,
        place: &JsonPath<'_>,
        name: Option<&str>,
    ) -> Result<(), UntranslatableRequest> {
        match name {
            None => Ok(()),
            Some(name) => self.drop_preference(&place.field(printable_name(name)), OTHER_FIELDS),
        }
    }

    /// Drops the fields of an object that have not been read.
    pub(super) fn drop_unread_fields(
        &mut self,
        place: &JsonPath<'_>,
        given: impl Iterator<Item = &'static str>,
        read: &[&str],
        unknown: Option<&str>,
    ) -> Result<(), UntranslatableRequest> {
        for name in given.filter(|name| !read.contains(name)) {
            self.drop_preference(&place.field(name), name)?;
        }
        self.drop_unknown(place, unknown)
    }
}
