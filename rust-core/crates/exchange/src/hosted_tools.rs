//! Tools that a provider runs itself: those that a tenant may not use are left out, the calls of others bounded.

use proofgate_base::memory::{Buffer, Exhausted};
use proofgate_base::rejection::Rejection;
use proofgate_providers::{Call, CallBound, HostedTool};
use proofgate_wire::encode;

use crate::gateway::buffers::Buffers;
use crate::rewritten::Rewritten;

/// Room for a bound of the calls of one tool.
const BOUND: usize = 64;

/// How the tools of a request are changed on its way.
pub(crate) struct ToolChanges<'p> {
    allowed: &'p [String],
    /// The kinds of those that it is sent without, for a header field.
    kinds: Option<String>,
    /// Fields that it is sent without, or with less.
    pub dropped: Vec<&'static str>,
    /// To how many calls those are bound that name no bound.
    bounded_to: Option<(CallBound, u64)>,
}

impl<'p> ToolChanges<'p> {
    /// `None` where nothing is changed. `bounded_to`: how many calls tools may have that name no bound; `None` where it does
    /// not matter.
    ///
    /// # Errors
    /// A [`Rejection`] where no other tool would be left: the request is about them then.
    pub fn of(
        call: &Call<'_>,
        allowed: &'p [String],
        bounded_to: Option<u64>,
    ) -> Result<Option<Self>, Rejection> {
        let hosted = &call.tools.hosted;
        if hosted.is_empty() {
            return Ok(None);
        }
        let kinds = not_allowed(hosted, allowed);
        let is_left_out = |tool: &HostedTool| !tool.is_allowed(allowed);
        let mut dropped = Vec::new();
        if hosted.iter().any(|tool| is_left_out(tool) && tool.is_besides()) {
            dropped.push("web_search_options");
        }
        if let Some(kinds) = &kinds
            && hosted.iter().any(|tool| is_left_out(tool) && !tool.is_besides())
        {
            let stays = call.tools.of_client || hosted.iter().any(|tool| !is_left_out(tool));
            if !stays {
                return Err(Rejection::hosted_tools(kinds));
            }
            dropped.push("tools");
        }
        let bound = call.dialect.call_bound();
        let bounded_to = bounded_to.filter(|_| call.tools.needs_bound(bound, is_left_out));
        let is_changed = kinds.is_some() || bounded_to.is_some();
        Ok(is_changed.then_some(ToolChanges {
            allowed,
            kinds,
            dropped,
            bounded_to: bounded_to.map(|calls| (bound, calls)),
        }))
    }

    /// Writes the request with the changes, and names what is left out in a header line, in `extra`. `rewritten`: what the
    /// rules made of `body`, of which `call` was read.
    ///
    /// # Errors
    /// A [`Rejection`] without room, and where nobody can read what the rules made of it.
    pub fn write(
        &self,
        buffers: &Buffers,
        call: &Call<'_>,
        body: &[u8],
        rewritten: Option<Rewritten>,
        extra: &mut Vec<u8>,
    ) -> Result<Rewritten, Rejection> {
        let read = rewritten.as_ref().map(|rewritten| {
            // Never the body as it came: it is not redacted.
            Call::parse(call.dialect, &rewritten.body).map_err(|_| Rejection::TOOLS_NOT_REDACTED)
        });
        let read = read.transpose()?;
        let (body, call) = match (&rewritten, &read) {
            (Some(rewritten), Some(read)) => (&*rewritten.body, read),
            _ => (body, call),
        };
        let mut written = Buffer::new(&buffers.budget);
        let bounds = BOUND.saturating_mul(call.tools.hosted.len() + 1);
        let written_to = written.write(body.len().saturating_add(bounds), |out| {
            let is_left_out = |tool: &HostedTool| !tool.is_allowed(self.allowed);
            call.tools.write(body, is_left_out, self.bounded_to, out);
        });
        written_to.map_err(|Exhausted| Rejection::OVERLOADED)?;
        let left = Call::parse(call.dialect, &written).map(|left| left.model_value());
        if let Some(kinds) = &self.kinds {
            let _ = encode::write_header(extra, "x-proofgate-dropped-tools", kinds.as_bytes());
        }
        Ok(Rewritten {
            body: written,
            model: left.unwrap_or_default(),
        })
    }
}

/// Checks a request that nobody changes on its way.
///
/// # Errors
/// A [`Rejection`] where a tool is not allowed.
pub(crate) fn check_all(call: &Call<'_>, allowed: &[String]) -> Result<(), Rejection> {
    match not_allowed(&call.tools.hosted, allowed) {
        None => Ok(()),
        Some(kinds) => Err(Rejection::hosted_tools(&kinds)),
    }
}

/// The kinds that are not allowed, each once; `None` where there are none.
fn not_allowed(hosted: &[HostedTool], allowed: &[String]) -> Option<String> {
    let mut kinds: Vec<&str> = Vec::new();
    for tool in hosted.iter().filter(|tool| !tool.is_allowed(allowed)) {
        if !kinds.contains(&&*tool.kind) {
            kinds.push(&tool.kind);
        }
    }
    (!kinds.is_empty()).then(|| kinds.join(", "))
}
