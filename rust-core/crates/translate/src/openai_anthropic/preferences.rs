use crate::Untranslatable;
use crate::dropped::OTHER_FIELDS;
use crate::openai_anthropic::body::Body;
use crate::openai_anthropic::left_out::LeftOut;
use crate::openai_anthropic::object::Word;

/// Leaves out or refuses what the provider has no words for.
pub(super) fn leave_out(body: &Body<'_>, left_out: &mut LeftOut) -> Result<(), Untranslatable> {
    for (name, value) in [
        ("n", body.n),
        ("functions", body.functions),
        ("function_call", body.function_call),
        ("modalities", body.modalities),
        ("audio", body.audio),
        ("web_search_options", body.web_search_options),
        ("moderation", body.moderation),
        ("seed", body.seed),
        ("prediction", body.prediction),
        ("frequency_penalty", body.frequency_penalty),
        ("presence_penalty", body.presence_penalty),
        ("logit_bias", body.logit_bias),
        ("logprobs", body.logprobs),
        ("top_logprobs", body.top_logprobs),
        ("verbosity", body.verbosity),
        ("store", body.store),
        ("metadata", body.metadata),
        ("prompt_cache_key", body.prompt_cache_key),
        ("prompt_cache_options", body.prompt_cache_options),
        ("prompt_cache_retention", body.prompt_cache_retention),
    ] {
        left_out.leave_value(name, value)?;
    }
    let options = body.stream_options.as_ref();
    if options.and_then(|options| options.include_obfuscation) == Some(true) {
        let name = "stream_options.include_obfuscation";
        left_out.leave(name, || name.to_owned())?;
    }
    let unknown = options.and_then(|options| options.unknown.as_deref());
    left_out.leave_unknown(unknown, |name| format!("stream_options.{name}"))?;
    left_out.leave_unknown(body.unknown.as_deref(), str::to_owned)
}

/// What was left out, in the order of the request's fields; fields that no list knows stand last.
pub(crate) fn in_order(mut names: Vec<&'static str>, text: &str) -> Vec<&'static str> {
    if names.len() < 2 {
        return names;
    }
    let fields = serde_json::from_str(text)
        .map(|Fields(fields)| fields)
        .unwrap_or_default();
    names.sort_by_key(|name| {
        let field = name.split(['.', '[']).next();
        let place = fields.iter().position(|known| Some(&**known) == field);
        (*name == OTHER_FIELDS, place)
    });
    names
}

/// The names of a body's fields.
struct Fields<'b>(Vec<Word<'b>>);

impl<'de: 'b, 'b> serde::Deserialize<'de> for Fields<'b> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;

        impl<'de> serde::de::Visitor<'de> for Names {
            type Value = Fields<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut names = Vec::new();
                while let Some((name, serde::de::IgnoredAny)) = map.next_entry()? {
                    names.push(name);
                }
                Ok(Fields(names))
            }
        }

        deserializer.deserialize_map(Names)
    }
}
