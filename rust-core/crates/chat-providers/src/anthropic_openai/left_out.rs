//! Where in a request something stands, and what becomes of fields without a counterpart.

use std::borrow::Cow;
use std::fmt;

use proofgate_dialect::dropped::{Dropped, no_counterpart, plain_name};
use proofgate_dialect::losses::OTHER_FIELDS;
use proofgate_dialect::{Untranslatable, UntranslatableFields};

/// A place in a request; written as `messages[3].content[0].type`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'p> {
    /// The body.
    Body,
    /// A field of an object.
    Field(&'p Place<'p>, &'p str),
    /// An element of an array.
    Item(&'p Place<'p>, usize),
}

impl<'p> Place<'p> {
    pub(super) fn field(&'p self, name: &'p str) -> Place<'p> {
        Place::Field(self, name)
    }

    pub(super) fn item(&'p self, at: usize) -> Place<'p> {
        Place::Item(self, at)
    }

    /// An error about what stands here.
    pub(super) fn refused(&self, message: impl Into<Cow<'static, str>>) -> Untranslatable {
        Untranslatable::new(self.path(), message)
    }

    fn path(&self) -> String {
        match self {
            Place::Body => "body".to_owned(),
            place => place.to_string(),
        }
    }

    /// The error for a field that has to be there.
    pub(super) fn required(&self) -> Untranslatable {
        self.refused("Field required")
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Body => Ok(()),
            Place::Field(Place::Body, name) => f.write_str(name),
            Place::Field(place, name) => write!(f, "{place}.{name}"),
            Place::Item(place, at) => write!(f, "{place}[{at}]"),
        }
    }
}

/// What says nothing to the model (marks for a cache, whose request it is, how it is carried), and what only lets it do what it does
/// anyway: to think, and to forget what it thought. It is left out, and never refused.
const HARMLESS: [&str; 9] = [
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

/// Notes what is left out of a request, or refuses it.
#[derive(Debug)]
pub(super) struct LeftOut(Dropped);

impl LeftOut {
    pub(super) fn new(fields: UntranslatableFields) -> Self {
        LeftOut(Dropped::new(fields))
    }

    /// The names of what was left out, in the order of what is written.
    pub(super) fn into_names(self) -> Vec<&'static str> {
        self.0.into_names()
    }

    /// Notes a name, once.
    pub(super) fn note(&mut self, name: &'static str) {
        self.0.note(name, 0);
    }

    /// A field that the provider has no counterpart for: a preference, unless it says nothing to the model.
    pub(super) fn preference(&mut self, place: &Place<'_>, name: &'static str) -> Result<(), Untranslatable> {
        if HARMLESS.contains(&name) {
            self.note(name);
            return Ok(());
        }
        self.0.drop_or(name, 0, || no_counterpart(place.path()))
    }

    /// A field whose name is not known, if there is one.
    pub(super) fn unknown(&mut self, place: &Place<'_>, name: Option<&str>) -> Result<(), Untranslatable> {
        match name {
            None => Ok(()),
            Some(name) => self.preference(&place.field(plain_name(name)), OTHER_FIELDS),
        }
    }

    /// What stands in an object besides the fields that have been read.
    pub(super) fn others(
        &mut self,
        place: &Place<'_>,
        given: impl Iterator<Item = &'static str>,
        read: &[&str],
        unknown: Option<&str>,
    ) -> Result<(), Untranslatable> {
        for name in given.filter(|name| !read.contains(name)) {
            self.preference(&place.field(name), name)?;
        }
        self.unknown(place, unknown)
    }
}
