//! Error messages of providers that refuse the gateway's key or a model, logged for the gateway's
//! administrator only.
//!
//! Providers use the same status (401, 403) for a wrong key and for a model that is not enabled.
//! Only the message distinguishes the two. The message may quote the key, so clients do not get it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;

/// The minimum interval between two log entries about the same refusal.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of models tracked for one provider. It is bounded because clients choose the
/// names that a wildcard matches.
const MAX_MODELS: usize = 64;
/// Maximum characters of a provider's message in the log.
const MAX_MESSAGE_CHARS: usize = 500;

/// The times at which refusals of a provider were last logged, by the provider's model names.
#[derive(Default)]
pub(crate) struct RefusalLog(RefCell<HashMap<Box<str>, Instant>>);

impl RefusalLog {
    /// Returns whether a refusal should be logged, and records it as logged if so.
    pub(crate) fn should_log(&self, model: &str, now: Instant) -> bool {
        let mut logged = self.0.borrow_mut();
        logged.retain(|_, at| now.saturating_duration_since(*at) < LOG_INTERVAL);
        if logged.contains_key(model) || logged.len() >= MAX_MODELS {
            return false;
        }
        logged.insert(model.into(), now);
        true
    }
}

/// Returns the message of an error, without anything that looks like a key, and without `secrets`.
pub(crate) fn redacted_error(kind: Option<&str>, body: &[u8], secrets: &[Box<str>]) -> String {
    let mut said = error_message(body).unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    if let Some(kind) = kind {
        said = format!("{kind}: {said}");
    }
    for secret in secrets {
        said = said.replace(&**secret, MASK);
    }
    let said = mask(&said);
    let mut words: String = said.chars().take(MAX_MESSAGE_CHARS).collect();
    if words.len() < said.len() {
        words.push('…');
    }
    match words.trim().is_empty() {
        true => "no reason was given".to_owned(),
        false => words,
    }
}

/// Reads the message of an error in the forms of OpenAI, Anthropic, Google (`error.message`) and Amazon (`message`).
fn error_message(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Document<'d> {
        #[serde(borrow)]
        error: Option<&'d RawValue>,
        #[serde(alias = "Message")]
        message: Option<String>,
    }
    #[derive(Deserialize)]
    struct Error {
        message: String,
    }
    let document = serde_json::from_slice::<Document<'_>>(body).ok()?;
    let of_error = document.error.and_then(|error| {
        let object = serde_json::from_str::<Error>(error.get()).map(|error| error.message);
        object
            .or_else(|_| serde_json::from_str::<String>(error.get()))
            .ok()
    });
    of_error.or(document.message)
}

/// The text that replaces a key.
const MASK: &str = "[masked]";

/// Prefixes of keys from OpenAI, Anthropic, xAI, Groq, Hugging Face and Amazon, of Google's keys
/// and access tokens, and of JWTs.
const KEY_PREFIXES: [&str; 12] = [
    "sk-", "sk_", "pk-", "rk-", "xai-", "gsk_", "hf_", "AIza", "ya29.", "AKIA", "ASIA", "eyJ",
];

/// Returns the text on one line, with a mask for each word that looks like a key.
fn mask(text: &str) -> String {
    let is_in_word = |c: char| c.is_ascii_alphanumeric() || "-_.+/~:*".contains(c);
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c| !is_in_word(c)).unwrap_or(rest.len());
        if length == 0 {
            masked.push(if first.is_control() { ' ' } else { first });
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            continue;
        }
        let (word, behind) = rest.split_at(length);
        masked.push_str(if looks_like_a_key(word) { MASK } else { word });
        rest = behind;
    }
    masked
}

/// Whether a word looks like a key: it has a known prefix or asterisks, or is a long word that is
/// not natural language. Model names and ARNs do not match.
fn looks_like_a_key(word: &str) -> bool {
    let is_known = |part: &str| part.len() > 6 && KEY_PREFIXES.iter().any(|begin| part.starts_with(begin));
    let is_random = |part: &str, least: usize| {
        let has = |kind: fn(&u8) -> bool| part.as_bytes().iter().any(kind);
        part.len() >= least && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
    };
    let is_mixed = |part: &str| {
        let has = |kind: fn(&u8) -> bool| part.as_bytes().iter().any(kind);
        part.len() >= 24
            && has(u8::is_ascii_digit)
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_lowercase)
    };
    // Trims separators, and the full stop at the end of a sentence.
    let word = word.trim_matches(['.', ':', '/', '~']);
    let mut hex = word.bytes().filter(|byte| *byte != b'-');
    word.contains("**")
        || word.split([':', '/']).any(is_known)
        || word
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|part| is_random(part, 20))
        || word.split(['.', ':']).any(is_mixed)
        || (word.len() >= 32 && hex.all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_refusal_are_those_of_the_provider() {
        let amazon = br#"{"message":"You don't have access to the model with the specified model ID."}"#;
        assert_eq!(
            redacted_error(Some("AccessDeniedException"), amazon, &[]),
            "AccessDeniedException: You don't have access to the model with the specified model ID."
        );
        for body in [
            &br#"{"error":{"message":"No such project.","code":403}}"#[..],
            br#"{"type":"error","error":{"type":"permission_error","message":"No such project."}}"#,
            br#"{"error":"No such project."}"#,
            b"No such project.",
        ] {
            assert_eq!(redacted_error(None, body, &[]), "No such project.");
        }
        assert_eq!(redacted_error(None, b"", &[]), "no reason was given");
    }

    #[test]
    fn what_looks_like_a_key_is_masked_and_what_names_a_model_is_not() {
        for key in [
            "sk-proj-abc",
            "sk-abcd********wxyz",
            "AKIAIOSFODNN7EXAMPLE",
            "ya29.a0Af",
            "eyJhbGciOi.eyJzdWIi.c2ln",
            "0123456789abcdef0123456789abcdef",
            "8c4e1f2a-0000-4000-8000-0123456789ab",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY1",
            "Bearer:gsk_0123456789",
            "plain-secret",
        ] {
            let said = format!("{{\"error\":{{\"message\":\"Wrong key: {key}.\"}}}}");
            let words = redacted_error(None, said.as_bytes(), &["plain-secret".into()]);
            assert!(words.contains(MASK) && !words.contains(key), "{words}");
        }
        for name in [
            "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-3-5-sonnet-20241022-v2:0",
            "projects/demo/locations/us-central1/publishers/google/models/gemini-2.5-flash-lite-preview",
            "gpt-4o-mini-2024-07-18",
        ] {
            assert_eq!(mask(name), name);
        }
    }

    #[test]
    fn words_stand_on_one_line_and_are_bounded() {
        let words = redacted_error(None, "two\nlines\r\n\u{1b}[31m ".repeat(1000).as_bytes(), &[]);
        assert!(words.chars().count() <= MAX_MESSAGE_CHARS + 1);
        assert!(!words.contains(char::is_control) && words.starts_with("two lines"));
    }

    #[test]
    fn a_refusal_is_logged_once_a_minute_for_each_of_so_many_models() {
        let (log, now) = (RefusalLog::default(), Instant::now());
        assert!(log.should_log("a", now) && !log.should_log("a", now) && log.should_log("b", now));
        assert!(log.should_log("a", now + LOG_INTERVAL));
        let due = (0..1000).filter(|number| log.should_log(&number.to_string(), now + 2 * LOG_INTERVAL));
        assert_eq!(due.count(), MAX_MODELS);
    }
}
