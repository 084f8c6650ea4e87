//! Fields that the configuration sets in every body sent to a provider.

use proofgate_base::memory::{Buffer, MemoryExhausted};
use proofgate_providers::UpstreamBody;
use proofgate_upstream::upstream::Upstream;
use proofgate_wire::encode;

use super::UpstreamSender;

impl UpstreamSender<'_, '_> {
    /// Writes the body with the fields configured for its provider; returns whether there are any.
    /// Appends a header line with the names of replaced client fields to `extra`.
    pub(super) fn set_fields(
        &self,
        to: &Upstream,
        body: &UpstreamBody<'_>,
        out: &mut Buffer,
        extra: &mut Vec<u8>,
    ) -> Result<bool, MemoryExhausted> {
        if to.body_field_overrides.is_empty() || self.incoming.stored_call.is_some() {
            return Ok(false);
        }
        let length = body.length();
        let mut whole = Buffer::new(&self.incoming.gateway.buffers.budget);
        whole.write(length, |whole| {
            body.parts().iter().for_each(|part| whole.extend_from_slice(part));
        })?;
        let most = to.body_field_overrides.max_bytes(length);
        let replaced = out.write(most, |out| to.body_field_overrides.write(&whole, out))?;
        if let Some(replaced) = replaced.as_ref().filter(|replaced| !replaced.is_empty()) {
            // Configured field names are printable, so they are valid in a header line.
            let _ = encode::write_header(
                extra,
                "x-proofgate-dropped-fields",
                replaced.join(", ").as_bytes(),
            );
        }
        Ok(replaced.is_some())
    }
}
