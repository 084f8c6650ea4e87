use crate::Untranslatable;
use crate::constraints::{Constraint, has, levels, nearest};
use crate::field::{Field, Losses};

/// How many texts may stop an answer.
const MOST_STOPS: usize = 5;

/// The `generationConfig` of a request.
#[derive(Debug)]
pub(super) struct Generation<'b> {
    /// Members that are written already, each with a comma behind it.
    members: Vec<u8>,
    /// `max_tokens`, and `max_completion_tokens`, which has replaced it.
    max_tokens: [Option<&'b str>; 2],
    /// Whether the model takes a level of thinking. Gemini 2 takes a number of tokens instead.
    thinks_by_level: bool,
    /// The levels that it is known to take.
    levels: Option<&'static [&'static str]>,
    has_penalties: bool,
    /// The members of `thinkingConfig` that stand for `reasoning_effort`, and those that the client named itself.
    effort: Option<Effort>,
    thinking: Vec<u8>,
    thinking_has_measure: bool,
}

#[derive(Debug)]
enum Effort {
    Level(&'static str),
    Budget(&'static str),
}

impl<'b> Generation<'b> {
    /// Nothing but the defaults of a model.
    pub fn new(model: &str) -> Self {
        Generation {
            members: Vec::new(),
            max_tokens: [None; 2],
            thinks_by_level: !has(model, Constraint::ThinkingBudget),
            levels: levels(model),
            has_penalties: !has(model, Constraint::NoPenalties),
            effort: None,
            thinking: Vec::new(),
            thinking_has_measure: false,
        }
    }

    /// Takes a field of the body if it is one of these; whether it is.
    pub fn read(
        &mut self,
        name: &str,
        field: &Field<'b, '_>,
        losses: &mut Losses,
    ) -> Result<bool, Untranslatable> {
        match name {
            "max_tokens" => self.max_tokens[0] = Some(field.number()?),
            "max_completion_tokens" => self.max_tokens[1] = Some(field.number()?),
            "temperature" => self.member("temperature", field.number()?),
            "top_p" => self.member("topP", field.number()?),
            "top_k" => self.member("topK", field.number()?),
            "modalities" => self.modalities(field, losses)?,
            "presence_penalty" | "frequency_penalty" if !self.has_penalties => {
                field.number()?;
                losses.lose(name, field)?;
            }
            "presence_penalty" => self.member("presencePenalty", field.number()?),
            "frequency_penalty" => self.member("frequencyPenalty", field.number()?),
            "top_logprobs" => self.member("logprobs", field.number()?),
            "logprobs" => {
                if field.boolean()? {
                    self.member("responseLogprobs", "true");
                }
            }
            // Gemini's is of 32 bits.
            "seed" => match field.number()?.parse::<i32>() {
                Ok(_) => self.member("seed", field.json()),
                Err(_) => losses.lose("seed", field)?,
            },
            "n" => {
                if field.number()? != "1" {
                    self.member("candidateCount", field.json());
                }
            }
            "stop" => self.stop(field)?,
            "response_format" => self.response_format(field, losses)?,
            "reasoning_effort" => self.reasoning_effort(field, losses)?,
            "extra_body" => self.extra_body(field, losses)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn member(&mut self, name: &str, json: &str) {
        write_member(&mut self.members, name, json);
    }

    /// Text is what a model answers with anyway; one that makes images may be asked for them, too.
    fn modalities(&mut self, field: &Field<'b, '_>, losses: &mut Losses) -> Result<(), Untranslatable> {
        let elements = field.elements()?;
        if elements.iter().all(|modality| modality.get() == r#""text""#) {
            return Ok(());
        }
        let mut modalities = Vec::new();
        for modality in elements {
            modalities.push(match modality.get() {
                r#""text""# => r#""TEXT""#,
                r#""image""# => r#""IMAGE""#,
                _ => return losses.lose("modalities", field),
            });
        }
        self.member("responseModalities", &["[", &modalities.join(","), "]"].concat());
        Ok(())
    }

    fn stop(&mut self, field: &Field<'b, '_>) -> Result<(), Untranslatable> {
        if field.is_string() {
            self.member("stopSequences", &["[", field.json(), "]"].concat());
            return Ok(());
        }
        let texts = field.elements()?;
        if texts.len() > MOST_STOPS {
            return Err(field.refuse("The provider takes at most five."));
        }
        for (index, text) in texts.into_iter().enumerate() {
            field.element(index, text).literal()?;
        }
        self.member("stopSequences", field.json());
        Ok(())
    }

    fn response_format(&mut self, field: &Field<'b, '_>, losses: &mut Losses) -> Result<(), Untranslatable> {
        let (mut kind, mut schema) = (None, None);
        for (name, value) in field.members()? {
            let member = field.member(&name, value);
            match &*name {
                "type" => kind = Some(member.text()?),
                "json_schema" => schema = json_schema(&member, losses)?,
                _ => losses.unknown(&member)?,
            }
        }
        match kind.as_deref() {
            Some("text") => return Ok(()),
            Some("json_object") => {}
            Some("json_schema") => {
                if let Some(schema) = schema {
                    self.member("responseJsonSchema", schema);
                }
            }
            _ => return Err(field.refuse("Its type must be text, json_object or json_schema.")),
        }
        self.member("responseMimeType", r#""application/json""#);
        Ok(())
    }

    /// The levels and numbers of tokens are those of Google's endpoint for OpenAI's clients (ai.google.dev,
    /// "OpenAI compatibility").
    fn reasoning_effort(&mut self, field: &Field<'b, '_>, losses: &mut Losses) -> Result<(), Untranslatable> {
        let asked = field.text()?;
        let said = self.levels.map_or(&*asked, |levels| nearest(levels, &asked));
        let budget = match &*asked {
            "none" => "0",
            "minimal" | "low" => "1024",
            "medium" => "8192",
            "high" | "xhigh" | "max" => "24576",
            _ => return Err(field.refuse("It must be none, minimal, low, medium, high, xhigh or max.")),
        };
        self.effort = match &*asked {
            _ if !self.thinks_by_level => Some(Effort::Budget(budget)),
            // These models cannot be kept from thinking.
            "none" => return losses.lose("reasoning_effort", field),
            _ => {
                if said != asked {
                    losses.note("reasoning_effort", field);
                }
                Some(Effort::Level(match said {
                    "minimal" => "MINIMAL",
                    "low" => "LOW",
                    "medium" => "MEDIUM",
                    "high" => "HIGH",
                    _ => "XHIGH",
                }))
            }
        };
        Ok(())
    }

    /// What Google's endpoint for OpenAI's clients takes beside their own fields.
    fn extra_body(&mut self, field: &Field<'b, '_>, losses: &mut Losses) -> Result<(), Untranslatable> {
        for (name, value) in field.members()? {
            let google = field.member(&name, value);
            if name != "google" {
                losses.unknown(&google)?;
                continue;
            }
            for (name, value) in google.members()? {
                let member = google.member(&name, value);
                match &*name {
                    "thinking_config" => self.thinking_config(&member, losses)?,
                    "cached_content" => {
                        return Err(member.refuse("What the provider keeps is not within reach."));
                    }
                    _ => losses.unknown(&member)?,
                }
            }
        }
        Ok(())
    }

    fn thinking_config(&mut self, field: &Field<'b, '_>, losses: &mut Losses) -> Result<(), Untranslatable> {
        for (name, value) in field.members()? {
            let member = field.member(&name, value);
            let known = match &*name {
                "include_thoughts" => {
                    member.boolean()?;
                    "includeThoughts"
                }
                "thinking_budget" => {
                    member.number()?;
                    self.thinking_has_measure = true;
                    "thinkingBudget"
                }
                "thinking_level" => {
                    member.literal()?;
                    self.thinking_has_measure = true;
                    "thinkingLevel"
                }
                _ => {
                    losses.unknown(&member)?;
                    continue;
                }
            };
            write_member(&mut self.thinking, known, member.json());
        }
        Ok(())
    }

    /// Takes what depends on more than one field.
    ///
    /// # Errors
    /// [`Untranslatable`] when they contradict one another.
    pub fn finish(&mut self) -> Result<(), Untranslatable> {
        let [old, new] = self.max_tokens;
        if let Some(most) = new.or(old) {
            self.member("maxOutputTokens", most);
        }
        match self.effort {
            Some(_) if self.thinking_has_measure => {
                let why = "It and `extra_body.google.thinking_config` each say how much to think.";
                return Err(Untranslatable::new("reasoning_effort", why));
            }
            Some(Effort::Level(level)) => {
                write_member(&mut self.thinking, "thinkingLevel", &["\"", level, "\""].concat());
            }
            Some(Effort::Budget(tokens)) => write_member(&mut self.thinking, "thinkingBudget", tokens),
            None => {}
        }
        if self.thinking.pop().is_some() {
            self.members.extend_from_slice(br#""thinkingConfig":{"#);
            self.members.append(&mut self.thinking);
            self.members.extend_from_slice(b"},");
        }
        Ok(())
    }

    /// Appends the member of the body, if there is one.
    pub fn write(&self, out: &mut Vec<u8>) {
        if let Some((_, members)) = self.members.split_last() {
            out.extend_from_slice(br#","generationConfig":{"#);
            out.extend_from_slice(members);
            out.push(b'}');
        }
    }
}

fn write_member(out: &mut Vec<u8>, name: &str, json: &str) {
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    out.extend_from_slice(json.as_bytes());
    out.push(b',');
}

/// The schema of `response_format.json_schema`. Its name is a label and says nothing to the model; Gemini holds to a schema
/// whether or not that is strict.
fn json_schema<'b>(field: &Field<'b, '_>, losses: &mut Losses) -> Result<Option<&'b str>, Untranslatable> {
    let mut schema = None;
    for (name, value) in field.members()? {
        let member = field.member(&name, value);
        match &*name {
            "schema" if member.is_object() => schema = Some(member.json()),
            "schema" => return Err(member.refuse("It must be an object.")),
            "name" => {
                member.literal()?;
            }
            "strict" => {
                member.boolean()?;
            }
            "description" => losses.lose("response_format.json_schema.description", &member)?,
            _ => losses.unknown(&member)?,
        }
    }
    Ok(schema)
}
