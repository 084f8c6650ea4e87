//! Tools that a provider runs itself: those that a tenant may not use are left out, the calls of others bounded.

use proofgate_base::memory::{Buffer, MemoryExhausted};
use proofgate_base::rejection::Rejection;
use proofgate_providers::{CallLimit, HostedTool, ParsedRequest};
use proofgate_wire::encode;

use crate::gateway::buffers::ThreadBuffers;
use crate::rewritten::RewrittenBody;

/// Room for a bound of the calls of one tool.
const BOUND_CAPACITY: usize = 64;

/// How the tools of a request are changed on its way.
pub(crate) struct ToolChanges<'p> {
    allowed: &'p [String],
    /// The kinds of those that it is sent without, for a header field.
    dropped_kinds: Option<String>,
    /// Fields that it is sent without, or with less.
    pub dropped_fields: Vec<&'static str>,
    /// To how many calls those are bound that name no bound.
    call_bound: Option<(CallLimit, u64)>,
}

impl<'p> ToolChanges<'p> {
    /// `None` where nothing is changed. `call_bound`: how many calls tools may have that name no bound; `None` where it does
    /// not matter.
    ///
    /// # Errors
    /// A [`Rejection`] where no other tool would be left: the request is about them then.
    pub fn for_call(
        call: &ParsedRequest<'_>,
        allowed: &'p [String],
        bounded_to: Option<u64>,
    ) -> Result<Option<Self>, Rejection> {
        let hosted = &call.tools.hosted;
        if hosted.is_empty() {
            return Ok(None);
        }
        let kinds = disallowed_kinds(hosted, allowed);
        let is_left_out = |tool: &HostedTool| !tool.is_allowed(allowed);
        let mut dropped = Vec::new();
        if hosted
            .iter()
            .any(|tool| is_left_out(tool) && tool.is_optional_field())
        {
            dropped.push("web_search_options");
        }
        if let Some(kinds) = &kinds
            && hosted
                .iter()
                .any(|tool| is_left_out(tool) && !tool.is_optional_field())
        {
            let stays = call.tools.has_client_tools || hosted.iter().any(|tool| !is_left_out(tool));
            if !stays {
                return Err(Rejection::hosted_tools_not_allowed(kinds));
            }
            dropped.push("tools");
        }
        let bound = call.dialect.call_limit();
        let bounded_to = bounded_to.filter(|_| call.tools.needs_call_limit(bound, is_left_out));
        let is_changed = kinds.is_some() || bounded_to.is_some();
        Ok(is_changed.then_some(ToolChanges {
            allowed,
            dropped_kinds: kinds,
            dropped_fields: dropped,
            call_bound: bounded_to.map(|calls| (bound, calls)),
        }))
    }

    /// Writes the request with the changes, and names what is left out in a header line, in `extra`. `rewritten`: what the
    /// rules made of `body`, of which `call` was read.
    ///
    /// # Errors
    /// A [`Rejection`] without room, and where nobody can read what the rules made of it.
    pub fn write(
        &self,
        buffers: &ThreadBuffers,
        call: &ParsedRequest<'_>,
        body: &[u8],
        rewritten: Option<RewrittenBody>,
        extra: &mut Vec<u8>,
    ) -> Result<RewrittenBody, Rejection> {
        let read = rewritten.as_ref().map(|rewritten| {
            // Never the body as it came: it is not redacted.
            ParsedRequest::parse(call.dialect, &rewritten.body).map_err(|_| Rejection::TOOLS_NOT_REDACTED)
        });
        let read = read.transpose()?;
        let (body, call) = match (&rewritten, &read) {
            (Some(rewritten), Some(read)) => (&*rewritten.body, read),
            _ => (body, call),
        };
        let mut written = Buffer::new(&buffers.budget);
        let bounds = BOUND_CAPACITY.saturating_mul(call.tools.hosted.len() + 1);
        let written_to = written.write(body.len().saturating_add(bounds), |out| {
            let is_left_out = |tool: &HostedTool| !tool.is_allowed(self.allowed);
            call.tools.write_without(body, is_left_out, self.call_bound, out);
        });
        written_to.map_err(|MemoryExhausted| Rejection::OVERLOADED)?;
        let left = ParsedRequest::parse(call.dialect, &written).map(|left| left.model_value());
        if let Some(kinds) = &self.dropped_kinds {
            let _ = encode::write_header(extra, "x-proofgate-dropped-tools", kinds.as_bytes());
        }
        Ok(RewrittenBody {
            body: written,
            model_range: left.unwrap_or_default(),
        })
    }
}

/// Checks a request that nobody changes on its way.
///
/// # Errors
/// A [`Rejection`] where a tool is not allowed.
pub(crate) fn check_allowed(call: &ParsedRequest<'_>, allowed: &[String]) -> Result<(), Rejection> {
    match disallowed_kinds(&call.tools.hosted, allowed) {
        None => Ok(()),
        Some(kinds) => Err(Rejection::hosted_tools_not_allowed(&kinds)),
    }
}

/// The kinds that are not allowed, each once; `None` where there are none.
fn disallowed_kinds(hosted: &[HostedTool], allowed: &[String]) -> Option<String> {
    let mut kinds: Vec<&str> = Vec::new();
    for tool in hosted.iter().filter(|tool| !tool.is_allowed(allowed)) {
        if !kinds.contains(&&*tool.kind) {
            kinds.push(&tool.kind);
        }
    }
    (!kinds.is_empty()).then(|| kinds.join(", "))
}
