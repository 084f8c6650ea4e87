//! Telemetry of an exchange in progress.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use proofgate_base::clock::{Clock, micros};
use proofgate_base::random::Random;
use proofgate_base::rejection::Rejection;
use proofgate_base::request_id::RequestId;
use proofgate_config::{AccessLogMode, TelemetrySettings};
use proofgate_ledger::record::{Attribution, Outcome, Usage};
use proofgate_wire::Headers;

use super::entry::{Exchange, Spans};
use super::queue::{TelemetrySender, TelemetryTargets};
use super::trace_context::Trace;
use crate::metrics::RequestOutcome;

/// Maximum length of a reported name, in bytes; longer names are truncated.
const MAX_NAME_BYTES: usize = 128;

/// An exchange in progress that telemetry reports or whose trace is propagated.
pub struct ObservedExchange {
    exchange: Exchange,
    trace: Option<Trace>,
    propagates: bool,
    access_log: AccessLogMode,
}

/// The facts that are known after the head of a request was read.
pub struct ObservedRequest<'a> {
    pub headers: &'a Headers<'a>,
    /// Time at which the head was complete.
    pub received_at: Instant,
    pub tenant: &'a Arc<str>,
    pub endpoint: Option<&'static str>,
}

/// The end of an admitted exchange.
pub struct FinishedExchange {
    pub outcome: Outcome,
    pub status: u16,
    pub error: Option<&'static str>,
    pub attempts: u32,
    pub duration_us: u64,
    pub response_bytes: u64,
    pub usage: Option<Usage>,
    pub cost_nanodollars: Option<u64>,
}

impl ObservedExchange {
    /// Starts observing a request, if telemetry needs it.
    pub fn start(
        clock: &Clock,
        random: &Random,
        settings: &TelemetrySettings,
        asked: &ObservedRequest<'_>,
    ) -> Option<Box<Self>> {
        if settings.is_off() {
            return None;
        }
        let traces = settings.traces;
        let trace =
            traces.map(|traces| random.with_rng(|random| Trace::start(asked.headers, traces, random)));
        let propagates = traces.is_some_and(|traces| traces.propagate);
        let is_sampled = trace.as_ref().is_some_and(|trace| trace.sampled);
        if settings.access_log == AccessLogMode::None && !is_sampled && !propagates {
            return None;
        }
        Some(Box::new(ObservedExchange {
            exchange: Exchange {
                ts: clock.unix_micros(asked.received_at),
                tenant: Arc::clone(asked.tenant),
                endpoint: asked.endpoint,
                ..Exchange::default()
            },
            trace,
            propagates,
            access_log: settings.access_log,
        }))
    }

    /// Returns whether the exchange itself may be reported. If not, only its trace is propagated.
    fn is_reportable(&self) -> bool {
        self.access_log != AccessLogMode::None || self.is_sampled()
    }

    fn is_sampled(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.sampled)
    }

    /// Sets the model and the streaming mode that the body requests.
    pub fn set_request(&mut self, model: &str, stream: bool) {
        if self.is_reportable() {
            self.exchange.model = Some(truncate_name(model));
            self.exchange.stream = stream;
        }
    }

    /// Sets the provider to which the request is about to be sent.
    pub fn set_provider(&mut self, provider: &str, upstream_model: &str) {
        if self.is_reportable() {
            self.exchange.provider = Some(truncate_name(provider));
            // Files and batches have no model.
            self.exchange.upstream_model =
                (!upstream_model.is_empty()).then(|| truncate_name(upstream_model));
        }
    }

    /// Sets the attribution as in the record.
    pub fn set_attribution(&mut self, recorded: &Attribution<'_>) {
        if self.is_reportable() {
            let owned = |id: &Option<Cow<'_, str>>| id.as_deref().map(|id| Cow::Owned(id.to_owned()));
            self.exchange.attribution = Some(Attribution {
                session: owned(&recorded.session),
                end_user: recorded.end_user,
                // Names are only in the ledger, whose readers are known.
                end_user_name: None,
                agent: owned(&recorded.agent),
                parent_agent: owned(&recorded.parent_agent),
                // The spans contain the trace id.
                trace_id: None,
            });
        }
    }

    /// Sets the time when the request is sent to a provider. `started` is the time when its head
    /// was complete.
    pub fn mark_sent(&mut self, started: Instant) {
        if self.exchange.sent_us.is_none() && self.is_reportable() {
            self.exchange.sent_us = Some(micros(started.elapsed()));
        }
    }

    /// Sets the time when the response starts.
    pub fn mark_first_byte(&mut self, microseconds: u64) {
        self.exchange.first_byte_us = Some(microseconds);
    }

    /// Writes the header lines that propagate the exchange's trace to the provider.
    pub fn write_trace(&self, lines: &mut Vec<u8>) {
        if let Some(trace) = self.trace.as_ref().filter(|_| self.propagates) {
            trace.write(lines);
        }
    }

    /// Reports an exchange that has ended.
    pub fn report_finished(
        mut self: Box<Self>,
        outlet: &TelemetrySender,
        id: RequestId,
        request_bytes: u64,
        ended: FinishedExchange,
    ) {
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
        self.report(outlet, id);
    }

    /// Reports a request that was refused at `now` (Unix microseconds).
    pub fn report_refused(
        mut self: Box<Self>,
        outlet: &TelemetrySender,
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
        self.report(outlet, id);
    }

    fn report(self, outlet: &TelemetrySender, id: RequestId) {
        let is_sampled = self.is_sampled();
        let mut exchange = self.exchange;
        let wanted = TelemetryTargets {
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
            trace_id: format!("{:032x}", trace.trace_id),
            span_id: format!("{:016x}", trace.server_span),
            client_span_id: format!("{:016x}", trace.client_span),
            parent_span_id: (trace.parent_span != 0).then(|| format!("{:016x}", trace.parent_span)),
            sampled: trace.sampled,
        });
        outlet.send(exchange, wanted);
    }
}

/// Truncates a name.
fn truncate_name(name: &str) -> String {
    let mut ends = (0..=MAX_NAME_BYTES.min(name.len())).rev();
    let end = ends.find(|&end| name.is_char_boundary(end)).unwrap_or(0);
    name[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_name_whole_characters_of_its_beginning_are_told() {
        assert_eq!(truncate_name("gpt"), "gpt");
        assert_eq!(truncate_name(&"m".repeat(1000)).len(), MAX_NAME_BYTES);
        assert_eq!(truncate_name(&"\u{20ac}".repeat(1000)), "\u{20ac}".repeat(42));
    }
}
