//! What is told of one exchange.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use proofgate_base::clock::{Clock, micros};
use proofgate_base::random::Random;
use proofgate_base::rejection::Rejection;
use proofgate_base::request_id::RequestId;
use proofgate_config::{AccessLogMode, Settings};
use proofgate_ledger::record::{Attribution, Outcome, Usage};
use proofgate_wire::Headers;
use serde::{Serialize, Serializer};

use super::outlet::{Outlet, Wanted};
use super::trace_context::Trace;
use crate::metrics::RequestOutcome;

/// Of a longer name the beginning is told, in bytes.
const MOST_OF_A_NAME: usize = 128;

/// One exchange, or a request that was refused, as the access log shows it and traces are made of it. Times are in
/// microseconds; names come from outside, so they are cut, and only JSON escapes them.
#[derive(Debug, Default, Serialize)]
pub struct Exchange {
    /// When its head was complete, since 1970.
    ts: u64,
    id: String,
    #[serde(serialize_with = "as_text")]
    tenant: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<&'static str>,
    /// As the client named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    stream: bool,
    /// Where it was sent last.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_model: Option<String>,
    /// 499: its client left before an answer began.
    status: u16,
    outcome: &'static str,
    /// A machine code.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    attempts: u32,
    duration_us: u64,
    /// From its head until it was first sent to a provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_us: Option<u64>,
    /// From its head to the first byte of a provider's answer that may go to the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_byte_us: Option<u64>,
    request_bytes: u64,
    response_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_nanodollars: Option<u64>,
    /// Whom it is for, as its client says.
    #[serde(flatten)]
    attribution: Option<Attribution<'static>>,
    #[serde(flatten)]
    spans: Option<Spans>,
}

/// Ids of W3C's Trace Context, in hex.
#[derive(Debug, Serialize)]
struct Spans {
    trace_id: String,
    span_id: String,
    client_span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    sampled: bool,
}

/// An exchange under way of which something will be told.
pub struct Observed {
    exchange: Exchange,
    trace: Option<Trace>,
    propagates: bool,
    access_log: AccessLogMode,
}

/// What the head of a request says.
pub struct Asked<'a> {
    pub headers: &'a Headers<'a>,
    /// When it was complete.
    pub at: Instant,
    pub tenant: &'a Arc<str>,
    pub endpoint: Option<&'static str>,
}

/// How an admitted exchange ended.
pub struct Ended {
    pub outcome: Outcome,
    pub status: u16,
    pub error: Option<&'static str>,
    pub attempts: u32,
    pub duration_us: u64,
    pub response_bytes: u64,
    pub usage: Option<Usage>,
    pub cost_nanodollars: Option<u64>,
}

impl Observed {
    /// Begins to observe a request, if somebody wants to know of it.
    pub fn begin(
        clock: &Clock,
        random: &Random,
        settings: &Settings,
        asked: &Asked<'_>,
    ) -> Option<Box<Self>> {
        if settings.is_off() {
            return None;
        }
        let traces = settings.traces;
        let trace = traces.map(|traces| random.draw(|random| Trace::begin(asked.headers, traces, random)));
        let propagates = traces.is_some_and(|traces| traces.propagate);
        let is_sampled = trace.as_ref().is_some_and(|trace| trace.sampled);
        if settings.access_log == AccessLogMode::None && !is_sampled && !propagates {
            return None;
        }
        Some(Box::new(Observed {
            exchange: Exchange {
                ts: clock.unix_micros(asked.at),
                tenant: Arc::clone(asked.tenant),
                endpoint: asked.endpoint,
                ..Exchange::default()
            },
            trace,
            propagates,
            access_log: settings.access_log,
        }))
    }

    /// Whether it may be told, and not only passed on to a provider.
    fn may_be_told(&self) -> bool {
        self.access_log != AccessLogMode::None || self.is_sampled()
    }

