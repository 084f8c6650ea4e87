//! A provider that refuses the gateway's key with a status that says something else.

use proofgate_wire::{BodyDecoder, ResponseFraming};
use serde::Deserialize;

use super::source::Source;
use crate::failure::Aborted;
use crate::reply::Reply;

/// What of an error's body is read, in bytes.
const MOST: usize = 16 * 1024;

/// Google's error (google.rpc.Status as JSON, AIP-193).
#[derive(Deserialize)]
struct Report {
    error: Status,
}

#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    details: Vec<Detail>,
}

#[derive(Deserialize)]
struct Detail {
    reason: Option<String>,
}

/// Whether a body of Google's says that the key is none: it does so with 400, and not with 401.
fn says_so(body: &[u8]) -> bool {
    let is_key = |detail: &Detail| detail.reason.as_deref() == Some("API_KEY_INVALID");
    serde_json::from_slice::<Report>(body).is_ok_and(|report| report.error.details.iter().any(is_key))
}

impl Source<'_> {
    /// Whether the error that has begun refuses the gateway's key. It is read to its end, as far as `MOST`, and stays in the
    /// upstream buffer, where its body begins at `begin`.
    pub(super) async fn refuses_key(
        &mut self,
        reply: &mut Reply<'_>,
        framing: ResponseFraming,
        begin: usize,
    ) -> Result<bool, Aborted> {
        let mut decoder = BodyDecoder::for_response(framing);
        let (mut used, mut body) = (begin, Vec::new());
        loop {
            loop {
                let bytes = reply.buffers.upstream.get(used..).unwrap_or_default();
                let Ok(step) = decoder.decode(bytes) else {
                    return Ok(false);
                };
                body.extend_from_slice(bytes.get(step.data).unwrap_or_default());
                used += step.consumed;
                if step.done {
                    return Ok(says_so(&body));
                }
                if step.consumed == 0 {
                    break;
                }
            }
            if body.len() > MOST {
                return Ok(false);
            }
            match self.read(reply).await {
                Ok(true) => {}
                Ok(false) => return Ok(says_so(&body)),
                Err(Aborted::Client) => return Err(Aborted::Client),
                // Whoever relays it meets the same.
                Err(_) => return Ok(false),
            }
        }
    }
}
