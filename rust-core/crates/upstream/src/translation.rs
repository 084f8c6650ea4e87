//! A client and a provider that do not speak the same dialect.
//!
//! What no single pair lies between is said in chat completions on its way: the client's side of it is translated to them, and they
//! to the provider's. Nothing is lost there that either side could have said to the other: what a provider thought goes through
//! them as `reasoning_details`.

mod hop;
mod names;
mod pair;

use proofgate_providers::{Dialect, EventEnds, Family};
use proofgate_translate::{AnswerError, Asked, Step, Target, Untranslatable, openai_responses};

use hop::Hop;
use pair::Pair;

/// What lies between a client and a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pairs {
    /// The one that the client speaks to.
    near: Pair,
    /// The one that speaks to the provider, where the first one writes chat completions for it.
    far: Option<Pair>,
}

impl Pairs {
    /// What lies between a client and a provider that knows the model as `model`; `None` when nothing can.
    pub(crate) fn between(client: Dialect, provider: Family, model: &str) -> Option<Pairs> {
        Pairs::found(client, |client| Pair::between(client, provider, model))
    }

    /// The same of a model on Vertex AI, whose publisher says what is spoken there.
    pub(crate) fn at_publisher(client: Dialect, model: &str) -> Option<Pairs> {
        Pairs::found(client, |client| Pair::at_publisher(client, model))
    }

    /// The pair of the client's dialect that `pair` finds, or that of chat completions behind one to them.
    fn found(client: Dialect, pair: impl Fn(Dialect) -> Option<Pair>) -> Option<Pairs> {
        if let Some(near) = pair(client) {
            return Some(Pairs { near, far: None });
        }
        let (near, far) = (Pair::to_chat(client)?, pair(Dialect::Chat)?);
        Some(Pairs { near, far: Some(far) })
    }

    /// What lies between a client and OpenAI's Responses, where a request has to go there that comes in another dialect. Names of
    /// models with a slash are those of other houses, which take such requests as they are.
    pub(crate) fn through_responses(client: Dialect, model: &str, body: &[u8]) -> Option<Pairs> {
        let (near, far) = match client {
            Dialect::Chat => (Pair::OpenAiResponses, None),
            Dialect::Messages => (Pair::to_chat(client)?, Some(Pair::OpenAiResponses)),
            _ => return None,
        };
        let wants = !model.contains('/') && openai_responses::wants(model, body);
        wants.then_some(Pairs { near, far })
    }

    /// The same for a request of chat completions with custom tools, where a provider that has functions alone is spoken to.
    pub(crate) fn with_functions(self) -> Pairs {
        match self {
            Pairs {
                near:
                    near @ (Pair::OpenAiAnthropic
                    | Pair::OpenAiGemini
                    | Pair::OpenAiConverse
                    | Pair::OpenAiRawPredict),
                far: None,
            } => Pairs {
                near: Pair::ChatFunctions,
                far: Some(near),
            },
            pairs => pairs,
        }
    }

    fn last(self) -> Pair {
        self.far.unwrap_or(self.near)
    }

    /// Whether the provider is told in the body which of Anthropic's betas are used, and not in the head.
    pub fn has_betas_in_body(self) -> bool {
        self.far.is_none() && self.near.has_betas_in_body()
    }

    /// Whether tools pass that the provider runs: the request is one of its own dialect then.
    pub(crate) fn keeps_hosted_tools(self) -> bool {
        self.far.is_none() && matches!(self.near, Pair::AnthropicInvoke | Pair::AnthropicRawPredict)
    }

    /// What the provider speaks.
    pub fn upstream(self) -> Dialect {
        self.last().upstream()
    }

    /// How many bytes a request may have at the provider at most, whose body has `length`, and on its way there.
    pub fn most_bytes(self, length: usize, model: &str) -> usize {
        let near = self.near.most_bytes(length, model);
        match self.far {
            Some(far) => near.saturating_add(far.most_bytes(near, model)),
            None => near,
        }
    }

    /// Writes what the provider is sent for a model that the client calls `asked_for`. `betas`: those of Anthropic's that the client
    /// uses and may use.
    pub fn request(
        self,
        body: &[u8],
        asked_for: &str,
        target: &Target<'_>,
        betas: &[&str],
        out: &mut Vec<u8>,
    ) -> Result<Way, Untranslatable> {
        let Some(far) = self.far else {
            let near = self.near.request(body, asked_for, target, betas, out)?;
            return Ok(Way {
                pairs: self,
                near,
                far: None,
            });
        };
        let mut between = Vec::new();
        let mut near = self.near.request_for(far, body, target, &mut between)?;
        let asked = far
            .request(&between, asked_for, target, &[], out)
            .map_err(|refused| names::refusal(self.near, refused))?;
        names::add_dropped(self.near, &asked.dropped, &mut near.dropped);
        Ok(Way {
            pairs: self,
            near,
            far: Some(asked),
        })
    }
}

