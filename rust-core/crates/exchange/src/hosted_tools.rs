//! Tools that a provider runs itself. Disallowed tools are removed, and the number of calls of the
//! others is bounded.

use proofgate_base::memory::{Buffer, MemoryExhausted};
use proofgate_base::rejection::Rejection;
use proofgate_providers::{CallLimit, HostedTool, ParsedRequest};
use proofgate_wire::encode;

use crate::gateway::buffers::ThreadBuffers;
use crate::rewritten_body::RewrittenBody;

/// Capacity in bytes for the bound of one tool's calls.
const BOUND_CAPACITY: usize = 64;

/// The changes to the tools of a request.
pub(crate) struct ToolChanges<'p> {
    allowed: &'p [String],
    /// Removed kinds of tools, for a header field.
    dropped_kinds: Option<String>,
    /// Names of the fields that are removed or shortened.
    pub dropped_fields: Vec<&'static str>,
    /// The bound on calls for tools that set none; `None` if no bound is added.
    call_bound: Option<(CallLimit, u64)>,
}

impl<'p> ToolChanges<'p> {
    /// Returns the changes that a request needs; `None` if it needs none. `bounded_to` is the
    /// maximum number of calls for tools that set none; `None` adds no bound.
    ///
    /// # Errors
    /// A [`Rejection`] if no tool would be left, because such a request depends on the removed
    /// tools.
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

    /// Writes the changed request. Appends a header line with the removed kinds of tools to
    /// `extra`. `rewritten` is the body after the rules; `call` was read from `body`.
    ///
    /// # Errors
    /// A [`Rejection`] if there is no memory, or the rewritten body cannot be parsed.
    pub fn write(
        &self,
        buffers: &ThreadBuffers,
        call: &ParsedRequest<'_>,
        body: &[u8],
        rewritten: Option<RewrittenBody>,
        extra: &mut Vec<u8>,
    ) -> Result<RewrittenBody, Rejection> {
        let read = rewritten.as_ref().map(|rewritten| {
            // The original body must not be used, because it is not redacted.
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
            call.tools
                .write_body_without_tools(body, is_left_out, self.call_bound, out);
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

/// Checks the tools of a request that is sent unchanged.
///
/// # Errors
/// A [`Rejection`] if a tool is not allowed.
pub(crate) fn check_allowed(call: &ParsedRequest<'_>, allowed: &[String]) -> Result<(), Rejection> {
    match disallowed_kinds(&call.tools.hosted, allowed) {
        None => Ok(()),
        Some(kinds) => Err(Rejection::hosted_tools_not_allowed(&kinds)),
    }
}

/// Returns the list of disallowed kinds without duplicates; `None` if there are none.
fn disallowed_kinds(hosted: &[HostedTool], allowed: &[String]) -> Option<String> {
    let mut kinds: Vec<&str> = Vec::new();
    for tool in hosted.iter().filter(|tool| !tool.is_allowed(allowed)) {
        if !kinds.contains(&&*tool.kind) {
            kinds.push(&tool.kind);
        }
    }
    (!kinds.is_empty()).then(|| kinds.join(", "))
}
