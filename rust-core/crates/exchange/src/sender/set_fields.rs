//! Fields that the configuration sets in every body that a provider is sent.

use proofgate_base::memory::{Buffer, MemoryExhausted};
use proofgate_providers::UpstreamBody;
use proofgate_upstream::upstream::Upstream;
use proofgate_wire::encode;

use super::UpstreamSender;

impl UpstreamSender<'_, '_> {
    /// Writes the body with the fields that its provider is always sent; says whether it has any. A client's own fields of
    /// these names are named in a line of the answer, in `extra`.
    pub(super) fn set_fields(
        &self,
        to: &Upstream,
        body: &UpstreamBody<'_>,
        out: &mut Buffer,
        extra: &mut Vec<u8>,
    ) -> Result<bool, MemoryExhausted> {
        if to.set_fields.is_empty() || self.incoming.stored_call.is_some() {
            return Ok(false);
        }
        let length = body.length();
        let mut whole = Buffer::new(&self.incoming.gateway.buffers.budget);
        whole.write(length, |whole| {
            body.parts().iter().for_each(|part| whole.extend_from_slice(part));
        })?;
        let most = to.set_fields.max_bytes(length);
        let replaced = out.write(most, |out| to.set_fields.write(&whole, out))?;
        if let Some(replaced) = replaced.as_ref().filter(|replaced| !replaced.is_empty()) {
            // Names of fields that the configuration has are printable.
            let _ = encode::write_header(
                extra,
                "x-proofgate-dropped-fields",
                replaced.join(", ").as_bytes(),
            );
        }
        Ok(replaced.is_some())
    }
}
