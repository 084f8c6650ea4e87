//! The fields that the core reads, as Serde's derive reports them.
//!
//! Python writes the document that [`Config`] reads. The core refuses unknown fields, so every
//! written field is read. This list allows the reverse test: every field that the core reads is
//! written.

use std::cell::Cell;
use std::fmt;

use serde::Deserialize;
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::Config;

/// Returns the path of each field and each enum value of a [`Config`], in the order of the types:
/// `providers[].timeouts.connectSeconds`, `ledger.durability=Synced`. `[]` stands for list elements
/// and for values of objects with arbitrary keys.
pub fn config_fields() -> Vec<String> {
    let mut found = Vec::new();
    explore(&mut Vec::new(), &mut Vec::new(), &mut found);
    found
}

/// A step of a path in a document.
#[derive(Clone, Copy)]
enum Step {
    Field(&'static str),
    Element,
    Word(&'static str),
}

/// The value that a type requests at the end of a path.
#[derive(Clone, Copy)]
enum Asked {
    Fields(&'static [&'static str]),
    Elements,
    Words(&'static [&'static str]),
    Value,
}

/// Adds the fields below `path`. `inside`: the fields of the enclosing types, because a price can
/// contain a price.
fn explore(path: &mut Vec<Step>, inside: &mut Vec<&'static [&'static str]>, found: &mut Vec<String>) {
    let steps: Vec<Step> = match asked_at(path) {
        Asked::Fields(names) if inside.contains(&names) => return,
        Asked::Fields(names) => {
            inside.push(names);
            names.iter().map(|name| Step::Field(name)).collect()
        }
        Asked::Words(words) => words.iter().map(|word| Step::Word(word)).collect(),
        Asked::Elements => vec![Step::Element],
        Asked::Value => return,
    };
    let ends_type = matches!(steps.first(), Some(Step::Field(_)));
    for step in steps {
        path.push(step);
        if !matches!(step, Step::Element) {
            found.push(shown(path));
        }
        explore(path, inside, found);
        path.pop();
    }
    if ends_type {
        inside.pop();
    }
}

/// Deserializes a document that contains only `path`, and returns the value requested at its end.
/// The deserialization always fails, because fields are missing.
fn asked_at(path: &[Step]) -> Asked {
    let asked = Cell::new(Asked::Value);
    let _ = Config::deserialize(Probe { path, asked: &asked });
    asked.get()
}

fn shown(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Field(name) if text.is_empty() => text.push_str(name),
            Step::Field(name) => text.extend([".", name]),
            Step::Element => text.push_str("[]"),
            Step::Word(word) => text.extend(["=", word]),
        }
    }
    text
}

/// The error that ends every deserialization at the end of the path.
#[derive(Debug)]
struct PathEnds;

impl fmt::Display for PathEnds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the path ends here")
    }
}

impl std::error::Error for PathEnds {}

impl serde::de::Error for PathEnds {
    fn custom<T: fmt::Display>(_: T) -> Self {
        PathEnds
    }
}

/// The document below the remaining steps of a path.
#[derive(Clone, Copy)]
struct Probe<'p> {
    path: &'p [Step],
    asked: &'p Cell<Asked>,
}

impl Probe<'_> {
    fn end<T>(self, asked: Asked) -> Result<T, PathEnds> {
        if self.path.is_empty() {
            self.asked.set(asked);
        }
        Err(PathEnds)
    }

    fn below(self) -> Self {
        Probe {
            path: self.path.get(1..).unwrap_or_default(),
            asked: self.asked,
        }
    }
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = PathEnds;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, PathEnds> {
        self.end(Asked::Value)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PathEnds> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, PathEnds> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PathEnds> {
        match self.path.first() {
            Some(Step::Element) => visitor.visit_seq(One(Some(self.below()))),
            _ => self.end(Asked::Elements),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, PathEnds> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PathEnds> {
        match self.path.first() {
            Some(Step::Element) => visitor.visit_map(Member("name", Some(self.below()))),
            _ => self.end(Asked::Elements),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, PathEnds> {
        match self.path.first() {
            Some(Step::Field(name)) => visitor.visit_map(Member(name, Some(self.below()))),
            _ => self.end(Asked::Fields(fields)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, PathEnds> {
        match self.path.first() {
            Some(Step::Word(word)) => visitor.visit_enum(Member(word, Some(self.below()))),
            _ => self.end(Asked::Words(words)),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        tuple_struct identifier ignored_any
    }
}

/// A list with one element.
struct One<'p>(Option<Probe<'p>>);

impl<'de> SeqAccess<'de> for One<'_> {
    type Error = PathEnds;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, PathEnds> {
        self.0.take().map(|probe| seed.deserialize(probe)).transpose()
    }
}

/// An object with one member, or an enum value with its content.
struct Member<'p>(&'static str, Option<Probe<'p>>);

impl<'de> MapAccess<'de> for Member<'_> {
    type Error = PathEnds;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, PathEnds> {
        match self.1 {
            Some(_) => seed.deserialize(BorrowedStrDeserializer::new(self.0)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, PathEnds> {
        seed.deserialize(self.1.take().ok_or(PathEnds)?)
    }
}

impl<'de, 'p> EnumAccess<'de> for Member<'p> {
    type Error = PathEnds;
    type Variant = Probe<'p>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Probe<'p>), PathEnds> {
        let word = seed.deserialize(BorrowedStrDeserializer::new(self.0))?;
        Ok((word, self.1.ok_or(PathEnds)?))
    }
}

impl<'de> VariantAccess<'de> for Probe<'_> {
    type Error = PathEnds;

    fn unit_variant(self) -> Result<(), PathEnds> {
        self.end(Asked::Value)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, PathEnds> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, PathEnds> {
        self.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, PathEnds> {
        self.deserialize_struct("", fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::config_fields;

    #[test]
    fn fields_of_lists_options_and_words_are_found() {
        let fields = config_fields();
        for field in [
            "listen",
            "ledger.durability=Synced",
            "ledger.heldCheckpoints.keptBy",
            "providers[].timeouts.connectSeconds",
            "plans[].hostedTools.maxCalls",
            "tls.clientNames",
        ] {
            assert!(
                fields.iter().any(|found| found == field),
                "{field} in {fields:#?}"
            );
        }
    }
}
