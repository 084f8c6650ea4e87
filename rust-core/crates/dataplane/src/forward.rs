//! What goes upstream of a request.

use std::ops::Range;
use std::time::Instant;

use proofgate_providers::{Call, RequestTemplate, UpstreamBody};
use proofgate_stages::Stage;

use crate::catalog::ModelRoute;
use crate::config::StreamUsage;
use crate::delivery::deliver;
use crate::failure::Failure;
use crate::gateway::Gateway;
use crate::open_exchange::OpenExchange;
use crate::upstream::{Upstream, UpstreamStream};

/// Up to so many bytes a copy costs less than a vectored write.
const ONE_PIECE: usize = 16 * 1024;

/// The body that goes upstream: with the model's name replaced where the manifest says so, and, if it is for a stream,
/// asking for usage. Says also whether the client did not ask for that.
///
/// `body` is what the client sent, or what the rules made of it; the value of `model` stands at `model` there.
pub(crate) fn upstream_body<'b>(
    route: &'b ModelRoute,
    call: &Call<'_>,
    body: &'b [u8],
    model: Range<usize>,
    rewritten: bool,
) -> (UpstreamBody<'b>, bool) {
    let usage = match route.upstream.stream_usage {
        StreamUsage::Leave => None,
        StreamUsage::Ask if rewritten && call.has_stream_options() => {
            let call = Call::parse(call.dialect, body).ok();
            call.and_then(|call| call.usage_edit(&model))
        }
        StreamUsage::Ask => call.usage_edit(&model),
    };
    let name = route.replacement.as_ref().map(|name| (model, &name[..]));
    (UpstreamBody::new(body, [name, usage.clone()]), usage.is_some())
}

/// Where a request goes, and with what head.
#[derive(Clone, Copy)]
pub(crate) struct Destination<'d> {
    pub(crate) upstream: &'d Upstream,
    pub(crate) template: &'d RequestTemplate,
    /// What the path ends in.
    pub(crate) model: &'d str,
    /// Header lines of this request alone.
    pub(crate) fields: &'d [u8],
}

/// Sends a request upstream; returns the connection on which the answer is to be read. What came of it before the request
/// had left is in `early`.
pub(crate) async fn forward(
    gateway: &Gateway,
    to: Destination<'_>,
    open: &mut OpenExchange,
    body: UpstreamBody<'_>,
    early: &mut Vec<u8>,
) -> Result<UpstreamStream, Failure> {
    let mut signed = Vec::new();
    if let Some(signer) = &to.upstream.signer {
        signed.extend_from_slice(to.fields);
        let at = gateway.clock.unix_micros(Instant::now()) / 1_000_000;
        signer.sign(to.template, to.model, &body, at, &mut signed).await;
    }
    let fields = if signed.is_empty() { to.fields } else { &signed };
    let mut head = gateway.outgoing.take();
    head.clear();
    let length = body.length();
    to.template
        .write(open.id.as_str(), length, to.model, fields, &mut head);
    let mut parts = body.parts();
    if length <= ONE_PIECE {
        for part in &mut parts {
            head.extend_from_slice(part);
            *part = &[];
        }
    }
    open.span.lap_now(Stage::Adapt);
    let [one, two, three, four, five] = parts;
    let message = [&head[..], one, two, three, four, five];
    let limits = open.catalog.terms.limits;
    let (executed, span, lent) = (&mut open.executed, &mut open.span, &gateway.incoming);
    let delivered = deliver(to.upstream, message, limits, executed, span, lent, early).await;
    gateway.outgoing.set(head);
    delivered
}
