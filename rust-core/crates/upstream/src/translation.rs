//! Translation between a client and a provider that speak different dialects.
//!
//! If no single pair translates directly, chat completions are the intermediate form: one pair
//! translates the client's dialect to chat completions, and another pair translates these to the
//! provider's dialect. Content that both sides can express is preserved: a provider's reasoning
//! passes through as `reasoning_details`.

mod field_names;
mod hop;
mod pair;

use proofgate_providers::{Dialect, EventBoundaries, Family};
use proofgate_translate::{
    RequestContext, ResponseError, StreamStatus, Target, UntranslatableRequest, openai_responses,
};

use hop::Hop;
use pair::DialectPair;

/// The translation between a client and a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TranslationPath {
    /// The pair on the client's side.
    client_side: DialectPair,
    /// The pair on the provider's side; `None` if the first pair writes the provider's dialect.
    provider_side: Option<DialectPair>,
}

impl TranslationPath {
    /// Returns the translation between a client and a provider that knows the model as `model`;
    /// `None` if no translation exists.
    pub(crate) fn between(client: Dialect, provider: Family, model: &str) -> Option<TranslationPath> {
        TranslationPath::find(client, |client| DialectPair::between(client, provider, model))
    }

    /// Returns the translation for a model on Vertex AI, whose publisher determines the dialect.
    pub(crate) fn for_publisher(client: Dialect, model: &str) -> Option<TranslationPath> {
        TranslationPath::find(client, |client| DialectPair::for_publisher(client, model))
    }

    /// Returns the pair that `pair` finds for the client's dialect. If there is none, returns the
    /// pair to chat completions, followed by the pair that `pair` finds for chat completions.
    fn find(client: Dialect, pair: impl Fn(Dialect) -> Option<DialectPair>) -> Option<TranslationPath> {
        if let Some(near) = pair(client) {
            return Some(TranslationPath {
                client_side: near,
                provider_side: None,
            });
        }
        let (near, far) = (DialectPair::to_chat(client)?, pair(Dialect::Chat)?);
        Some(TranslationPath {
            client_side: near,
            provider_side: Some(far),
        })
    }

    /// Returns the translation to OpenAI's Responses for a request in another dialect that the
    /// model accepts only as Responses. Model names with a slash belong to other vendors, which
    /// accept such requests unchanged.
    pub(crate) fn through_responses(client: Dialect, model: &str, body: &[u8]) -> Option<TranslationPath> {
        let (near, far) = match client {
            Dialect::Chat => (DialectPair::OpenAiResponses, None),
            Dialect::Messages => (DialectPair::to_chat(client)?, Some(DialectPair::OpenAiResponses)),
            _ => return None,
        };
        let wants = !model.contains('/') && openai_responses::requires_responses_api(model, body);
        wants.then_some(TranslationPath {
            client_side: near,
            provider_side: far,
        })
    }

    /// Adds the conversion of custom tools to functions, for a chat completions request to a provider that only has
    /// functions.
    pub(crate) fn with_functions(self) -> TranslationPath {
        match self {
            TranslationPath {
                client_side:
                    near @ (DialectPair::OpenAiAnthropic
                    | DialectPair::OpenAiGemini
                    | DialectPair::OpenAiConverse
                    | DialectPair::OpenAiRawPredict),
                provider_side: None,
            } => TranslationPath {
                client_side: DialectPair::ChatFunctions,
                provider_side: Some(near),
            },
            pairs => pairs,
        }
    }

    fn last_pair(self) -> DialectPair {
        self.provider_side.unwrap_or(self.client_side)
    }

    /// Whether Anthropic's betas are sent to the provider in the body instead of the head.
    pub fn has_betas_in_body(self) -> bool {
        self.provider_side.is_none() && self.client_side.has_betas_in_body()
    }

    /// Whether provider-run tools are passed through, which a translation by a single pair does.
    pub(crate) fn preserves_hosted_tools(self) -> bool {
        self.provider_side.is_none()
            && matches!(
                self.client_side,
                DialectPair::AnthropicInvoke | DialectPair::AnthropicRawPredict
            )
    }

    /// Returns the dialect of the provider.
    pub fn upstream_dialect(self) -> Dialect {
        self.last_pair().upstream_dialect()
    }

    /// Returns the maximum bytes of the translated request and its intermediate form, for a body of `length` bytes.
    pub fn max_request_bytes(self, length: usize, model: &str) -> usize {
        let near = self.client_side.max_request_bytes(length, model);
        match self.provider_side {
            Some(far) => near.saturating_add(far.max_request_bytes(near, model)),
            None => near,
        }
    }

    /// Writes the request for the provider, for a model that the client calls `asked_for`. `betas`: Anthropic's betas that
    /// the client uses and may use.
    pub fn write_request(
        self,
        body: &[u8],
        asked_for: &str,
        target: &Target<'_>,
        betas: &[&str],
        out: &mut Vec<u8>,
    ) -> Result<ResponseContext, UntranslatableRequest> {
        let Some(far) = self.provider_side else {
            let near = self
                .client_side
                .write_request(body, asked_for, target, betas, out)?;
            return Ok(ResponseContext {
                path: self,
                client_side: near,
                provider_side: None,
            });
        };
        let mut between = Vec::new();
        let mut near = self
            .client_side
            .write_chat_request(far, body, target, &mut between)?;
        let asked = far
            .write_request(&between, asked_for, target, &[], out)
            .map_err(|refused| field_names::client_refusal(self.client_side, refused))?;
        field_names::add_dropped_fields(self.client_side, &asked.dropped_fields, &mut near.dropped_fields);
        Ok(ResponseContext {
            path: self,
            client_side: near,
            provider_side: Some(asked),
        })
    }
}

