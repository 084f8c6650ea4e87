use crate::field::{Field, Losses};
use crate::openai_gemini::generation::Generation;
use crate::openai_gemini::messages::Conversation;
use crate::openai_gemini::tools::Tools;
use crate::{Asked, Target, Untranslatable};

/// Appends the body of `generateContent` that says what a body of `POST /v1/chat/completions` says.
///
/// `target.max_output_tokens` is not used: Gemini demands no maximum. Of `target.model` only the generation is read, which
/// decides how thinking is asked for.
///
/// # Errors
/// [`Untranslatable`] when the body is no chat request, or asks for what Gemini cannot do or, where `target.untranslatable` refuses
/// it, for what it has no word for. Nothing is appended then.
pub fn request(body: &[u8], target: &Target<'_>, out: &mut Vec<u8>) -> Result<Asked, Untranslatable> {
    let body = Field::body(body)?;
    let mut request = Request {
        conversation: Conversation::new(target.model),
        tools: Tools::default(),
        generation: Generation::new(target.model),
        asked: Asked::default(),
        has_model: false,
        losses: Losses::new(target.untranslatable),
    };
    for (name, value) in body.members()? {
        request.field(&name, &body.member(&name, value))?;
    }
    request.generation.finish()?;
    request.write(out)
}

struct Request<'b> {
    conversation: Conversation<'b>,
    tools: Tools,
    generation: Generation<'b>,
    asked: Asked,
    has_model: bool,
    losses: Losses,
}

impl<'b> Request<'b> {
    fn field(&mut self, name: &str, field: &Field<'b, '_>) -> Result<(), Untranslatable> {
        match name {
            "model" => {
                self.asked.model = field.text()?.into_owned();
                self.has_model = true;
                Ok(())
            }
            "messages" => self.conversation.read(field, &mut self.losses),
            "stream" => field.boolean().map(|stream| self.asked.stream = stream),
            "stream_options" => self.stream_options(field),
            "tools" => self.tools.read(field, &mut self.losses),
            "tool_choice" => self.tools.read_choice(field, &mut self.losses),
            "parallel_tool_calls" => {
                field.boolean()?;
                self.losses.lose("parallel_tool_calls", field)
            }
            _ => {
                if self.generation.read(name, field, &mut self.losses)? {
                    return Ok(());
                }
                self.losses.lose(name, field)
            }
        }
    }

    fn stream_options(&mut self, field: &Field<'b, '_>) -> Result<(), Untranslatable> {
        for (name, value) in field.members()? {
            let option = field.member(&name, value);
            match &*name {
                "include_usage" => self.asked.include_usage = option.boolean()?,
                "include_obfuscation" => {
                    option.boolean()?;
                    self.losses.lose("stream_options.include_obfuscation", &option)?;
                }
                _ => self.losses.unknown(&option)?,
            }
        }
        Ok(())
    }

    fn write(mut self, out: &mut Vec<u8>) -> Result<Asked, Untranslatable> {
        if !self.has_model {
            return Err(Untranslatable::new("model", "A model is required."));
        }
        self.conversation.end_turn();
        if self.conversation.contents.is_empty() {
            let why = "At least one message must be more than instructions, and not empty.";
            return Err(Untranslatable::new("messages", why));
        }
        out.push(b'{');
        if !self.conversation.instructions.is_empty() {
            out.extend_from_slice(br#""systemInstruction":{"parts":["#);
            out.extend_from_slice(&self.conversation.instructions);
            out.extend_from_slice(b"]},");
        }
        out.extend_from_slice(br#""contents":["#);
        out.extend_from_slice(&self.conversation.contents);
        out.push(b']');
        self.tools.write(out);
        self.generation.write(out);
        out.push(b'}');
        self.asked.dropped = self.losses.names();
        Ok(self.asked)
    }
}
