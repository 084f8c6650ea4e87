//! Deserializes request objects into their known members, with values kept as written.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A single-word string of a request, such as a role or a name: unescaped, and borrowed if it has no escapes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct UnescapedString<'b>(#[serde(borrow)] pub Cow<'b, str>);

impl std::ops::Deref for UnescapedString<'_> {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        &self.0
    }
}

/// The first unknown member of an object: its name, and its value as JSON.
pub type UnknownMember<'b> = (Cow<'b, str>, &'b RawValue);

/// Declares a value that must have one JSON type and is kept as written in the body.
macro_rules! kept {
    ($(#[$doc:meta])* $name:ident, $is:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name<'b>(&'b str);

        impl<'b> $name<'b> {
            /// Returns it as JSON.
            #[inline]
            pub fn json(self) -> &'b str {
                self.0
            }
        }

        impl<'de: 'b, 'b> Deserialize<'de> for $name<'b> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let json = <&RawValue>::deserialize(deserializer)?.get();
                let is_so: fn(&str) -> bool = $is;
                match is_so(json) {
                    true => Ok($name(json)),
                    false => Err(serde::de::Error::custom("a value of another type")),
                }
            }
        }
    };
}

kept!(
    /// A number with all its digits.
    Number,
    |json| json.starts_with(|first: char| first == '-' || first.is_ascii_digit())
);
kept!(
    /// `true` or `false`.
    Flag,
    |json| matches!(json, "true" | "false")
);
kept!(
    /// An object.
    Object,
    |json| json.starts_with('{')
);

impl Flag<'_> {
    #[inline]
    pub fn is_true(self) -> bool {
        self.0 == "true"
    }
}

impl Number<'_> {
    /// Returns the number; NaN if it cannot be parsed.
    #[inline]
    pub fn value(self) -> f64 {
        self.0.parse().unwrap_or(f64::NAN)
    }
}

/// Declares a struct that is deserialized from a JSON object and records the first unknown member.
///
/// Serde's derive either ignores unknown members or fails on them, and `flatten` copies the whole
/// object; a translator has to report what it drops. A member that is `null` counts as absent. A
/// duplicate member is refused, because readers disagree about which one counts.
#[macro_export]
macro_rules! object {
    ($(#[$doc:meta])* $name:ident { $($(#[$note:meta])* $field:ident $(($key:literal))? : $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Default)]
        pub struct $name<'b> {
            $($(#[$note])* pub $field: Option<$type>,)*
            pub unknown: Option<$crate::object::UnknownMember<'b>>,
        }

        impl<'de: 'b, 'b> serde::Deserialize<'de> for $name<'b> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Members<'b>(std::marker::PhantomData<&'b ()>);

                impl<'de: 'b, 'b> serde::de::Visitor<'de> for Members<'b> {
                    type Value = $name<'b>;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        formatter.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$name<'b>, A::Error> {
                        let mut object = $name::default();
                        while let Some($crate::object::UnescapedString(key)) = map.next_key()? {
                            match &*key {
                                $($crate::object::key!($field $($key)?) => {
                                    if object.$field.is_some() {
                                        // The error is reported at the end of the value.
                                        map.next_value::<serde::de::IgnoredAny>()?;
                                        return Err(serde::de::Error::custom("a member is repeated"));
                                    }
                                    object.$field = map.next_value()?;
                                })*
                                _ => {
                                    let value = map.next_value::<Option<&'b serde_json::value::RawValue>>()?;
                                    object.unknown = object.unknown.or(value.map(|value| (key, value)));
                                }
                            }
                        }
                        Ok(object)
                    }
                }

                deserializer.deserialize_map(Members(std::marker::PhantomData))
            }
        }
    };
}

/// Returns the key of a field: its name, or the literal after it.
#[macro_export]
macro_rules! key {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}

pub use key;
pub use object;
