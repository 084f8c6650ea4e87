use serde::Deserialize;
use serde::de::{Error, MapAccess};

/// Defines a JSON object of a request: each field is `None` if it is absent or `null`, and `unknown` is the first field, not
/// `null`, that has no name here. A name that stands twice is an error.
macro_rules! object {
    ($(#[$doc:meta])* $name:ident { $($key:literal => $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        pub(super) struct $name<'b> {
            $(pub(super) $field: Option<$type>,)*
            pub(super) unknown: Option<(crate::openai_converse::text::Text<'b>, &'b serde_json::value::RawValue)>,
        }

        impl<'b> serde::Deserialize<'b> for $name<'b> {
            fn deserialize<D: serde::Deserializer<'b>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields;

                impl<'b> serde::de::Visitor<'b> for Fields {
                    type Value = $name<'b>;

                    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        out.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'b>>(self, mut map: A) -> Result<$name<'b>, A::Error> {
                        let mut object = $name { $($field: None,)* unknown: None };
                        while let Some(key) = map.next_key::<crate::openai_converse::text::Text<'b>>()? {
                            match &*key {
                                $($key => $crate::openai_converse::object::read_once(&mut map, &mut object.$field)?,)*
                                _ => {
                                    let value: Option<&'b serde_json::value::RawValue> = map.next_value()?;
                                    object.unknown = object.unknown.or(value.map(|value| (key, value)));
                                }
                            }
                        }
                        Ok(object)
                    }
                }

                deserializer.deserialize_map(Fields)
            }
        }
    };
}

pub(super) use object;

/// Reads the value of a field that has not been read.
pub(super) fn read_once<'b, A: MapAccess<'b>, T: Deserialize<'b>>(
    map: &mut A,
    field: &mut Option<T>,
) -> Result<(), A::Error> {
    if field.is_some() {
        return Err(A::Error::custom("a field stands twice"));
    }
    *field = map.next_value()?;
    Ok(())
}
