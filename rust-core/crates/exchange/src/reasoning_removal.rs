//! Removes content that only another provider can read from a request, for conversations that
//! changed their provider.

use memchr::memmem;
use proofgate_base::memory::{Buffer, MemoryExhausted};
use proofgate_base::rejection::Rejection;
use proofgate_providers::{Dialect, ParsedRequest};
use proofgate_translate::reasoning_removal::{GATEWAY_MARKERS, strip_gateway_items, strip_unsigned_thinking};
use proofgate_upstream::routes::Target;
use proofgate_upstream::translation::TranslationPath;
use proofgate_wire::encode;

use crate::denied_betas;
use crate::incoming_call::IncomingCall;
use crate::rewritten_body::{RewrittenBody, StrippedRequest};

/// The value of [`ParsedRequest::stored_reference`] for a reference to an item.
const ITEM_REFERENCE: &str = "item_reference";

/// Returns the body for `target` without the reasoning of other providers and without fields of
/// betas that the target does not accept; `None` if nothing is removed. `model` is the target's
/// name for the model. Header lines with the names of the removed fields are appended to `extra`.
pub(crate) fn strip_for_target(
    incoming: &IncomingCall<'_>,
    target: &Target,
    pairs: Option<TranslationPath>,
    model: &str,
    body: &[u8],
    extra: &mut Vec<u8>,
) -> Result<Option<StrippedRequest>, MemoryExhausted> {
    let is_passed = pairs.is_none() && target.upstream.template(incoming.dialect).is_some();
    let is_carried = is_passed || pairs.is_some_and(TranslationPath::has_betas_in_body);
    let stripped = strip_thoughts(incoming, (is_passed, is_carried), model, body, extra)?;
    match is_carried {
        true => denied_betas::strip_denied_betas(incoming, target, stripped, body, extra),
        false => Ok(stripped),
    }
}

fn strip_thoughts(
    incoming: &IncomingCall<'_>,
    (is_passed, is_carried): (bool, bool),
    model: &str,
    body: &[u8],
    extra: &mut Vec<u8>,
) -> Result<Option<StrippedRequest>, MemoryExhausted> {
    let dialect = incoming.dialect;
    let is_concerned = match dialect {
        Dialect::Responses | Dialect::ResponseTokens => true,
        Dialect::Messages | Dialect::CountTokens => is_carried,
        _ => false,
    };
    if !is_concerned || !has_marker(body) {
        return Ok(None);
    }
    let mut written = Buffer::new(&incoming.gateway.buffers.budget);
    let names = written.write(body.len().saturating_add(64), |out| match dialect {
        Dialect::Responses | Dialect::ResponseTokens => strip_gateway_items(body, is_passed, out),
        _ => strip_unsigned_thinking(body, model, out),
    })?;
    let Some(names) = names else { return Ok(None) };
    // Field names are valid in a header line.
    let _ = encode::write_header(extra, "x-proofgate-dropped-fields", names.join(", ").as_bytes());
    let read = ParsedRequest::parse(dialect, &written).map(|call| call.model_value());
    Ok(Some(StrippedRequest {
        rewritten: RewrittenBody {
            body: written,
            model_range: read.unwrap_or_default(),
        },
        dropped_fields: names,
    }))
}

/// Returns a reference in the request to content that a provider stores. References to reasoning
/// that no provider stores are ignored.
pub(crate) fn stored_content_reference(
    incoming: &IncomingCall<'_>,
    call: &ParsedRequest<'_>,
) -> Result<Option<&'static str>, Rejection> {
    if call.stored_reference != Some(ITEM_REFERENCE) || !incoming.dialect.uses_responses_format() {
        return Ok(call.stored_reference);
    }
    let mut written = Buffer::new(&incoming.gateway.buffers.budget);
    let names = written.write(incoming.body.len(), |out| {
        strip_gateway_items(incoming.body, false, out)
    });
    match names.map_err(|MemoryExhausted| Rejection::OVERLOADED)? {
        Some(_) => Ok(ParsedRequest::parse(incoming.dialect, &written)
            .map_or(call.stored_reference, |rest| rest.stored_reference)),
        None => Ok(call.stored_reference),
    }
}

/// Whether a body contains any marker of removable content. Few bodies do.
fn has_marker(body: &[u8]) -> bool {
    GATEWAY_MARKERS
        .iter()
        .any(|mark| memmem::find(body, mark.as_bytes()).is_some())
}
