use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::droppable_fields::{OTHER_FIELDS, has_effect};
use crate::dropped_field_log::{DroppedFieldLog, printable_name};
use crate::{UntranslatableFieldPolicy, UntranslatableRequest};

/// Number of members from which a set is used to find duplicates.
const DUPLICATE_SET_THRESHOLD: usize = 32;

/// A value of a request as written, and its path.
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

/// The members of an object in order, without those that are `null`: OpenAI treats them as absent.
pub type Members<'b> = Vec<(Cow<'b, str>, &'b RawValue)>;

impl<'b, 'p> Field<'b, 'p> {
    /// Returns the body itself as a field.
    ///
    /// # Errors
    /// [`UntranslatableRequest`] when it is not JSON.
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

    /// Returns a member of this object.
    #[inline]
    pub fn member<'q>(&'q self, name: &'q str, value: &'b RawValue) -> Field<'b, 'q> {
        self.child(PathStep::Name(name), value)
    }

    /// Returns an element of this array.
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

    /// Returns the value as JSON, as written in the body.
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

    /// Returns the value of a string.
    pub fn text(&self) -> Result<Cow<'b, str>, UntranslatableRequest> {
        let literal = self.literal()?;
        match literal.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(plain) if !plain.contains('\\') => Ok(Cow::Borrowed(plain)),
            _ => serde_json::from_str(literal)
                .map(Cow::Owned)
                .map_err(|_| self.error("It must be a string of Unicode characters.")),
        }
    }

    /// Returns a string as JSON, quotes and escapes included.
    pub fn literal(&self) -> Result<&'b str, UntranslatableRequest> {
        if self.is_string() {
            Ok(self.value)
        } else {
            Err(self.error("It must be a string."))
        }
    }

    /// Returns a number as JSON, with all its digits.
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

    /// Returns the members of an object.
    ///
    /// # Errors
    /// [`UntranslatableRequest`] when it is not an object, or has a duplicate member: which one counts is undefined.
    pub fn members(&self) -> Result<Members<'b>, UntranslatableRequest> {
        let MemberList(members) =
            serde_json::from_str(self.value).map_err(|_| self.error("It must be an object."))?;
        if has_duplicate_names(&members) {
            return Err(self.error("It has a repeated member."));
        }
        Ok(members)
    }

    /// Returns the error that this value cannot be translated.
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

/// Handles fields without a counterpart at the provider: they are refused, or dropped and recorded.
#[derive(Debug)]
pub struct DroppedFields(DroppedFieldLog);

impl DroppedFields {
    /// Creates an empty record.
    pub fn new(fields: UntranslatableFieldPolicy) -> Self {
        DroppedFields(DroppedFieldLog::new(fields))
    }

    /// Drops a field that the [list](crate::droppable_fields) has under this name, if its value has an effect.
    ///
    /// # Errors
    /// [`UntranslatableRequest`] if such fields are refused.
    pub fn drop_listed(&mut self, name: &str, field: &Field<'_, '_>) -> Result<(), UntranslatableRequest> {
        if !has_effect(name, field.value) {
            return Ok(());
        }
        // Members of an object are read out of order if one affects the meaning of another. Every field is a slice of
        // the body, so its address gives the order.
        let at = field.value.as_ptr().addr();
        self.0.drop_listed(name, at, || field.path())
    }

    /// Records a field that was translated differently from what the client sent.
    pub fn record_field(&mut self, name: &'static str, field: &Field<'_, '_>) {
        self.0.record_field(name, field.value.as_ptr().addr());
    }

    /// Returns the names of the dropped fields, in the order of the body.
    pub fn into_names(self) -> Vec<&'static str> {
        self.0.into_names()
    }

    /// Drops a field that is in no known version of the API.
    ///
    /// # Errors
    /// As for [`drop_listed`](DroppedFields::drop_listed).
    pub fn drop_unknown(&mut self, field: &Field<'_, '_>) -> Result<(), UntranslatableRequest> {
        self.drop_listed(OTHER_FIELDS, field)
    }
}