    fn is_sampled(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.sampled)
    }

    /// Notes what the body asks for.
    pub fn asks_for(&mut self, model: &str, stream: bool) {
        if self.may_be_told() {
            self.exchange.model = Some(cut(model));
            self.exchange.stream = stream;
        }
    }

    /// Notes where it is about to be sent.
    pub fn turns_to(&mut self, provider: &str, upstream_model: &str) {
        if self.may_be_told() {
            self.exchange.provider = Some(cut(provider));
            // Files and batches have none.
            self.exchange.upstream_model = (!upstream_model.is_empty()).then(|| cut(upstream_model));
        }
    }

    /// Notes whom it is for, as it is recorded.
    pub fn is_for(&mut self, recorded: &Attribution<'_>) {
        if self.may_be_told() {
            let owned = |id: &Option<Cow<'_, str>>| id.as_deref().map(|id| Cow::Owned(id.to_owned()));
            self.exchange.attribution = Some(Attribution {
                session: owned(&recorded.session),
                end_user: recorded.end_user,
                agent: owned(&recorded.agent),
                parent_agent: owned(&recorded.parent_agent),
                // The spans name it.
                trace_id: None,
            });
        }
    }

    /// Notes that it leaves for a provider; `started` is when its head was complete.
    pub fn leaves(&mut self, started: Instant) {
        if self.exchange.sent_us.is_none() && self.may_be_told() {
            self.exchange.sent_us = Some(micros(started.elapsed()));
        }
    }

    /// Notes that the answer begins.
    pub fn answers(&mut self, microseconds: u64) {
        self.exchange.first_byte_us = Some(microseconds);
    }

    /// The header lines that tell its provider of its trace.
    pub fn write_trace(&self, lines: &mut Vec<u8>) {
        if let Some(trace) = self.trace.as_ref().filter(|_| self.propagates) {
            trace.write(lines);
        }
    }

    /// Tells of an exchange that has ended.
    pub fn ended(mut self: Box<Self>, outlet: &Outlet, id: RequestId, request_bytes: u64, ended: Ended) {
        let exchange = &mut self.exchange;
        let outcome = RequestOutcome::from(ended.outcome);
        exchange.status = ended.status;
        exchange.outcome = outcome.as_str();
        exchange.error = match ended.outcome {
            Outcome::Complete => None,
            other => ended.error.or(Some(other.as_str())),
        };
        exchange.attempts = ended.attempts;
        exchange.duration_us = ended.duration_us;
        exchange.request_bytes = request_bytes;
        exchange.response_bytes = ended.response_bytes;
        exchange.usage = ended.usage;
        exchange.cost_nanodollars = ended.cost_nanodollars;
        self.tell(outlet, id);
    }

    /// Tells of a request that was refused at `now`, unix microseconds.
    pub fn refused(
        mut self: Box<Self>,
        outlet: &Outlet,
        id: RequestId,
        now: u64,
        bytes: usize,
        rejection: &Rejection,
        outcome: RequestOutcome,
    ) {
        let exchange = &mut self.exchange;
        exchange.status = rejection.status;
        exchange.outcome = outcome.as_str();
        exchange.error = Some(rejection.code);
        exchange.duration_us = now.saturating_sub(exchange.ts);
        exchange.request_bytes = bytes as u64;
        self.tell(outlet, id);
    }

    fn tell(self, outlet: &Outlet, id: RequestId) {
        let is_sampled = self.is_sampled();
        let mut exchange = self.exchange;
        let wanted = Wanted {
            access_log: match self.access_log {
                AccessLogMode::None => false,
                AccessLogMode::Errors => exchange.error.is_some() || exchange.status >= 400,
                AccessLogMode::All => true,
            },
            traces: is_sampled,
        };
        if !wanted.access_log && !wanted.traces {
            return;
        }
        id.as_str().clone_into(&mut exchange.id);
        exchange.spans = self.trace.map(|trace| Spans {
            trace_id: format!("{:032x}", trace.trace),
            span_id: format!("{:016x}", trace.server),
            client_span_id: format!("{:016x}", trace.client),
            parent_span_id: (trace.parent != 0).then(|| format!("{:016x}", trace.parent)),
            sampled: trace.sampled,
        });
        outlet.tell(exchange, wanted);
    }
}

fn as_text<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// The beginning of a name.
fn cut(name: &str) -> String {
    let mut ends = (0..=MOST_OF_A_NAME.min(name.len())).rev();
    let end = ends.find(|&end| name.is_char_boundary(end)).unwrap_or(0);
    name[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_name_whole_characters_of_its_beginning_are_told() {
        assert_eq!(cut("gpt"), "gpt");
        assert_eq!(cut(&"m".repeat(1000)).len(), MOST_OF_A_NAME);
        assert_eq!(cut(&"\u{20ac}".repeat(1000)), "\u{20ac}".repeat(42));
    }
}
