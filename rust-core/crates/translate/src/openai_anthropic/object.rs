use std::borrow::Cow;

use serde::Deserialize;

/// A word of a request, such as a role or a name: unescaped, and borrowed where it has no escapes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Word<'b>(#[serde(borrow)] pub(crate) Cow<'b, str>);

impl std::ops::Deref for Word<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Declares a struct that is read from a JSON object and notes the first member that is none of its fields.
///
/// Serde's derive either ignores unknown members or fails on them, and `flatten` copies the whole object; a translator
/// has to say what it leaves out. A member that is `null` counts as absent. One that stands twice is refused: two readers
/// of the same bytes could take either.
macro_rules! object {
    ($(#[$doc:meta])* $name:ident { $($field:ident $(($key:literal))? : $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Default)]
        pub(super) struct $name<'b> {
            $(pub(super) $field: Option<$type>,)*
            pub(super) unknown: Option<std::borrow::Cow<'b, str>>,
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
                        while let Some($crate::openai_anthropic::object::Word(key)) = map.next_key()? {
                            match &*key {
                                $($crate::openai_anthropic::object::key!($field $($key)?) => {
                                    if object.$field.is_some() {
                                        // The error is where the value ends.
                                        map.next_value::<serde::de::IgnoredAny>()?;
                                        return Err(serde::de::Error::custom("a member stands twice"));
                                    }
                                    object.$field = map.next_value()?;
                                })*
                                _ => {
                                    let value = map.next_value::<Option<serde::de::IgnoredAny>>()?;
                                    if value.is_some() && object.unknown.is_none() {
                                        object.unknown = Some(key);
                                    }
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

/// The key of a field: its name, or what stands behind it in parentheses.
macro_rules! key {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}

pub(crate) use key;
pub(crate) use object;
