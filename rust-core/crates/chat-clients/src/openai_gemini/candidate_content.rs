use crate::openai_gemini::generate_content_response::{
    Candidate, FunctionCall, Logprobs, Part, Token, string_contents,
};
use proofgate_dialect::json::write_number;
use proofgate_dialect::{ResponseError, Usage};

/// OpenAI's value for a token of almost no probability.
const IMPOSSIBLE_LOGPROB: &str = "-9999.0";

/// The content of a candidate, in a whole answer or one event. Strings are the contents of JSON strings.
#[derive(Debug, Default)]
pub(super) struct CandidateContent<'b> {
    pub text: Vec<&'b str>,
    pub reasoning: Vec<&'b str>,
    pub calls: Vec<Call<'b>>,
    /// Inline images, and other data at URLs.
    pub images: Vec<Image<'b>>,
    /// The signature of a part that is not a call.
    pub signature: Option<&'b str>,
}

#[derive(Debug)]
pub(super) enum Image<'b> {
    /// The media type, and the data in base64.
    Data(&'b str, &'b str),
    Url(&'b str),
}

#[derive(Debug)]
pub(super) struct Call<'b> {
    id: Option<&'b str>,
    name: &'b str,
    /// A JSON object.
    arguments: &'b str,
    signature: Option<&'b str>,
}

/// Generates ids for calls without an id. The same call of the same answer always gets the same id.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallIds<'a> {
    /// The id of the answer.
    pub response_id: &'a str,
    pub choice: u32,
}

impl<'b> CandidateContent<'b> {
    /// Reads a candidate's parts. Parts of unknown kinds are skipped.
    ///
    /// # Errors
    /// Returns [`ResponseError::Malformed`] if a part does not match Gemini's description.
    pub fn read(candidate: &Candidate<'b>) -> Result<Self, ResponseError> {
        let mut said = CandidateContent::default();
        let parts = candidate
            .content
            .as_ref()
            .and_then(|content| content.parts.as_deref());
        for part in parts.unwrap_or_default() {
            let signature = part.thought_signature.map(string_contents).transpose()?;
            if part.thought != Some(true) {
                said.images.extend(Image::read(part)?);
            }
            if let Some(call) = &part.function_call {
                said.calls.push(Call::read(call, signature)?);
                continue;
            }
            let text = part
                .text
                .map(string_contents)
                .transpose()?
                .filter(|text| !text.is_empty());
            if part.thought == Some(true) {
                said.reasoning.extend(text);
            } else {
                said.text.extend(text);
            }
            said.signature = signature
                .filter(|signature| !signature.is_empty())
                .or(said.signature);
        }
        Ok(said)
    }

