use std::borrow::Cow;
use std::fmt::Formatter;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use proofgate_dialect::json::{Text, write_string};
use proofgate_dialect::{RequestContext, Target, UntranslatableRequest};

/// The version of Anthropic's API that every Claude model on Bedrock supports.
const VERSION: &str = "bedrock-2023-05-31";

/// Appends the body of InvokeModel for a Messages request. `betas` are the betas of the request that may be sent to the
/// provider.
///
/// # Errors
/// Returns [`UntranslatableRequest`] if the body is not an object, and for fields that only the gateway may set: with
/// `anthropic_beta` a client could choose betas that it may not use. `out` is then unchanged.
pub fn translate_request(
    body: &[u8],
    _target: &Target<'_>,
    betas: &[&str],
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    write_invoke_body(body, VERSION, betas, out)
}

/// Appends a request without `model` and `stream`, and with the API version and the betas.
pub(crate) fn write_invoke_body(
    body: &[u8],
    version: &str,
    betas: &[&str],
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    let OrderedFields(fields) = serde_json::from_slice(body)
        .map_err(|_| UntranslatableRequest::new("", "The body is not a JSON object."))?;
    if let Some((name, _)) = fields
        .iter()
        .find(|(name, _)| matches!(&**name, "anthropic_version" | "anthropic_beta"))
    {
        return Err(UntranslatableRequest::new(
            name.clone().into_owned(),
            "This field belongs in the headers of the request, not in its body.",
        ));
    }
    let mut asked = RequestContext::default();
    out.extend_from_slice(br#"{"anthropic_version":"#);
    write_string(out, version);
    for (number, beta) in betas.iter().enumerate() {
        out.extend_from_slice(if number == 0 {
            br#","anthropic_beta":["#
        } else {
            b","
        });
        write_string(out, beta);
    }
    out.extend_from_slice(if betas.is_empty() { b"" } else { b"]" });
    for (name, value) in fields {
        match &*name {
            "model" => asked.model = serde_json::from_str(value.get()).unwrap_or_default(),
            "stream" => asked.stream = value.get() == "true",
            name => {
                out.push(b',');
                write_string(out, name);
                out.push(b':');
                out.extend_from_slice(value.get().as_bytes());
            }
        }
    }
    out.push(b'}');
    asked.include_usage = asked.stream;
    Ok(asked)
}

/// The fields of an object, in their order.
pub(crate) struct OrderedFields<'b>(pub(crate) Vec<(Cow<'b, str>, &'b RawValue)>);

impl<'b> Deserialize<'b> for OrderedFields<'b> {
    fn deserialize<D: Deserializer<'b>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'b> Visitor<'b> for InOrder {
            type Value = OrderedFields<'b>;

            fn expecting(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'b>>(self, mut map: A) -> Result<OrderedFields<'b>, A::Error> {
                let mut fields = Vec::new();
                while let Some(name) = map.next_key::<Text<'b>>()? {
                    fields.push((name.0, map.next_value()?));
                }
                Ok(OrderedFields(fields))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}
