//! Requests of a conversation that has changed its provider, without what only another one reads.

use memchr::memmem;
use proofgate_base::memory::{Buffer, Exhausted};
use proofgate_base::rejection::Rejection;
use proofgate_providers::{Call, Dialect};
use proofgate_translate::own_thoughts::{MARKS, without_own_items, without_own_thinking};
use proofgate_upstream::routes::Target;
use proofgate_upstream::translation::Pairs;
use proofgate_wire::encode;

use crate::denied_betas;
use crate::incoming_call::IncomingCall;
use crate::rewritten::{Rewritten, Stripped};

/// What [`Call::kept`] is of a reference to an item.
const REFERENCE: &str = "item_reference";

/// What is said to `target`, which calls the model `model`, in the place of `body`; `None` where nothing is left out: another
/// provider's thoughts, and fields of betas that it does not take. What is, stands in header lines, in `extra`.
pub(crate) fn strip(
    incoming: &IncomingCall<'_>,
    target: &Target,
    pairs: Option<Pairs>,
    model: &str,
    body: &[u8],
    extra: &mut Vec<u8>,
) -> Result<Option<Stripped>, Exhausted> {
    let is_passed = pairs.is_none() && target.upstream.template(incoming.dialect).is_some();
    let is_carried = is_passed || pairs.is_some_and(Pairs::has_betas_in_body);
    let stripped = without_thoughts(incoming, (is_passed, is_carried), model, body, extra)?;
    match is_carried {
        true => denied_betas::without_refused(incoming, target, stripped, body, extra),
        false => Ok(stripped),
    }
}

fn without_thoughts(
    incoming: &IncomingCall<'_>,
    (is_passed, is_carried): (bool, bool),
    model: &str,
    body: &[u8],
    extra: &mut Vec<u8>,
) -> Result<Option<Stripped>, Exhausted> {
    let dialect = incoming.dialect;
    let is_concerned = match dialect {
        Dialect::Responses | Dialect::ResponseTokens => true,
        Dialect::Messages | Dialect::CountTokens => is_carried,
        _ => false,
    };
    if !is_concerned || !is_marked(body) {
        return Ok(None);
    }
    let mut written = Buffer::new(&incoming.gateway.buffers.budget);
    let names = written.write(body.len().saturating_add(64), |out| match dialect {
        Dialect::Responses | Dialect::ResponseTokens => without_own_items(body, is_passed, out),
        _ => without_own_thinking(body, model, out),
    })?;
    let Some(names) = names else { return Ok(None) };
    // Names of fields are tokens.
    let _ = encode::write_header(extra, "x-proofgate-dropped-fields", names.join(", ").as_bytes());
    let read = Call::parse(dialect, &written).map(|call| call.model_value());
    Ok(Some(Stripped {
        rewritten: Rewritten {
            body: written,
            model: read.unwrap_or_default(),
        },
        names,
    }))
}

/// What a request names of what a provider keeps, besides thoughts that no provider was ever given to keep.
pub(crate) fn kept_besides(
    incoming: &IncomingCall<'_>,
    call: &Call<'_>,
) -> Result<Option<&'static str>, Rejection> {
    if call.kept != Some(REFERENCE) || !incoming.dialect.asks_as_responses() {
        return Ok(call.kept);
    }
    let mut written = Buffer::new(&incoming.gateway.buffers.budget);
    let names = written.write(incoming.body.len(), |out| {
        without_own_items(incoming.body, false, out)
    });
    match names.map_err(|Exhausted| Rejection::OVERLOADED)? {
        Some(_) => Ok(Call::parse(incoming.dialect, &written).map_or(call.kept, |rest| rest.kept)),
        None => Ok(call.kept),
    }
}

/// Whether a body has any mark of what is left out, which few have.
fn is_marked(body: &[u8]) -> bool {
    MARKS
        .iter()
        .any(|mark| memmem::find(body, mark.as_bytes()).is_some())
}