    /// Returns whether it has no content.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
            && self.reasoning.is_empty()
            && self.calls.is_empty()
            && self.images.is_empty()
            && self.signature.is_none()
    }

    /// Appends the optional members of a message or delta, each with a comma before it. Calls are numbered starting at
    /// `first`; a delta includes the number.
    pub fn write_optional_members(&self, ids: CallIds<'_>, first: u32, in_delta: bool, out: &mut Vec<u8>) {
        if !self.reasoning.is_empty() {
            out.extend_from_slice(br#","reasoning_content":"#);
            write_joined(&self.reasoning, out);
        }
        for (position, image) in self.images.iter().enumerate() {
            out.extend_from_slice(if position == 0 { br#","images":["# } else { b"," });
            image.write(out);
        }
        if !self.images.is_empty() {
            out.push(b']');
        }
        if !self.calls.is_empty() {
            out.extend_from_slice(br#","tool_calls":["#);
            let start = out.len();
            for (call, number) in self.calls.iter().zip(first..) {
                if out.len() > start {
                    out.push(b',');
                }
                call.write(ids, number, in_delta, out);
            }
            out.push(b']');
        }
        if let Some(signature) = self.signature {
            write_signature(signature, out);
        }
    }
}

impl<'b> Image<'b> {
    /// Returns the image in a part, if it has one. Other kinds of data are sent only on request.
    fn read(part: &Part<'b>) -> Result<Option<Self>, ResponseError> {
        if let Some(data) = &part.inline_data {
            let media_type = data
                .mime_type
                .map(string_contents)
                .transpose()?
                .unwrap_or_default();
            let data = data.data.map(string_contents).transpose()?.unwrap_or_default();
            let is_image = media_type.starts_with("image/") && !data.is_empty();
            return Ok(is_image.then_some(Image::Data(media_type, data)));
        }
        let Some(file) = &part.file_data else {
            return Ok(None);
        };
        let media_type = file
            .mime_type
            .map(string_contents)
            .transpose()?
            .unwrap_or("image/");
        let address = file
            .file_uri
            .map(string_contents)
            .transpose()?
            .unwrap_or_default();
        Ok((media_type.starts_with("image/") && !address.is_empty()).then_some(Image::Url(address)))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"type":"image_url","image_url":{"url":""#);
        match self {
            Image::Data(media_type, data) => {
                for piece in ["data:", media_type, ";base64,", data] {
                    out.extend_from_slice(piece.as_bytes());
                }
            }
            Image::Url(address) => out.extend_from_slice(address.as_bytes()),
        }
        out.extend_from_slice(br#""}}"#);
    }
}

impl<'b> Call<'b> {
    fn read(call: &FunctionCall<'b>, signature: Option<&'b str>) -> Result<Self, ResponseError> {
        if call.partial_args.is_some() || call.will_continue == Some(true) {
            return Err(ResponseError::Malformed(
                "a function call is split over several parts",
            ));
        }
        let name = call
            .name
            .ok_or(ResponseError::Malformed("a function call has no name"))?;
        let arguments = call.args.map_or("{}", |arguments| arguments.get());
        if !arguments.starts_with('{') {
            return Err(ResponseError::Malformed(
                "the arguments of a function call are not an object",
            ));
        }
        Ok(Call {
            id: call
                .id
                .map(string_contents)
                .transpose()?
                .filter(|id| !id.is_empty()),
            name: string_contents(name)?,
            arguments,
            signature,
        })
    }

    fn write(&self, ids: CallIds<'_>, number: u32, in_delta: bool, out: &mut Vec<u8>) {
        out.push(b'{');
        if in_delta {
            out.extend_from_slice(br#""index":"#);
            write_number(out, u64::from(number));
            out.push(b',');
        }
        out.extend_from_slice(br#""id":""#);
        match self.id {
            Some(id) => out.extend_from_slice(id.as_bytes()),
            None => ids.write(number, out),
        }
        out.extend_from_slice(br#"","type":"function","function":{"name":""#);
        out.extend_from_slice(self.name.as_bytes());
        out.extend_from_slice(br#"","arguments":""#);
        write_in_string(self.arguments, out);
        out.extend_from_slice(br#""}"#);
        if let Some(signature) = self.signature {
            write_signature(signature, out);
        }
        out.push(b'}');
    }
}

impl CallIds<'_> {
    fn write(&self, number: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(b"call_");
        out.extend_from_slice(self.response_id.as_bytes());
        out.push(b'_');
        write_number(out, u64::from(self.choice));
        out.push(b'_');
        write_number(out, u64::from(number));
    }
}

fn write_signature(signature: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(br#","extra_content":{"google":{"thought_signature":""#);
    out.extend_from_slice(signature.as_bytes());
    out.extend_from_slice(br#""}}"#);
}

/// Appends OpenAI's `logprobs`. Gemini does not report the bytes of a token.
pub(super) fn write_logprobs(logprobs: Option<&Logprobs<'_>>, out: &mut Vec<u8>) {
    let chosen = logprobs.and_then(|logprobs| logprobs.chosen_candidates.as_deref());
    let Some(chosen) = chosen else {
        out.extend_from_slice(b"null");
        return;
    };
    let mut alternatives = logprobs
        .and_then(|logprobs| logprobs.top_candidates.as_deref())
        .unwrap_or_default()
        .iter();
    out.extend_from_slice(br#"{"content":["#);
    for (index, token) in chosen.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_token(token, out);
        out.extend_from_slice(br#","top_logprobs":["#);
        let tokens = alternatives
            .next()
            .and_then(|at_this_place| at_this_place.candidates.as_deref());
        for (index, token) in tokens.unwrap_or_default().iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_token(token, out);
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
    }
    out.extend_from_slice(br#"],"refusal":null}"#);
}

/// Appends a token without its closing brace.
fn write_token(token: &Token<'_>, out: &mut Vec<u8>) {
    let text = token
        .token
        .and_then(|text| string_contents(text).ok())
        .unwrap_or_default();
    out.extend_from_slice(br#"{"token":""#);
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(br#"","logprob":"#);
    // Protobuf's JSON omits zeros, and writes infinity as a string.
    let probability = token.log_probability.map_or("0", |number| number.get());
    let is_number = probability.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    out.extend_from_slice(
        if is_number {
            probability
        } else {
            IMPOSSIBLE_LOGPROB
        }
        .as_bytes(),
    );
    out.extend_from_slice(br#","bytes":null"#);
}

/// Appends OpenAI's `usage`.
pub(super) fn write_usage(usage: &Usage, out: &mut Vec<u8>) {
    for (name, tokens) in [
        (r#"{"prompt_tokens":"#, usage.input),
        (r#","completion_tokens":"#, usage.output),
        (r#","total_tokens":"#, usage.input.saturating_add(usage.output)),
        (r#","prompt_tokens_details":{"cached_tokens":"#, usage.cache_read),
        (
            r#"},"completion_tokens_details":{"reasoning_tokens":"#,
            usage.reasoning,
        ),
    ] {
        out.extend_from_slice(name.as_bytes());
        write_number(out, tokens);
    }
    out.extend_from_slice(b"}}");
}

/// Appends the pieces of a string's contents as one string.
pub(super) fn write_joined(pieces: &[&str], out: &mut Vec<u8>) {
    out.push(b'"');
    for piece in pieces {
        out.extend_from_slice(piece.as_bytes());
    }
    out.push(b'"');
}

/// Appends JSON as the contents of a string, without white space between tokens: Gemini indents whole answers.
fn write_in_string(json: &str, out: &mut Vec<u8>) {
    let (mut in_string, mut escaped) = (false, false);
    for &byte in json.as_bytes() {
        match byte {
            b'"' => {
                in_string ^= !escaped;
                out.extend_from_slice(br#"\""#);
            }
            b'\\' => out.extend_from_slice(br"\\"),
            b' ' | b'\n' | b'\r' | b'\t' if !in_string => {}
            _ => out.push(byte),
        }
        escaped = byte == b'\\' && !escaped;
    }
}
