//! The head of an answer, as the client gets it.

use proofgate_inspect::needs_response;
use proofgate_policy::{Mode, Profile};
use proofgate_wire::{Refusal, ResponseFraming, ResponseHead, encode};

use crate::answer::Manner;

/// What rules do with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scrutiny {
    /// None looks at it.
    None,
    /// They look at what passes and change nothing, not even its timing.
    Observe,
    /// What they have not cleared is held back.
    Enforce,
}

impl Scrutiny {
    pub(crate) fn of(profile: &Profile) -> Self {
        match profile.mode() {
            _ if !needs_response(profile) => Scrutiny::None,
            Mode::DryRun => Scrutiny::Observe,
            Mode::Enforce => Scrutiny::Enforce,
        }
    }
}

/// The answer's head as far as the relay needs it after writing it anew.
pub(crate) struct Answering {
    pub(crate) status: u16,
    pub(crate) framing: ResponseFraming,
    /// Whether the body goes to the client in chunks.
    pub(crate) chunked: bool,
    pub(crate) events: bool,
    pub(crate) keep_alive: bool,
    pub(crate) scrutiny: Scrutiny,
    /// Whether the head still lacks its length and its end, because rules may change the body.
    pub(crate) open_head: bool,
}

/// Writes our head for an upstream's answer: its end-to-end fields, our framing, our request id.
pub(crate) fn write_head(
    head: &ResponseHead<'_>,
    id: &str,
    manner: Manner<'_>,
    scrutiny: Scrutiny,
    out: &mut Vec<u8>,
) -> Result<Answering, Refusal> {
    out.clear();
    encode::write_status_line(out, head.status)?;
    let mut events = false;
    for (name, value) in head.headers.iter() {
        if name.eq_ignore_ascii_case("content-type") {
            events = value.len() >= 17 && value[..17].eq_ignore_ascii_case(b"text/event-stream");
        }
        if !is_ours(name) && !head.headers.is_hop_by_hop(name) {
            encode::write_header(out, name, value)?;
        }
    }
    let scrutiny = match head.framing {
        ResponseFraming::Empty => Scrutiny::None,
        _ => scrutiny,
    };
    let open_head = scrutiny == Scrutiny::Enforce && !events;
    let chunked = match head.framing {
        _ if open_head => false,
        ResponseFraming::Empty => false,
        ResponseFraming::Length(_) => events,
        ResponseFraming::Chunked | ResponseFraming::UntilClose => true,
    };
    match head.framing {
        ResponseFraming::Empty if !matches!(head.status, 204 | 304) => encode::write_content_length(out, 0),
        _ if open_head => {}
        ResponseFraming::Length(length) if !chunked => encode::write_content_length(out, length),
        _ if chunked => encode::write_chunked(out),
        _ => {}
    }
    encode::write_header(out, "x-request-id", id.as_bytes())?;
    if manner.close {
        encode::write_header(out, "connection", b"close")?;
    }
    out.extend_from_slice(manner.extra);
    if !open_head {
        out.extend_from_slice(encode::CRLF);
    }
    Ok(Answering {
        status: head.status,
        framing: head.framing,
        chunked,
        events,
        keep_alive: head.keep_alive,
        scrutiny,
        open_head,
    })
}

/// Fields that the gateway sets itself, also where it leaves them out: the provider's limits are those of the gateway's
/// key, and which pages may read an answer is not the provider's to say. And fields that would carry state between the
/// tenants behind one upstream connection.
fn is_ours(name: &str) -> bool {
    [
        "content-length",
        "transfer-encoding",
        "x-request-id",
        "set-cookie",
        "alt-svc",
        "ratelimit",
        "ratelimit-policy",
    ]
    .iter()
    .any(|ours| name.eq_ignore_ascii_case(ours))
        || starts_with(name, "x-ratelimit-")
        || starts_with(name, "access-control-")
}

fn starts_with(name: &str, prefix: &str) -> bool {
    name.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}
