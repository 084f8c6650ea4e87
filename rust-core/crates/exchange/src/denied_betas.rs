//! Features of Anthropic's API that a plan denies, or a provider is not sent: the value of a header and the fields of the body leave together.

use proofgate_base::memory::{Buffer, Exhausted};
use proofgate_providers::{Call, Dialect, Family, leave_out_features};
use proofgate_upstream::routes::Target;
use proofgate_wire::encode;

use crate::gateway::buffers::Buffers;
use crate::incoming_call::IncomingCall;
use crate::rewritten::{Rewritten, Stripped};

/// A request without fields of features that a plan denies.
pub(crate) struct WithoutFeatures {
    pub body: Rewritten,
    /// The names of the fields that it had.
    pub fields: Vec<&'static str>,
}

impl WithoutFeatures {
    /// Writes a request without the fields of the features that `denied` names, and names these in a header line, in `extra`;
    /// `None` when it has none. `body`: what the rules made of the client's.
    pub fn write(
        buffers: &Buffers,
        dialect: Dialect,
        denied: &[String],
        body: &[u8],
        extra: &mut Vec<u8>,
    ) -> Result<Option<Self>, Exhausted> {
        if denied.is_empty() || dialect.family() != Family::Anthropic {
            return Ok(None);
        }
        let mut written = Buffer::new(&buffers.budget);
        let fields = written.write(body.len(), |out| leave_out_features(body, denied, out))?;
        if fields.is_empty() {
            return Ok(None);
        }
        let model = Call::parse(dialect, &written).map(|left| left.model_value());
        let _ = encode::write_header(extra, "x-proofgate-dropped-fields", fields.join(", ").as_bytes());
        Ok(Some(WithoutFeatures {
            body: Rewritten {
                body: written,
                model: model.unwrap_or_default(),
            },
            fields,
        }))
    }
}

/// The request for a provider without the fields of the betas that clients may not send to it, as the values themselves are
/// left out. `stripped`: what was made of `body` for this provider.
pub(crate) fn without_refused(
    incoming: &IncomingCall<'_>,
    target: &Target,
    stripped: Option<Stripped>,
    body: &[u8],
    extra: &mut Vec<u8>,
) -> Result<Option<Stripped>, Exhausted> {
    let fields = incoming.fields.as_deref();
    let refused = fields.map_or(Vec::new(), |fields| {
        fields.refused_by(target.upstream.betas.as_deref())
    });
    let body = stripped
        .as_ref()
        .map_or(body, |stripped| &stripped.rewritten.body);
    let buffers = &incoming.gateway.buffers;
    let without = WithoutFeatures::write(buffers, incoming.dialect, &refused, body, extra)?;
    let Some(WithoutFeatures { body, fields }) = without else {
        return Ok(stripped);
    };
    let mut names = stripped.map_or(Vec::new(), |stripped| stripped.names);
    names.extend(fields);
    Ok(Some(Stripped {
        rewritten: body,
        names,
    }))
}
