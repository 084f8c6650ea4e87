/// A location in the messages of a chat request.
#[derive(Debug, Clone, Copy)]
pub struct MessagePath {
    /// The index of the message.
    pub message: usize,
    part: Option<usize>,
}

impl MessagePath {
    /// Creates the location of a message.
    #[inline]
    pub fn message(message: usize) -> Self {
        MessagePath { message, part: None }
    }

    /// Returns the location of a part of its content.
    pub fn part(self, part: usize) -> Self {
        MessagePath {
            part: Some(part),
            ..self
        }
    }

    /// Returns the path of a field at this location, or of the location itself if the name is empty.
    pub fn field_path(self, name: &str) -> String {
        let separator = if name.is_empty() { "" } else { "." };
        let MessagePath { message, part } = self;
        match part {
            Some(part) => format!("messages[{message}].content[{part}]{separator}{name}"),
            None => format!("messages[{message}]{separator}{name}"),
        }
    }
}
