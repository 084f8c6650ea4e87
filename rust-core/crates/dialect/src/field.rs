use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::dropped::{Dropped, plain_name};
use crate::losses::{OTHER_FIELDS, has_effect};
use crate::{Untranslatable, UntranslatableFields};

/// From how many members on a set finds those that appear twice.
const MANY_MEMBERS: usize = 32;

/// A value of a request as it stands there, and the way to it.
#[derive(Debug, Clone, Copy)]
pub struct Field<'b, 'p> {
    value: &'b str,
    step: Step<'p>,
    above: Option<&'p Field<'b, 'p>>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'p> {
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
    /// [`Untranslatable`] when it is no JSON.
    pub fn body(body: &'b [u8]) -> Result<Self, Untranslatable> {
        let no_json = || Untranslatable::new("", "The body is not valid JSON.");
        let text = std::str::from_utf8(body).map_err(|_| no_json())?;
        let value: &RawValue = serde_json::from_str(text).map_err(|_| no_json())?;
        Ok(Field {
            value: value.get(),
            step: Step::Root,
            above: None,
        })
    }

    /// A member of this object.
    #[inline]
    pub fn member<'q>(&'q self, name: &'q str, value: &'b RawValue) -> Field<'b, 'q> {
        self.below(Step::Name(name), value)
    }

    /// An element of this array.
    #[inline]
    pub fn element<'q>(&'q self, index: usize, value: &'b RawValue) -> Field<'b, 'q> {
        self.below(Step::Index(index), value)
    }

    fn below<'q>(&'q self, step: Step<'q>, value: &'b RawValue) -> Field<'b, 'q> {
        Field {
            value: value.get(),
            step,
            above: Some(self),
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
    pub fn text(&self) -> Result<Cow<'b, str>, Untranslatable> {
        let literal = self.literal()?;
        match literal.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(plain) if !plain.contains('\\') => Ok(Cow::Borrowed(plain)),
            _ => serde_json::from_str(literal)
                .map(Cow::Owned)
                .map_err(|_| self.refuse("It must be a string of Unicode characters.")),
        }
    }

    /// A string as JSON, quotes and escapes included.
    pub fn literal(&self) -> Result<&'b str, Untranslatable> {
        if self.is_string() {
            Ok(self.value)
        } else {
            Err(self.refuse("It must be a string."))
        }
    }

    /// A number as JSON, with all its digits.
    pub fn number(&self) -> Result<&'b str, Untranslatable> {
        if self
            .value
            .starts_with(|first: char| first == '-' || first.is_ascii_digit())
        {
            Ok(self.value)
        } else {
            Err(self.refuse("It must be a number."))
        }
    }

    pub fn boolean(&self) -> Result<bool, Untranslatable> {
        match self.value {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.refuse("It must be true or false.")),
        }
    }

    pub fn elements(&self) -> Result<Vec<&'b RawValue>, Untranslatable> {
        serde_json::from_str(self.value).map_err(|_| self.refuse("It must be an array."))
    }

    /// The members of an object.
    ///
    /// # Errors
    /// [`Untranslatable`] when it is none, or names a member twice: which of the two counts is for no one to guess.
    pub fn members(&self) -> Result<Members<'b>, Untranslatable> {
        let Listed(members) =
            serde_json::from_str(self.value).map_err(|_| self.refuse("It must be an object."))?;
        if names_one_twice(&members) {
            return Err(self.refuse("It has a repeated member."));
        }
        Ok(members)
    }

    /// The error that this value cannot pass.
    pub fn refuse(&self, why: &'static str) -> Untranslatable {
        Untranslatable::new(self.path(), why)
    }

    fn path(&self) -> String {
        let mut path = self.above.map(Field::path).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Name(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(plain_name(name));
            }
            Step::Index(index) => {
                path.push('[');
                path.push_str(itoa::Buffer::new().format(index));
                path.push(']');
            }
        }
        path
    }
}

fn names_one_twice(members: &Members<'_>) -> bool {
    if members.len() > MANY_MEMBERS {
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

struct Listed<'b>(Members<'b>);

#[derive(Deserialize)]
struct Name<'b>(#[serde(borrow)] Cow<'b, str>);

impl<'de> Deserialize<'de> for Listed<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListMembers;
        impl<'de> Visitor<'de> for ListMembers {
            type Value = Listed<'de>;

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
                Ok(Listed(members))
            }
        }
        deserializer.deserialize_map(ListMembers)
    }
}

/// Fields that the provider has no counterpart for: refused, or noted.
#[derive(Debug)]
pub struct Losses(Dropped);

impl Losses {
    /// None yet.
    pub fn new(fields: UntranslatableFields) -> Self {
        Losses(Dropped::new(fields))
    }

    /// Leaves a field out that the [list](crate::losses) has under this name, if it asks for anything.
    ///
    /// # Errors
    /// [`Untranslatable`] where such fields are refused.
    pub fn lose(&mut self, name: &str, field: &Field<'_, '_>) -> Result<(), Untranslatable> {
        if !has_effect(name, field.value) {
            return Ok(());
        }
        // Members of an object are not read in their order where one decides what another means. Every field is a piece of
        // the body, so that its address tells the order.
        let at = field.value.as_ptr().addr();
        self.0.lose(name, at, || field.path())
    }

    /// Notes a field that was said in another way than the client said it.
    pub fn note(&mut self, name: &'static str, field: &Field<'_, '_>) {
        self.0.note(name, field.value.as_ptr().addr());
    }

    /// The names of what was left out, in the order of the body.
    pub fn names(self) -> Vec<&'static str> {
        self.0.into_names()
    }

    /// Leaves out a field that no version of the API is known to have.
    ///
    /// # Errors
    /// As for [`lose`](Losses::lose).
    pub fn unknown(&mut self, field: &Field<'_, '_>) -> Result<(), Untranslatable> {
        self.lose(OTHER_FIELDS, field)
    }
}
