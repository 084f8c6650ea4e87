use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::dropped::{DroppedFieldLog, printable_name};
use crate::losses::{OTHER_FIELDS, has_effect};
use crate::{UntranslatableFieldPolicy, UntranslatableRequest};

/// From how many members on a set finds those that appear twice.
const DUPLICATE_SET_THRESHOLD: usize = 32;

/// A value of a request as it stands there, and the way to it.
#[derive(Debug, Clone, Copy)]
pub struct Field<'b, 'p> {
    value: &'b str,
    step: PathStep<'p>,
    parent: Option<&'p Field<'b, 'p>>,
}

#[derive(Debug, Clone, Copy)]
enum PathStep<'p> {
    Root,
    Name(&'p str),
    Index(usize),
}

/// The members of an object in their order, those that are `null` left out: OpenAI takes them as absent.
pub type Members<'b> = Vec<(Cow<'b, str>, &'b RawValue)>;

impl<'b, 'p> Field<'b, 'p> {
    /// The body itself.
    ///
    /// # Errors
    /// [`UntranslatableRequest`] when it is no JSON.
    pub fn body(body: &'b [u8]) -> Result<Self, UntranslatableRequest> {
        let no_json = || UntranslatableRequest::new("", "The body is not valid JSON.");
        let text = std::str::from_utf8(body).map_err(|_| no_json())?;
        let value: &RawValue = serde_json::from_str(text).map_err(|_| no_json())?;
        Ok(Field {
            value: value.get(),
            step: PathStep::Root,
            parent: None,
        })
    }

    /// A member of this object.
    #[inline]
    pub fn member<'q>(&'q self, name: &'q str, value: &'b RawValue) -> Field<'b, 'q> {
        self.child(PathStep::Name(name), value)
    }

    /// An element of this array.
    #[inline]
    pub fn element<'q>(&'q self, index: usize, value: &'b RawValue) -> Field<'b, 'q> {
        self.child(PathStep::Index(index), value)
    }

    fn child<'q>(&'q self, step: PathStep<'q>, value: &'b RawValue) -> Field<'b, 'q> {
        Field {
            value: value.get(),
            step,
            parent: Some(self),
        }
    }

    /// The value as JSON, as it stands in the body.
    #[inline]
    pub fn json(&self) -> &'b str {
        self.value
    }

    #[inline]
    pub fn is_string(&self) -> bool {
        self.value.starts_with('"')
    }

    #[inline]
    pub fn is_object(&self) -> bool {
        self.value.starts_with('{')
    }

    /// The text of a string.
    pub fn text(&self) -> Result<Cow<'b, str>, UntranslatableRequest> {
        let literal = self.literal()?;
        match literal.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(plain) if !plain.contains('\\') => Ok(Cow::Borrowed(plain)),
            _ => serde_json::from_str(literal)
                .map(Cow::Owned)
                .map_err(|_| self.error("It must be a string of Unicode characters.")),
        }
    }

    /// A string as JSON, quotes and escapes included.
    pub fn literal(&self) -> Result<&'b str, UntranslatableRequest> {
        if self.is_string() {
            Ok(self.value)
        } else {
            Err(self.error("It must be a string."))
        }
    }

    /// A number as JSON, with all its digits.
    pub fn number(&self) -> Result<&'b str, UntranslatableRequest> {
        if self
            .value
            .starts_with(|first: char| first == '-' || first.is_ascii_digit())
        {
            Ok(self.value)
        } else {
            Err(self.error("It must be a number."))
        }
    }

    pub fn boolean(&self) -> Result<bool, UntranslatableRequest> {
        match self.value {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.error("It must be true or false.")),
        }
    }

    pub fn elements(&self) -> Result<Vec<&'b RawValue>, UntranslatableRequest> {
        serde_json::from_str(self.value).map_err(|_| self.error("It must be an array."))
    }

    /// The members of an object.
    ///
    /// # Errors
    /// [`UntranslatableRequest`] when it is none, or names a member twice: which of the two counts is for no one to guess.
    pub fn members(&self) -> Result<Members<'b>, UntranslatableRequest> {
        let MemberList(members) =
            serde_json::from_str(self.value).map_err(|_| self.error("It must be an object."))?;
        if has_duplicate_names(&members) {
            return Err(self.error("It has a repeated member."));
        }
        Ok(members)
    }

    /// The error that this value cannot pass.
    pub fn error(&self, why: &'static str) -> UntranslatableRequest {
        UntranslatableRequest::new(self.path(), why)
    }

    fn path(&self) -> String {
        let mut path = self.parent.map(Field::path).unwrap_or_default();
        match self.step {
            PathStep::Root => {}
            PathStep::Name(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(printable_name(name));
            }
            PathStep::Index(index) => {
                path.push('[');
                path.push_str(itoa::Buffer::new().format(index));
                path.push(']');
            }
        }
        path
    }
}

fn has_duplicate_names(members: &Members<'_>) -> bool {
    if members.len() > DUPLICATE_SET_THRESHOLD {
        let mut seen = HashSet::with_capacity(members.len());
        return !members.iter().all(|(name, _)| seen.insert(&**name));
    }
    let mut rest = &members[..];
    while let [(name, _), behind @ ..] = rest {
        if behind.iter().any(|(other, _)| other == name) {
            return true;
        }
        rest = behind;
    }
    false
}

struct MemberList<'b>(Members<'b>);

#[derive(Deserialize)]
struct Name<'b>(#[serde(borrow)] Cow<'b, str>);

impl<'de> Deserialize<'de> for MemberList<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListMembers;
        impl<'de> Visitor<'de> for ListMembers {
            type Value = MemberList<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(8);
                while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                    if value.get() != "null" {
                        members.push((name, value));
                    }
                }
                Ok(MemberList(members))
            }
        }
        deserializer.deserialize_map(ListMembers)
    }
}

/// Fields that the provider has no counterpart for: refused, or noted.
#[derive(Debug)]
pub struct DroppedFields(DroppedFieldLog);

impl DroppedFields {
    /// None yet.
    pub fn new(fields: UntranslatableFieldPolicy) -> Self {
        DroppedFields(DroppedFieldLog::new(fields))
    }

    /// Leaves a field out that the [list](crate::losses) has under this name, if it asks for anything.
    ///
    /// # Errors
    /// [`UntranslatableRequest`] where such fields are refused.
    pub fn drop_listed(&mut self, name: &str, field: &Field<'_, '_>) -> Result<(), UntranslatableRequest> {
        if !has_effect(name, field.value) {
            return Ok(());
        }
        // Members of an object are not read in their order where one decides what another means. Every field is a piece of
        // the body, so that its address tells the order.
        let at = field.value.as_ptr().addr();
        self.0.drop_listed(name, at, || field.path())
    }

    /// Notes a field that was said in another way than the client said it.
    pub fn note(&mut self, name: &'static str, field: &Field<'_, '_>) {
        self.0.note(name, field.value.as_ptr().addr());
    }

    /// The names of what was left out, in the order of the body.
    pub fn into_names(self) -> Vec<&'static str> {
        self.0.into_names()
    }

    /// Leaves out a field that no version of the API is known to have.
    ///
    /// # Errors
    /// As for [`drop_listed`](DroppedFields::drop_listed).
    pub fn drop_unknown(&mut self, field: &Field<'_, '_>) -> Result<(), UntranslatableRequest> {
        self.drop_listed(OTHER_FIELDS, field)
    }
}
