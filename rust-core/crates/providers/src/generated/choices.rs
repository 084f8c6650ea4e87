//! Chat completions and text completions.
//!
//! The generated text is the strings below `choices[*].message`, `choices[*].delta` and `choices[*].text`, except
//! values of `role`, `type` and `id` of the message itself and of elements of arrays, such as content parts and tool
//! calls.

use proofgate_json::{Event, JsonError, Reader};

use super::paths::Step;
use super::{DocumentKind, GeneratedText};

impl GeneratedText {
    pub(super) fn read_completion(&mut self, reader: &mut Reader<'_, '_>) -> Result<DocumentKind, JsonError> {
        let mut shape = DocumentKind::Other;
        while let Event::Key(key) = reader.read_event()? {
            let choices = key.decode(&mut self.name) == "choices";
            match reader.read_event()? {
                Event::ArrayStart if choices => {
                    shape = DocumentKind::Known;
                    self.read_choices(reader)?;
                }
                value => reader.skip(value)?,
            }
        }
        Ok(shape)
    }

    fn read_choices(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), JsonError> {
        let mut position = 0;
        loop {
            match reader.read_event()? {
                Event::ArrayEnd => return Ok(()),
                Event::ObjectStart => self.read_choice(reader, position)?,
                other => reader.skip(other)?,
            }
            position += 1;
        }
    }

    fn read_choice(&mut self, reader: &mut Reader<'_, '_>, position: u64) -> Result<(), JsonError> {
        let choice = self.paths.add(None, Step::Element(position));
        while let Event::Key(key) = reader.read_event()? {
            let start = reader.offset();
            let value = reader.read_event()?;
            match key.decode(&mut self.name) {
                "message" | "delta" => self.read_value(reader, value, choice)?,
                "text" => {
                    let field = self.paths.add_field(Some(choice), key);
                    self.read_value(reader, value, field)?;
                }
                "index" => self.paths.set_index(choice, value),
                "finish_reason" if matches!(value, Event::String(_)) => self.finished.push(choice),
                "logprobs" if value != Event::Null => {
                    reader.skip(value)?;
                    self.logprobs.push(start..reader.offset());
                }
                _ => reader.skip(value)?,
            }
        }
        Ok(())
    }

    /// Records the strings of the value that starts with `event`. The depth limit of the reader bounds the recursion.
    fn read_value(
        &mut self,
        reader: &mut Reader<'_, '_>,
        event: Event<'_>,
        node: usize,
    ) -> Result<(), JsonError> {
        match event {
            Event::String(string) => self.push_fragment(string, node),
            Event::ObjectStart => self.read_choice_message(reader, node, false)?,
            Event::ArrayStart => {
                let mut position = 0;
                loop {
                    match reader.read_event()? {
                        Event::ArrayEnd => break,
                        Event::ObjectStart => {
                            let element = self.paths.add(Some(node), Step::Element(position));
                            self.read_choice_message(reader, element, true)?;
                        }
                        event => {
                            let element = self.paths.add(Some(node), Step::Element(position));
                            self.read_value(reader, event, element)?;
                        }
                    }
                    position += 1;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn read_choice_message(
        &mut self,
        reader: &mut Reader<'_, '_>,
        node: usize,
        element: bool,
    ) -> Result<(), JsonError> {
        let has_api_fields = element || self.paths.is_root(node);
        while let Event::Key(key) = reader.read_event()? {
            let value = reader.read_event()?;
            match (key.decode(&mut self.name), value) {
                ("role" | "type" | "id", Event::String(_)) if has_api_fields => {}
                ("index", Event::Number(_)) if element => self.paths.set_index(node, value),
                (_, Event::String(_) | Event::ObjectStart | Event::ArrayStart) => {
                    let field = self.paths.add_field(Some(node), key);
                    self.read_value(reader, value, field)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}
