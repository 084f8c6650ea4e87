//! Tools that a provider runs itself, and that a tenant may not use.

use proofgate_providers::{Call, HostedTool};
use proofgate_wire::encode;

use crate::gateway::Gateway;
use crate::memory::{Buffer, Exhausted};
use crate::rejection::Rejection;
use crate::request_policy::Rewritten;

/// The tools that a request is sent without.
pub(crate) struct LeftOut<'p> {
    allowed: &'p [String],
    /// Their kinds, for a header field.
    kinds: String,
}

impl<'p> LeftOut<'p> {
    /// `None` where all are allowed.
    ///
    /// # Errors
    /// A [`Rejection`] where no other tool would be left: the request is about them then.
    pub(crate) fn of(call: &Call<'_>, allowed: &'p [String]) -> Result<Option<Self>, Rejection> {
        let hosted = &call.tools.hosted;
        let Some(kinds) = not_allowed(hosted, allowed) else {
            return Ok(None);
        };
        let stays = call.tools.of_client || hosted.iter().any(|tool| tool.is_allowed(allowed));
        match stays {
            true => Ok(Some(LeftOut { allowed, kinds })),
            false => Err(Rejection::hosted_tools(&kinds)),
        }
    }

    /// Writes the request without them, and names them in a header line, in `extra`. `rewritten`: what the rules made of
    /// `body`, of which `call` was read.
    pub(crate) fn write(
        &self,
        gateway: &Gateway,
        call: &Call<'_>,
        body: &[u8],
        rewritten: Option<Rewritten>,
        extra: &mut Vec<u8>,
    ) -> Result<Rewritten, Exhausted> {
        let read = rewritten
            .as_ref()
            .and_then(|rewritten| Call::parse(call.dialect, &rewritten.body).ok());
        let (body, call) = match (&rewritten, &read) {
            (Some(rewritten), Some(read)) => (&*rewritten.body, read),
            _ => (body, call),
        };
        let mut written = Buffer::new(&gateway.budget);
        written.write(body.len(), |out| {
            call.tools
                .leave_out(body, |tool| !tool.is_allowed(self.allowed), out);
        })?;
        let left = Call::parse(call.dialect, &written).map(|left| left.model_value());
        let _ = encode::write_header(extra, "x-proofgate-dropped-tools", self.kinds.as_bytes());
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
