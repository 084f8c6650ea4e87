use crate::openai_gemini::field::{Field, Losses};
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
        conversation: Conversation::default(),
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
                if field.boolean()? {
                    return Ok(());
                }
                self.losses.lose("parallel_tool_calls", field)
            }
            "functions" | "function_call" => Err(field.refuse("Send the functions as `tools`.")),
            "web_search_options" => {
                Err(field.refuse("The provider's search of the web is not within reach."))
            }
            "audio" => Err(field.refuse("The provider cannot answer with audio here.")),
            "moderation" => Err(field.refuse("The provider has no moderation of the client's choice.")),
            "modalities" => modalities(field),
            _ => {
                if self.generation.read(name, field, &mut self.losses)? {
                    return Ok(());
                }
                self.without_counterpart(name, field)
            }
        }
    }

    fn stream_options(&mut self, field: &Field<'b, '_>) -> Result<(), Untranslatable> {
        for (name, value) in field.members()? {
            let option = field.member(&name, value);
            match &*name {
                "include_usage" => self.asked.include_usage = option.boolean()?,
                // No answer is padded here, and a client cannot tell.
                "include_obfuscation" => {
                    option.boolean()?;
                }
                _ => self.losses.unknown(&option)?,
            }
        }
        Ok(())
    }

    /// Takes preferences, unless they only say what is so anyway.
    fn without_counterpart(&mut self, name: &str, field: &Field<'b, '_>) -> Result<(), Untranslatable> {
        let lost = match name {
            "logit_bias" | "metadata" if field.json() == "{}" => return Ok(()),
            "store" if field.json() == "false" => return Ok(()),
            "service_tier" if matches!(field.json(), r#""auto""# | r#""default""#) => return Ok(()),
            "logit_bias" => "logit_bias",
            "metadata" => "metadata",
            "store" => "store",
            "service_tier" => "service_tier",
            "user" => "user",
            "safety_identifier" => "safety_identifier",
            "prompt_cache_key" => "prompt_cache_key",
            "prompt_cache_options" => "prompt_cache_options",
            "prompt_cache_retention" => "prompt_cache_retention",
            "prediction" => "prediction",
            "verbosity" => "verbosity",
            _ => return self.losses.unknown(field),
        };
        self.losses.lose(lost, field)
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

fn modalities(field: &Field<'_, '_>) -> Result<(), Untranslatable> {
    for (index, modality) in field.elements()?.into_iter().enumerate() {
        if modality.get() != r#""text""# {
            let modality = field.element(index, modality);
            return Err(modality.refuse("The provider can answer with text only here."));
        }
    }
    Ok(())
}
