//! The trace of a request, as in W3C's Trace Context (<https://www.w3.org/TR/trace-context/>).

use proofgate_config::TraceSettings;
use proofgate_wire::{Headers, encode};
use rand::RngCore;

use super::trace_state;

/// The flag by which the sender states that it may have recorded the trace.
const SAMPLED_FLAG: u8 = 1;
/// The flag by which the sender states that the trace ID is random (Level 2).
const RANDOM_FLAG: u8 = 2;
/// Length of the fields of version 00, in bytes.
const VERSION_00_LEN: usize = 55;

/// A parsed `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TraceParent {
    trace_id: u128,
    span_id: u64,
    flags: u8,
}

impl TraceParent {
    /// Parses the value of the field; `None` if it does not follow section 3.2. For an unknown version, the fields of
    /// version 00 are read.
    fn parse(value: &[u8]) -> Option<Self> {
        let version = parse_hex(value.get(..2)?)?;
        let (head, rest) = value.split_at_checked(VERSION_00_LEN)?;
        let is_whole = rest.is_empty() || (version != 0 && rest.starts_with(b"-"));
        if version == 0xff || !is_whole || [2, 35, 52].iter().any(|&at| head.get(at) != Some(&b'-')) {
            return None;
        }
        let trace = parse_hex(head.get(3..35)?)?;
        let span = u64::try_from(parse_hex(head.get(36..52)?)?).ok()?;
        let flags = u8::try_from(parse_hex(head.get(53..)?)?).ok()?;
        (trace != 0 && span != 0).then_some(TraceParent {
            trace_id: trace,
            span_id: span,
            flags,
        })
    }
}

/// Returns the trace ID in the value of a `traceparent`.
pub(crate) fn parse_trace_id(value: &[u8]) -> Option<[u8; 16]> {
    TraceParent::parse(value).map(|parent| parent.trace_id.to_be_bytes())
}

/// Parses up to 32 lowercase hexadecimal digits.
fn parse_hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

/// The trace of one exchange: its own two spans, and the client's trace context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trace {
    pub(super) trace_id: u128,
    /// The client's span; 0 if the trace starts in this worker.
    pub(super) parent_span: u64,
    /// The span of the exchange.
    pub(super) server_span: u64,
    /// The span of the call to the provider.
    pub(super) client_span: u64,
    pub(super) sampled: bool,
    /// Whether the sender states that the ID is random.
    is_random: bool,
    state: Option<Box<[u8]>>,
}

impl Trace {
    /// Returns the trace that the request head names, or a new trace. An existing trace is sampled
    /// if its sender sampled it.
    pub(super) fn start(headers: &Headers<'_>, settings: TraceSettings, random: &mut impl RngCore) -> Self {
        let mut fields = headers.iter();
        let mut named = |name| fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
        let first = named("traceparent");
        // If there are two values, it is unknown which of them is valid.
        let parent = match first {
            Some((_, value)) if named("traceparent").is_none() => TraceParent::parse(value),
            _ => None,
        };
        let mut id = || random.next_u64().max(1);
        let (server, client) = (id(), id());
        match parent {
            Some(TraceParent {
                trace_id: trace,
                span_id: span,
                flags,
            }) => Trace {
                trace_id: trace,
                parent_span: span,
                server_span: server,
                client_span: client,
                sampled: flags & SAMPLED_FLAG != 0,
                is_random: flags & RANDOM_FLAG != 0,
                state: trace_state::from_headers(headers),
            },
            None => {
                let trace = u128::from(id()) << 64 | u128::from(id());
                Trace {
                    trace_id: trace,
                    parent_span: 0,
                    server_span: server,
                    client_span: client,
                    sampled: settings.is_sampled(trace),
                    is_random: false,
                    state: None,
                }
            }
        }
    }

    /// Writes the header lines for the provider.
    pub(super) fn write(&self, lines: &mut Vec<u8>) {
        let flags = (u8::from(self.sampled) * SAMPLED_FLAG) | (u8::from(self.is_random) * RANDOM_FLAG);
        let value = format!("00-{:032x}-{:016x}-{flags:02x}", self.trace_id, self.client_span);
        // Hex digits, and a value that was read from a field, can always be written.
        let _ = encode::write_header(lines, "traceparent", value.as_bytes());
        if let Some(state) = &self.state {
            let _ = encode::write_header(lines, "tracestate", state);
        }
    }
}

#[cfg(test)]
#[path = "trace_context_tests.rs"]
mod tests;
