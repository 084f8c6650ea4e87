use serde_json::value::RawValue;

use crate::Untranslatable;
use crate::dropped::OTHER_FIELDS;
use crate::openai_anthropic::body::Body;
use crate::openai_anthropic::left_out::LeftOut;
use crate::openai_anthropic::object::Word;

/// Refuses what would be another request without it.
pub(super) fn refuse(body: &Body<'_>) -> Result<(), Untranslatable> {
    if body.n.is_some_and(|n| n.get() != "1") {
        return Err(Untranslatable::new(
            "n",
            "n has to be 1: the provider gives one answer to a request",
        ));
    }
    let silent = body
        .modalities
        .iter()
        .flatten()
        .all(|modality| &**modality == "text");
    let told: [(&'static str, bool, &'static str); 6] = [
        (
            "functions",
            told(body.functions),
            "functions are of an older API; say them as tools",
        ),
        (
            "function_call",
            told(body.function_call),
            "function_call is of an older API; say it as tool_choice",
        ),
        ("modalities", !silent, "the provider answers with text only"),
        ("audio", told(body.audio), "the provider answers with text only"),
        (
            "web_search_options",
            told(body.web_search_options),
            "the provider's search is not offered here",
        ),
        (
            "moderation",
            told(body.moderation),
            "the provider has no such moderation, and it must not be left out",
        ),
    ];
    match told.into_iter().find(|&(_, present, _)| present) {
        Some((name, _, message)) => Err(Untranslatable::new(name, message)),
        None => Ok(()),
    }
}

/// Leaves out what asks only for more of the same.
pub(super) fn leave_preferences(body: &Body<'_>, left_out: &mut LeftOut) -> Result<(), Untranslatable> {
    let preferences: [(&'static str, Option<&RawValue>); 12] = [
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
    ];
    // A seed of 0 is one too.
    left_out.leave_if(body.seed.is_some(), "seed")?;
    for (name, value) in preferences {
        left_out.leave_if(told(value), name)?;
    }
    let options = body.stream_options.as_ref();
    let obfuscation = options.and_then(|options| options.include_obfuscation) == Some(true);
    left_out.leave_if(obfuscation, "stream_options.include_obfuscation")?;
    let unknown = options.and_then(|options| options.unknown.as_deref());
    left_out.leave_unknown(unknown, |name| format!("stream_options.{name}"))?;
    left_out.leave_unknown(body.unknown.as_deref(), str::to_owned)
}

/// Whether a value says something that its absence does not.
fn told(value: Option<&RawValue>) -> bool {
    let is_nothing = |text: &str| matches!(text, "false" | "{}" | "[]") || text.parse() == Ok(0.0);
    value.is_some_and(|value| !is_nothing(value.get()))
}

/// What was left out, in the order of the request's fields; fields that no list knows stand last.
pub(super) fn in_order(mut names: Vec<&'static str>, text: &str) -> Vec<&'static str> {
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
