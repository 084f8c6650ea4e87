//! The data read from a response so far.

use super::json_value::JsonValue;
use crate::refusal::has_refusal_prefix;
use crate::{
    AnalysisSettings, Entropy, RefusalSignal, Repetition, ResponseMeasurements, TokenDistribution, TokenId,
};

/// Maximum bytes of the text that are analysed.
const MAX_TEXT_BYTES: usize = 256 * 1024;
/// Maximum alternatives read for one token. Providers report twenty.
const MAX_ALTERNATIVES: usize = 256;

/// Collects the data of a response.
pub(super) struct ResponseReader<'s> {
    settings: &'s AnalysisSettings,
    pub(super) is_response: bool,
    text: String,
    refusal: Option<RefusalSignal>,
    pub(super) hit_length_limit: bool,
    token_count: u64,
    min_entropy: f64,
    max_entropy: Option<f64>,
    reported_probability: f64,
    comparable_entropy: Option<f64>,
    first_token: Option<TokenDistribution>,
}

impl<'s> ResponseReader<'s> {
    pub(super) fn new(settings: &'s AnalysisSettings) -> Self {
        ResponseReader {
            settings,
            is_response: false,
            text: String::new(),
            refusal: None,
            hit_length_limit: false,
            token_count: 0,
            min_entropy: 0.0,
            max_entropy: Some(0.0),
            reported_probability: 0.0,
            comparable_entropy: Some(0.0),
            first_token: None,
        }
    }

    pub(super) fn push_text(&mut self, text: Option<JsonValue<'_>>) {
        if let Some(text) = text.and_then(JsonValue::text)
            && self.text.len() + text.len() <= MAX_TEXT_BYTES
        {
            self.text.push_str(&text);
        }
    }

    pub(super) fn set_refusal(&mut self, refusal: RefusalSignal) {
        // The provider's own signal takes precedence over the response's content.
        if self.refusal != Some(RefusalSignal::Filtered) {
            self.refusal = Some(refusal);
        }
    }

    pub(super) fn read_refusal_field(&mut self, refusal: Option<JsonValue<'_>>) {
        if refusal
            .and_then(JsonValue::text)
            .is_some_and(|text| !text.is_empty())
        {
            self.set_refusal(RefusalSignal::Declared);
        }
    }

    /// Adds the data reported for one token: the token itself and its alternatives.
    pub(super) fn push_token(&mut self, told: impl IntoIterator<Item = (TokenId, f64)>) {
        let Some(distribution) =
            TokenDistribution::from_log_probabilities(told.into_iter().take(MAX_ALTERNATIVES))
        else {
            return;
        };
        self.min_entropy += distribution.min_entropy();
        let at_most = self
            .settings
            .vocabulary_size
            .and_then(|tokens| distribution.max_entropy(tokens));
        self.max_entropy = self.max_entropy.zip(at_most).map(|(sum, more)| sum + more);
        self.reported_probability += 1.0 - distribution.unreported_probability();
        let depth = self
            .settings
            .entropy_depth
            .clamp(1, AnalysisSettings::MAX_ENTROPY_DEPTH);
        let truncated = distribution.truncated_to(depth);
        let least = truncated.as_ref().map(TokenDistribution::min_entropy);
        self.comparable_entropy = self.comparable_entropy.zip(least).map(|(sum, more)| sum + more);
        if self.token_count == 0 {
            self.first_token = truncated;
        }
        self.token_count += 1;
    }

    pub(super) fn finish(self, partly_read: bool) -> ResponseMeasurements {
        let mean = |sum: f64| sum / self.token_count as f64;
        let entropy = (self.token_count > 0).then(|| Entropy {
            tokens: self.token_count,
            min: mean(self.min_entropy),
            max: self.max_entropy.map(mean),
            reported_probability: mean(self.reported_probability),
            comparable_min: self.comparable_entropy.map(mean),
        });
        let guessed = has_refusal_prefix(&self.text).then_some(RefusalSignal::Prefix);
        ResponseMeasurements {
            entropy,
            first_token: self.first_token,
            tokens: None,
            refusal: self.refusal.or(guessed),
            hit_length_limit: self.hit_length_limit,
            repetition: Repetition::measure(&self.text),
            text_bytes: self.text.len(),
            is_truncated: partly_read,
        }
    }
}

/// Returns the token that an object describes, with its log probability. The token's bytes identify it if they are present,
/// because different tokens can look the same.
pub(super) fn token_log_probability(
    [bytes, token, logarithm]: [Option<JsonValue<'_>>; 3],
) -> Option<(TokenId, f64)> {
    let byte = |byte: JsonValue<'_>| byte.as_u64().and_then(|byte| u8::try_from(byte).ok());
    let bytes = bytes
        .filter(|bytes| bytes.is_list())
        .and_then(|bytes| bytes.elements().map(byte).collect::<Option<Vec<u8>>>());
    let token = match bytes {
        Some(bytes) => TokenId::from_bytes(&bytes),
        None => TokenId::from_bytes(token?.text()?.as_bytes()),
    };
    Some((token, logarithm?.as_f64()?))
}

/// Returns the choice or candidate with index 0; a missing index counts as 0.
pub(super) fn first_choice(list: Option<JsonValue<'_>>) -> Option<JsonValue<'_>> {
    list?.elements().find(|choice| {
        let index = choice.get("index").and_then(JsonValue::as_u64);
        index.unwrap_or(0) == 0
    })
}
