//! A client and a provider that do not speak the same dialect.
//!
//! What no single pair lies between is said in chat completions on its way: the client's side of it is translated to them, and they
//! to the provider's. Nothing is lost there that either side could have said to the other: what a provider thought goes through
//! them as `reasoning_details`.

mod hop;
mod names;
mod pair;

use proofgate_providers::{Dialect, EventBoundaries, Family};
use proofgate_translate::{
    RequestContext, ResponseError, StreamStatus, Target, UntranslatableRequest, openai_responses,
};

use hop::Hop;
use pair::DialectPair;

/// What lies between a client and a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TranslationPath {
    /// The one that the client speaks to.
    client_side: DialectPair,
    /// The one that speaks to the provider, where the first one writes chat completions for it.
    provider_side: Option<DialectPair>,
}

impl TranslationPath {
    /// What lies between a client and a provider that knows the model as `model`; `None` when nothing can.
    pub(crate) fn between(client: Dialect, provider: Family, model: &str) -> Option<TranslationPath> {
        TranslationPath::find(client, |client| DialectPair::between(client, provider, model))
    }

    /// The same of a model on Vertex AI, whose publisher says what is spoken there.
    pub(crate) fn for_publisher(client: Dialect, model: &str) -> Option<TranslationPath> {
        TranslationPath::find(client, |client| DialectPair::for_publisher(client, model))
    }

    /// The pair of the client's dialect that `pair` finds, or that of chat completions behind one to them.
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

    /// What lies between a client and OpenAI's Responses, where a request has to go there that comes in another dialect. Names of
    /// models with a slash are those of other houses, which take such requests as they are.
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

    /// The same for a request of chat completions with custom tools, where a provider that has functions alone is spoken to.
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

    /// Whether the provider is told in the body which of Anthropic's betas are used, and not in the head.
    pub fn has_betas_in_body(self) -> bool {
        self.provider_side.is_none() && self.client_side.has_betas_in_body()
    }

    /// Whether tools pass that the provider runs: the request is one of its own dialect then.
    pub(crate) fn preserves_hosted_tools(self) -> bool {
        self.provider_side.is_none()
            && matches!(
                self.client_side,
                DialectPair::AnthropicInvoke | DialectPair::AnthropicRawPredict
            )
    }

    /// What the provider speaks.
    pub fn upstream_dialect(self) -> Dialect {
        self.last_pair().upstream_dialect()
    }

    /// How many bytes a request may have at the provider at most, whose body has `length`, and on its way there.
    pub fn max_request_bytes(self, length: usize, model: &str) -> usize {
        let near = self.client_side.max_request_bytes(length, model);
        match self.provider_side {
            Some(far) => near.saturating_add(far.max_request_bytes(near, model)),
            None => near,
        }
    }

    /// Writes what the provider is sent for a model that the client calls `asked_for`. `betas`: those of Anthropic's that the client
    /// uses and may use.
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
            .map_err(|refused| names::client_refusal(self.client_side, refused))?;
        names::add_dropped(self.client_side, &asked.dropped, &mut near.dropped);
        Ok(ResponseContext {
            path: self,
            client_side: near,
            provider_side: Some(asked),
        })
    }
}

/// What the way back has to know of a request that was said in another dialect.
pub struct ResponseContext {
    path: TranslationPath,
    client_side: RequestContext,
    provider_side: Option<RequestContext>,
}

impl ResponseContext {
    /// The names of the fields that the request lost, as the client calls them.
    pub fn dropped_fields(&self) -> &[&'static str] {
        &self.client_side.dropped
    }
}

/// The way back of one exchange.
pub struct ResponseTranslator {
    client_side: Hop,
    provider_side: Option<ProviderSide>,
}

/// The way back between the provider and chat completions.
struct ProviderSide {
    hop: Hop,
    /// Events of chat completions that an event of the provider's became.
    events: Vec<u8>,
}

impl ResponseTranslator {
    /// `model`: as the client calls it; `created`: when the answer was made, in unix seconds; `prompt_tokens`: about how many
    /// tokens the prompt has.
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

    /// What the provider speaks.
    pub fn upstream_dialect(&self) -> Dialect {
        self.last_hop().upstream_dialect()
    }

    /// Whether the client wants a stream.
    pub fn is_streamed(&self) -> bool {
        self.client_side.is_streamed()
    }

    /// The names of the fields that the request lost.
    pub fn dropped_fields(&self) -> &[&'static str] {
        self.client_side.dropped_fields()
    }

    /// Header lines of the request.
    pub fn header_lines(&self) -> &'static [u8] {
        self.last_hop().header_lines()
    }

    /// Of how many bytes a whole answer of `length` is at most, with all that it becomes on its way.
    pub fn max_response_bytes(&self, length: usize) -> usize {
        // What a hop writes may be longer by its escapes.
        let near = length.saturating_mul(3);
        match self.provider_side {
            Some(_) => near.saturating_mul(3),
            None => near,
        }
    }

    /// Writes a whole answer of success.
    pub fn write_response(&self, body: &[u8], out: &mut Vec<u8>) -> Result<(), ResponseError> {
        let Some(far) = &self.provider_side else {
            return self.client_side.write_response(body, out);
        };
        let mut between = Vec::new();
        far.hop.write_response(body, &mut between)?;
        self.client_side.write_response(&between, out)
    }

    /// Writes what the provider says of a failure. `kind`: how a field of the answer's head names it.
    pub fn write_error(&self, status: u16, kind: Option<&str>, body: &[u8], out: &mut Vec<u8>) {
        let Some(far) = &self.provider_side else {
            return self.client_side.write_error(status, kind, body, out);
        };
        let mut between = Vec::new();
        far.hop.write_error(status, kind, body, &mut between);
        self.client_side.write_error(status, None, &between, out);
    }

    /// For how many seconds the provider wants no further request, where it says so in an error's body and not in a header.
    pub fn retry_after(&self, body: &[u8]) -> Option<u64> {
        self.last_hop().retry_after(body)
    }

    /// Takes an event of a stream and writes those that the client gets for it.
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

    /// Whether events of a stream are the client's already.
    pub fn passes_events_through(&self) -> bool {
        self.provider_side.is_none() && self.client_side.passes_events_through()
    }

    /// The body of the provider's stream has ended well: writes the client's end, if the stream has told why it finished. Returns
    /// whether it has; some providers leave out the mark that follows.
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

/// Tells the client whole events of chat completions, after which their stream is as far as `step`.
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