/// The data of a translated request that the translation of its response needs.
pub struct ResponseContext {
    path: TranslationPath,
    client_side: RequestContext,
    provider_side: Option<RequestContext>,
}

impl ResponseContext {
    /// Returns the names of the dropped fields, as the client calls them.
    pub fn dropped_fields(&self) -> &[&'static str] {
        &self.client_side.dropped_fields
    }
}

/// Translates the response of one exchange.
pub struct ResponseTranslator {
    client_side: Hop,
    provider_side: Option<ProviderSide>,
}

/// Translates the response from the provider's dialect to chat completions.
struct ProviderSide {
    hop: Hop,
    /// The chat completions events that resulted from one event of the provider.
    events: Vec<u8>,
}

impl ResponseTranslator {
    /// Creates the translator. `model`: the client's name for the model; `created`: the time of the
    /// response, in Unix seconds; `prompt_tokens`: the estimated number of prompt tokens.
    pub fn new(way: ResponseContext, model: &str, created: u64, prompt_tokens: u64) -> Self {
        let ResponseContext {
            path: pairs,
            client_side: near,
            provider_side: far,
        } = way;
        let hop = |pair, mut asked: RequestContext| {
            model.clone_into(&mut asked.model);
            Hop::new(pair, asked, created, prompt_tokens)
        };
        let far = pairs.provider_side.zip(far).map(|(pair, asked)| ProviderSide {
            hop: hop(pair, asked),
            events: Vec::new(),
        });
        ResponseTranslator {
            client_side: hop(pairs.client_side, near),
            provider_side: far,
        }
    }

    fn last_hop(&self) -> &Hop {
        self.provider_side
            .as_ref()
            .map_or(&self.client_side, |far| &far.hop)
    }

    /// Returns the dialect of the provider.
    pub fn upstream_dialect(&self) -> Dialect {
        self.last_hop().upstream_dialect()
    }

    /// Whether the client requested a stream.
    pub fn is_streamed(&self) -> bool {
        self.client_side.is_streamed()
    }

    /// Returns the names of the fields that were dropped from the request.
    pub fn dropped_fields(&self) -> &[&'static str] {
        self.client_side.dropped_fields()
    }

    /// Returns the header lines of the request.
    pub fn header_lines(&self) -> &'static [u8] {
        self.last_hop().header_lines()
    }

    /// Returns the maximum bytes of a translated response of `length` bytes, with all intermediate forms.
    pub fn max_response_bytes(&self, length: usize) -> usize {
        // Escapes may make a hop's output longer than its input.
        let near = length.saturating_mul(3);
        match self.provider_side {
            Some(_) => near.saturating_mul(3),
            None => near,
        }
    }

    /// Writes a whole success response.
    pub fn write_response(&self, body: &[u8], out: &mut Vec<u8>) -> Result<(), ResponseError> {
        let Some(far) = &self.provider_side else {
            return self.client_side.write_response(body, out);
        };
        let mut between = Vec::new();
        far.hop.write_response(body, &mut between)?;
        self.client_side.write_response(&between, out)
    }

    /// Writes a failure response of the provider. `kind`: the error type in the response head.
    pub fn write_error(&self, status: u16, kind: Option<&str>, body: &[u8], out: &mut Vec<u8>) {
        let Some(far) = &self.provider_side else {
            return self.client_side.write_error(status, kind, body, out);
        };
        let mut between = Vec::new();
        far.hop.write_error(status, kind, body, &mut between);
        self.client_side.write_error(status, None, &between, out);
    }

    /// Returns the retry delay in seconds, if the provider sends it in an error body instead of a header.
    pub fn retry_after(&self, body: &[u8]) -> Option<u64> {
        self.last_hop().retry_after(body)
    }

    /// Translates an event of a stream and writes the resulting events for the client.
    pub fn translate_event(
        &mut self,
        event: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<StreamStatus, ResponseError> {
        let Some(far) = &mut self.provider_side else {
            return self.client_side.translate_event(event, out);
        };
        far.events.clear();
        let step = far.hop.translate_event(event, &mut far.events)?;
        forward_events(&mut self.client_side, &far.events, step, out)
    }

    /// Whether the provider's stream events are already in the client's dialect.
    pub fn passes_events_through(&self) -> bool {
        self.provider_side.is_none() && self.client_side.passes_events_through()
    }

    /// Handles the regular end of the provider's stream: writes the client's end if the stream
    /// stated its finish reason, even without an end marker, which some providers leave out.
    /// Returns whether the stream stated the reason.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<bool, ResponseError> {
        let Some(far) = &mut self.provider_side else {
            return self.client_side.finish(out);
        };
        far.events.clear();
        if !far.hop.finish(&mut far.events)? {
            return Ok(false);
        }
        Ok(
            forward_events(&mut self.client_side, &far.events, StreamStatus::Finished, out)?
                == StreamStatus::Finished,
        )
    }
}

/// Translates whole chat completions events for the client. Afterwards, the client's stream must
/// have the status `step`.
fn forward_events(
    near: &mut Hop,
    mut events: &[u8],
    step: StreamStatus,
    out: &mut Vec<u8>,
) -> Result<StreamStatus, ResponseError> {
    let mut ends = EventBoundaries::default();
    let mut told = StreamStatus::InProgress;
    while told == StreamStatus::InProgress
        && let Some(length) = ends.next_boundary(events)
    {
        let (event, rest) = events.split_at(length);
        told = near.translate_event(event, out)?;
        events = rest;
    }
    match told == step {
        true => Ok(step),
        false => Err(ResponseError::Malformed(
            "it reports its end too early or not at all",
        )),
    }
}
