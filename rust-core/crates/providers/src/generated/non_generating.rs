//! Responses without generated text: embeddings, moderations, token counts.

use proofgate_json::{Event, JsonError, Reader};

use super::{DocumentKind, GeneratedText};
use crate::dialect::Dialect;

impl GeneratedText {
    pub(super) fn read_non_generating(
        &mut self,
        dialect: Dialect,
        reader: &mut Reader<'_, '_>,
    ) -> Result<DocumentKind, JsonError> {
        let mut shape = DocumentKind::Other;
        let mut has_error = false;
        while let Event::Key(key) = reader.read_event()? {
            let value = reader.read_event()?;
            match (dialect, key.decode(&mut self.name), value) {
                (_, "error", value) => has_error |= value != Event::Null,
                (Dialect::Embeddings, "data", Event::ArrayStart)
                | (Dialect::Moderations, "results", Event::ArrayStart)
                | (Dialect::CountTokens | Dialect::ResponseTokens, "input_tokens", Event::Number(_))
                | (Dialect::GeminiEmbedding, "embedding", Event::ObjectStart)
                | (Dialect::GeminiEmbeddings, "embeddings", Event::ArrayStart)
                | (Dialect::GeminiTokens, "totalTokens", Event::Number(_)) => shape = DocumentKind::Known,
                _ => {}
            }
            reader.skip(value)?;
        }
        Ok(if has_error { DocumentKind::Other } else { shape })
    }
}
