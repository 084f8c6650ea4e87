//! Images and speech, whole or as events.
//!
//! The generated text of an image is its strings except the encoded data: the prompt as rewritten
//! by the model, and the image's address. Speech has no generated text. A document that also has an
//! error is of another kind, and is read whole.

use proofgate_json::{Event, JsonError, Reader};

use super::paths::Step;
use super::{DocumentKind, GeneratedText};

impl GeneratedText {
    pub(super) fn read_images(&mut self, reader: &mut Reader<'_, '_>) -> Result<DocumentKind, JsonError> {
        let (mut is_known, mut has_error) = (false, false);
        while let Event::Key(key) = reader.read_event()? {
            match (key.decode(&mut self.name), reader.read_event()?) {
                ("data", Event::ArrayStart) => {
                    is_known = true;
                    self.read_image_list(reader)?;
                }
                ("type", Event::String(kind)) => {
                    is_known |= kind.decode(&mut self.name).starts_with("image_generation.");
                }
                ("b64_json", Event::String(_)) => {}
                ("error", value) => {
                    has_error |= value != Event::Null;
                    reader.skip(value)?;
                }
                (_, value) => {
                    let field = self.paths.add_field(None, key);
                    self.read_content(reader, value, field)?;
                }
            }
        }
        Ok(document_shape(is_known, has_error))
    }

    /// Records the strings of each image.
    fn read_image_list(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), JsonError> {
        for position in 0.. {
            let image = self.paths.add(None, Step::Element(position));
            match reader.read_event()? {
                Event::ArrayEnd => break,
                Event::ObjectStart => {
                    while let Event::Key(key) = reader.read_event()? {
                        match (key.decode(&mut self.name), reader.read_event()?) {
                            ("b64_json", Event::String(_)) => {}
                            (_, value) => {
                                let field = self.paths.add_field(Some(image), key);
                                self.read_content(reader, value, field)?;
                            }
                        }
                    }
                }
                other => self.read_content(reader, other, image)?,
            }
        }
        Ok(())
    }

    /// Reads an event of a stream of speech.
    pub(super) fn read_speech(&mut self, reader: &mut Reader<'_, '_>) -> Result<DocumentKind, JsonError> {
        let (mut is_known, mut has_error) = (false, false);
        while let Event::Key(key) = reader.read_event()? {
            match (key.decode(&mut self.name), reader.read_event()?) {
                ("type", Event::String(kind)) => {
                    is_known |= kind.decode(&mut self.name).starts_with("speech.audio.");
                }
                ("audio", Event::String(_)) => {}
                ("error", value) => {
                    has_error |= value != Event::Null;
                    reader.skip(value)?;
                }
                (_, value) => {
                    let field = self.paths.add_field(None, key);
                    self.read_content(reader, value, field)?;
                }
            }
        }
        Ok(document_shape(is_known, has_error))
    }
}

fn document_shape(is_known: bool, has_error: bool) -> DocumentKind {
    match is_known && !has_error {
        true => DocumentKind::Known,
        false => DocumentKind::Other,
    }
}
