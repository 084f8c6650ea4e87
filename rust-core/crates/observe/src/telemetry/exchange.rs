//! What is gathered of an exchange while it is under way.

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

use super::entry::{Exchange, Spans};
use super::outlet::{Outlet, TelemetryInterest};
use super::trace_context::Trace;
use crate::metrics::RequestOutcome;

/// Of a longer name the beginning is told, in bytes.
const MOST_OF_A_NAME: usize = 128;

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
                // A name stays in the ledger, whose readers are known.
                end_user_name: None,
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
        let wanted = TelemetryInterest {
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
