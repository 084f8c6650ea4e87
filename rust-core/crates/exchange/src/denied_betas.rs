//! Features of Anthropic's API that a plan denies or a provider does not accept. Their header
//! values and body fields are removed together.

use proofgate_base::memory::{Buffer, MemoryExhausted};
use proofgate_providers::{Dialect, Family, ParsedRequest, remove_feature_fields};
use proofgate_upstream::routes::Target;
use proofgate_wire::encode;

use crate::gateway::buffers::ThreadBuffers;
use crate::incoming_call::IncomingCall;
use crate::rewritten_body::{RewrittenBody, StrippedRequest};

/// A request without the fields of denied features.
pub(crate) struct FeatureStrippedRequest {
    pub body: RewrittenBody,
    /// Names of the removed fields.
    pub removed_fields: Vec<&'static str>,
}

impl FeatureStrippedRequest {
    /// Writes a request without the fields of the features in `denied`, and appends a header line
    /// with their names to `extra`. Returns `None` if the request has no such fields. `body` is the
    /// client's body after the rules.
    pub fn write(
        buffers: &ThreadBuffers,
        dialect: Dialect,
        denied: &[String],
        body: &[u8],
        extra: &mut Vec<u8>,
    ) -> Result<Option<Self>, MemoryExhausted> {
        if denied.is_empty() || dialect.family() != Family::Anthropic {
            return Ok(None);
        }
        let mut written = Buffer::new(&buffers.budget);
        let fields = written.write(body.len(), |out| remove_feature_fields(body, denied, out))?;
        if fields.is_empty() {
            return Ok(None);
        }
        let model = ParsedRequest::parse(dialect, &written).map(|left| left.model_value());
        let _ = encode::write_header(extra, "x-proofgate-dropped-fields", fields.join(", ").as_bytes());
        Ok(Some(FeatureStrippedRequest {
            body: RewrittenBody {
                body: written,
                model_range: model.unwrap_or_default(),
            },
            removed_fields: fields,
        }))
    }
}

/// Removes the body fields of betas that clients may not send to this provider. Their header values
/// are removed, too. `stripped` is the version of `body` that was already stripped for this
/// provider.
pub(crate) fn strip_denied_betas(
    incoming: &IncomingCall<'_>,
    target: &Target,
    stripped: Option<StrippedRequest>,
    body: &[u8],
    extra: &mut Vec<u8>,
) -> Result<Option<StrippedRequest>, MemoryExhausted> {
    let fields = incoming.anthropic_headers.as_deref();
    let refused = fields.map_or(Vec::new(), |fields| {
        fields.disallowed_betas(target.upstream.betas.as_deref())
    });
    let body = stripped
        .as_ref()
        .map_or(body, |stripped| &stripped.rewritten.body);
    let buffers = &incoming.gateway.buffers;
    let without = FeatureStrippedRequest::write(buffers, incoming.dialect, &refused, body, extra)?;
    let Some(FeatureStrippedRequest {
        body,
        removed_fields: fields,
    }) = without
    else {
        return Ok(stripped);
    };
    let mut names = stripped.map_or(Vec::new(), |stripped| stripped.dropped_fields);
    names.extend(fields);
    Ok(Some(StrippedRequest {
        rewritten: body,
        dropped_fields: names,
    }))
}
