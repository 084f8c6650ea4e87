//! Gemini's responses, whole or as the events of a stream.
//!
//! The generated text is the strings of candidates, and the feedback on a blocked prompt. All texts
//! of a candidate form one text with the key `0/text`, and all its thoughts one text with the key
//! `0/thought`: streams and clients do not separate the parts of content. Fragments of arguments,
//! which a stream has on request, have the key `0/partialArgs`. No candidate counts as finished
//! before its stream ends, because its text may continue after its finish reason.

use proofgate_json::{Event, JsonError, Reader};

use super::paths::Step;
use super::{DocumentKind, GeneratedText};

impl GeneratedText {
    pub(super) fn read_candidates(&mut self, reader: &mut Reader<'_, '_>) -> Result<DocumentKind, JsonError> {
        let (mut is_known, mut has_error) = (false, false);
        while let Event::Key(key) = reader.read_event()? {
            let value = reader.read_event()?;
            match (key.decode(&mut self.name), value) {
                ("candidates", Event::ArrayStart) => {
                    is_known = true;
                    self.read_candidate_list(reader)?;
                }
                ("error", value) => {
                    has_error |= value != Event::Null;
                    reader.skip(value)?;
                }
                ("usageMetadata", value) => {
                    is_known = true;
                    reader.skip(value)?;
                }
                ("modelVersion" | "responseId" | "createTime", value) => reader.skip(value)?,
                (name, value) => {
                    is_known |= name == "promptFeedback";
                    let field = self.paths.add_field(None, key);
                    self.read_content(reader, value, field)?;
                }
            }
        }
        Ok(match is_known && !has_error {
            true => DocumentKind::Known,
            false => DocumentKind::Other,
        })
    }

    fn read_candidate_list(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), JsonError> {
        loop {
            // An index of 0 may be omitted, at any position of its candidate.
            let candidate = self.paths.add(None, Step::Element(0));
            match reader.read_event()? {
                Event::ArrayEnd => return Ok(()),
                Event::ObjectStart => self.read_candidate(reader, candidate)?,
                other => self.read_content(reader, other, candidate)?,
            }
        }
    }

    fn read_candidate(&mut self, reader: &mut Reader<'_, '_>, candidate: usize) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read_event()? {
            let start = reader.offset();
            let value = reader.read_event()?;
            match (key.decode(&mut self.name), value) {
                ("index", Event::Number(_)) => self.paths.set_index(candidate, value),
                ("content", Event::ObjectStart) => self.read_parts(reader, candidate)?,
                ("finishReason" | "safetyRatings", value) => reader.skip(value)?,
                ("logprobsResult", Event::ObjectStart | Event::ArrayStart) => {
                    reader.skip(value)?;
                    self.logprobs.push(start..reader.offset());
                }
                (_, value) => {
                    let field = self.paths.add_field(Some(candidate), key);
                    self.read_content(reader, value, field)?;
                }
            }
        }
        Ok(())
    }

    fn read_parts(&mut self, reader: &mut Reader<'_, '_>, candidate: usize) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read_event()? {
            let value = reader.read_event()?;
            match (key.decode(&mut self.name), value) {
                ("role", Event::String(_)) => {}
                ("parts", Event::ArrayStart) => loop {
                    match reader.read_event()? {
                        Event::ArrayEnd => break,
                        Event::ObjectStart => self.read_part(reader, candidate)?,
                        other => self.read_content(reader, other, candidate)?,
                    }
                },
                (_, value) => {
                    let field = self.paths.add_field(Some(candidate), key);
                    self.read_content(reader, value, field)?;
                }
            }
        }
        Ok(())
    }

    fn read_part(&mut self, reader: &mut Reader<'_, '_>, candidate: usize) -> Result<(), JsonError> {
        let text = self.paths.field_step("text");
        let text = self.paths.add(Some(candidate), text);
        while let Event::Key(key) = reader.read_event()? {
            let value = reader.read_event()?;
            match (key.decode(&mut self.name), value) {
                ("text", Event::String(string)) => self.push_fragment(string, text),
                // `thought` may come before or after the text.
                ("thought", Event::Bool(true)) => {
                    let thought = self.paths.field_step("thought");
                    self.paths.move_to(text, Some(candidate), thought);
                }
                ("thoughtSignature", Event::String(_)) => {}
                ("functionCall", Event::ObjectStart) => self.read_function_call(reader, candidate)?,
                (_, value) => {
                    let field = self.paths.add_field(Some(candidate), key);
                    self.read_content(reader, value, field)?;
                }
            }
        }
        Ok(())
    }

    fn read_function_call(&mut self, reader: &mut Reader<'_, '_>, candidate: usize) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read_event()? {
            let value = reader.read_event()?;
            match (key.decode(&mut self.name), value) {
                ("id", Event::String(_)) => {}
                ("partialArgs", Event::ArrayStart) => self.read_fragments(reader, candidate)?,
                // The arguments are the model's text, including their field names.
                (_, value) => {
                    let field = self.paths.add_field(Some(candidate), key);
                    self.read_json(reader, value, field)?;
                }
            }
        }
        Ok(())
    }

    fn read_fragments(&mut self, reader: &mut Reader<'_, '_>, candidate: usize) -> Result<(), JsonError> {
        let step = self.paths.field_step("partialArgs");
        let fragments = self.paths.add(Some(candidate), step);
        loop {
            match reader.read_event()? {
                Event::ArrayEnd => return Ok(()),
                Event::ObjectStart => {
                    while let Event::Key(key) = reader.read_event()? {
                        let value = reader.read_event()?;
                        match (key.decode(&mut self.name), value) {
                            ("stringValue", Event::String(string)) => self.push_fragment(string, fragments),
                            (_, value) => self.read_json(reader, value, fragments)?,
                        }
                    }
                }
                other => self.read_json(reader, other, fragments)?,
            }
        }
    }
}
