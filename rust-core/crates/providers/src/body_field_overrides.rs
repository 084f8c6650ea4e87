//! Fields that are set in every request body to a provider, whatever the client sends.

use serde::de::IgnoredAny;

use crate::members::{Members, ObjectWriter};

/// Top-level fields that are set in JSON bodies. A client's field of the same name is removed.
#[derive(Debug, Clone, Default)]
pub struct BodyFieldOverrides {
    names: Vec<Box<str>>,
    /// The members as JSON, separated by commas.
    members: Vec<u8>,
}

impl BodyFieldOverrides {
    /// Creates the fields from names and values, each value a JSON text.
    ///
    /// # Errors
    /// The name of a field whose value is not valid JSON.
    pub fn new<'f>(fields: impl IntoIterator<Item = (&'f str, &'f str)>) -> Result<Self, String> {
        let mut set = BodyFieldOverrides::default();
        for (name, value) in fields {
            let is_json = serde_json::from_str::<IgnoredAny>(value).is_ok();
            let key = serde_json::to_vec(name).ok().filter(|_| is_json);
            let key = key.ok_or_else(|| name.to_owned())?;
            if !set.members.is_empty() {
                set.members.push(b',');
            }
            for part in [&key, &b":"[..], value.as_bytes()] {
                set.members.extend_from_slice(part);
            }
            set.names.push(name.into());
        }
        Ok(set)
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the maximum length of a body of `length` bytes after the fields are set.
    pub fn max_bytes(&self, length: usize) -> usize {
        // A client's member grows by at most its comma, if spaces separated the members.
        length.saturating_add(self.members.len()).saturating_add(3)
    }

    /// Writes the object `body` with the fields, and returns the names of these fields that `body`
    /// already had. Returns `None` and writes nothing if `body` is not an object. All other members
    /// are copied byte for byte.
    pub fn write(&self, body: &[u8], out: &mut Vec<u8>) -> Option<Vec<&str>> {
        let members: Members<'_> = serde_json::from_slice(body).ok()?;
        let mut replaced = Vec::new();
        let mut object = ObjectWriter::new(out);
        for member in members.iter() {
            match self.names.iter().find(|set| ***set == *member.name) {
                None => object.write_member(member),
                Some(set) if replaced.contains(&&**set) => {}
                Some(set) => replaced.push(&**set),
            }
        }
        object.write_raw_members(&[&self.members]);
        object.finish();
        Some(replaced)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn written(fields: &[(&str, &str)], body: &str) -> (String, Vec<String>) {
        let set = BodyFieldOverrides::new(fields.iter().copied()).unwrap();
        let mut out = Vec::new();
        let replaced = set.write(body.as_bytes(), &mut out).unwrap();
        assert!(out.len() <= set.max_bytes(body.len()), "{body}");
        (
            String::from_utf8(out).unwrap(),
            replaced.into_iter().map(str::to_owned).collect(),
        )
    }

    #[test]
    fn fields_are_set_behind_those_of_the_client_which_stay_as_they_are() {
        let fields = [("provider", r#"{"data_collection":"deny"}"#), ("store", "false")];
        let (body, replaced) = written(
            &fields,
            "{ \"model\" : \"m\",\n \"x\":1.50e1, \"\\u0079\": [ 1 ] }",
        );
        assert_eq!(
            body,
            r#"{"model":"m","x":1.50e1,"\u0079":[ 1 ],"provider":{"data_collection":"deny"},"store":false}"#
        );
        assert!(replaced.is_empty());
        assert_eq!(written(&fields[1..], "{}"), (r#"{"store":false}"#.into(), vec![]));
    }

    #[test]
    fn a_clients_own_fields_of_these_names_are_left_out_however_they_are_written() {
        let fields = [("store", "false")];
        let body = r#"{"store":true,"a":1,"st\u006fre":true,"store":{"x":"store"}}"#;
        assert_eq!(
            written(&fields, body),
            (r#"{"a":1,"store":false}"#.into(), vec!["store".into()])
        );
        assert_eq!(
            written(&fields, r#"{"Store":1}"#).0,
            r#"{"Store":1,"store":false}"#
        );
    }

    #[test]
    fn what_is_no_object_is_not_written() {
        let set = BodyFieldOverrides::new([("a", "1")]).unwrap();
        for body in ["[]", "1", "", "{", "{} x"] {
            let mut out = Vec::new();
            assert!(
                set.write(body.as_bytes(), &mut out).is_none() && out.is_empty(),
                "{body}"
            );
        }
        assert_eq!(BodyFieldOverrides::new([("a", "{")]).unwrap_err(), "a");
    }
}
