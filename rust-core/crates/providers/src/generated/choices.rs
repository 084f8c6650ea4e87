//! Chat completions and text completions.
//!
//! Generated are the strings below `choices[*].message`, `choices[*].delta` and `choices[*].text`, except values of `role`,
//! `type` and `id` of the message itself and of elements of arrays, such as content parts and tool calls.

use proofgate_json::{Event, JsonError, Reader};

use super::paths::Step;
use super::{GeneratedText, Shape};

impl GeneratedText {
    pub(super) fn read_completion(&mut self, reader: &mut Reader<'_, '_>) -> Result<Shape, JsonError> {
        let mut shape = Shape::Other;
        while let Event::Key(key) = reader.read()? {
            let choices = key.decoded(&mut self.name) == "choices";
            match reader.read()? {
                Event::ArrayStart if choices => {
                    shape = Shape::Known;
                    self.choices(reader)?;
                }
                value => reader.skip(value)?,
            }
        }
        Ok(shape)
    }

    fn choices(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), JsonError> {
        let mut position = 0;
        loop {
            match reader.read()? {
                Event::ArrayEnd => return Ok(()),
                Event::ObjectStart => self.choice(reader, position)?,
                other => reader.skip(other)?,
            }
            position += 1;
        }
    }

    fn choice(&mut self, reader: &mut Reader<'_, '_>, position: u64) -> Result<(), JsonError> {
        let choice = self.paths.add(None, Step::Element(position));
        while let Event::Key(key) = reader.read()? {
            let start = reader.offset();
            let value = reader.read()?;
            match key.decoded(&mut self.name) {
                "message" | "delta" => self.generated(reader, value, choice)?,
                "text" => {
                    let field = self.paths.field(Some(choice), key);
                    self.generated(reader, value, field)?;
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

    /// Takes the strings of the value that `event` begins. The depth limit of the reader bounds the recursion.
    fn generated(
        &mut self,
        reader: &mut Reader<'_, '_>,
        event: Event<'_>,
        node: usize,
    ) -> Result<(), JsonError> {
        match event {
            Event::String(string) => self.piece(string, node),
            Event::ObjectStart => self.message(reader, node, false)?,
            Event::ArrayStart => {
                let mut position = 0;
                loop {
                    match reader.read()? {
                        Event::ArrayEnd => break,
                        Event::ObjectStart => {
                            let element = self.paths.add(Some(node), Step::Element(position));
                            self.message(reader, element, true)?;
                        }
                        event => {
                            let element = self.paths.add(Some(node), Step::Element(position));
                            self.generated(reader, event, element)?;
                        }
                    }
                    position += 1;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn message(&mut self, reader: &mut Reader<'_, '_>, node: usize, element: bool) -> Result<(), JsonError> {
        let has_api_fields = element || self.paths.is_root(node);
        while let Event::Key(key) = reader.read()? {
            let value = reader.read()?;
            match (key.decoded(&mut self.name), value) {
                ("role" | "type" | "id", Event::String(_)) if has_api_fields => {}
                ("index", Event::Number(_)) if element => self.paths.set_index(node, value),
                (_, Event::String(_) | Event::ObjectStart | Event::ArrayStart) => {
                    let field = self.paths.field(Some(node), key);
                    self.generated(reader, value, field)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}