/// What the way back has to know of a request that was said in another dialect.
pub struct Way {
    pairs: Pairs,
    near: Asked,
    far: Option<Asked>,
}

impl Way {
    /// The names of the fields that the request lost, as the client calls them.
    pub fn dropped(&self) -> &[&'static str] {
        &self.near.dropped
    }
}

/// The way back of one exchange.
pub struct Translation {
    near: Hop,
    far: Option<Far>,
}

/// The way back between the provider and chat completions.
struct Far {
    hop: Hop,
    /// Events of chat completions that an event of the provider's became.
    events: Vec<u8>,
}

impl Translation {
    /// `model`: as the client calls it; `created`: when the answer was made, in unix seconds; `prompt_tokens`: about how many
    /// tokens the prompt has.
    pub fn new(way: Way, model: &str, created: u64, prompt_tokens: u64) -> Self {
        let Way { pairs, near, far } = way;
        let hop = |pair, mut asked: Asked| {
            model.clone_into(&mut asked.model);
            Hop::new(pair, asked, created, prompt_tokens)
        };
        let far = pairs.far.zip(far).map(|(pair, asked)| Far {
            hop: hop(pair, asked),
            events: Vec::new(),
        });
        Translation {
            near: hop(pairs.near, near),
            far,
        }
    }

    fn last(&self) -> &Hop {
        self.far.as_ref().map_or(&self.near, |far| &far.hop)
    }

    /// What the provider speaks.
    pub fn upstream(&self) -> Dialect {
        self.last().upstream()
    }

    /// Whether the client wants a stream.
    pub fn is_streamed(&self) -> bool {
        self.near.is_streamed()
    }

    /// The names of the fields that the request lost.
    pub fn dropped(&self) -> &[&'static str] {
        self.near.dropped()
    }

    /// Header lines of the request.
    pub fn fields(&self) -> &'static [u8] {
        self.last().fields()
    }

    /// Of how many bytes a whole answer of `length` is at most, with all that it becomes on its way.
    pub fn most_of_answer(&self, length: usize) -> usize {
        // What a hop writes may be longer by its escapes.
        let near = length.saturating_mul(3);
        match self.far {
            Some(_) => near.saturating_mul(3),
            None => near,
        }
    }

    /// Writes a whole answer of success.
    pub fn answer(&self, body: &[u8], out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let Some(far) = &self.far else {
            return self.near.answer(body, out);
        };
        let mut between = Vec::new();
        far.hop.answer(body, &mut between)?;
        self.near.answer(&between, out)
    }

    /// Writes what the provider says of a failure. `kind`: how a field of the answer's head names it.
    pub fn error(&self, status: u16, kind: Option<&str>, body: &[u8], out: &mut Vec<u8>) {
        let Some(far) = &self.far else {
            return self.near.error(status, kind, body, out);
        };
        let mut between = Vec::new();
        far.hop.error(status, kind, body, &mut between);
        self.near.error(status, None, &between, out);
    }

    /// For how many seconds the provider wants no further request, where it says so in an error's body and not in a header.
    pub fn retry_after(&self, body: &[u8]) -> Option<u64> {
        self.last().retry_after(body)
    }

    /// Takes an event of a stream and writes those that the client gets for it.
    pub fn event(&mut self, event: &[u8], out: &mut Vec<u8>) -> Result<Step, AnswerError> {
        let Some(far) = &mut self.far else {
            return self.near.event(event, out);
        };
        far.events.clear();
        let step = far.hop.event(event, &mut far.events)?;
        told(&mut self.near, &far.events, step, out)
    }

    /// Whether events of a stream are the client's already.
    pub fn passes_events(&self) -> bool {
        self.far.is_none() && self.near.passes_events()
    }

    /// The body of the provider's stream has ended well: writes the client's end, if the stream has told why it finished. Returns
    /// whether it has; some providers leave out the mark that follows.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<bool, AnswerError> {
        let Some(far) = &mut self.far else {
            return self.near.finish(out);
        };
        far.events.clear();
        if !far.hop.finish(&mut far.events)? {
            return Ok(false);
        }
        Ok(told(&mut self.near, &far.events, Step::Ended, out)? == Step::Ended)
    }
}

/// Tells the client whole events of chat completions, after which their stream is as far as `step`.
fn told(near: &mut Hop, mut events: &[u8], step: Step, out: &mut Vec<u8>) -> Result<Step, AnswerError> {
    let mut ends = EventEnds::default();
    let mut told = Step::Continues;
    while told == Step::Continues
        && let Some(length) = ends.next_end(events)
    {
        let (event, rest) = events.split_at(length);
        told = near.event(event, out)?;
        events = rest;
    }
    match told == step {
        true => Ok(step),
        false => Err(AnswerError::Malformed(
            "it reports its end too early or not at all",
        )),
    }
}
