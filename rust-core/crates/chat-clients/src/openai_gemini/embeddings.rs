//! Translates between OpenAI's embeddings and the embeddings of Google's Gemini.
//!
//! A request of OpenAI's API becomes a `batchEmbedContents` request: one entry for each text, in
//! the same order. Texts sent as token numbers are not supported. A request of Google's API is
//! unchanged except for the model's name, which is in each of its entries as well as in the path.
//!
//! Sources: openai 3.54.0 (`resources/embeddings.py`, which requests base64 by default), google-genai 3.4.0 (`models.py`),
//! the discovery document of generativelanguage v1beta, revision 20260529.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;

use proofgate_dialect::field::{DroppedFields, Field};
use proofgate_dialect::json::{write_number, write_string};
use proofgate_dialect::{RequestContext, ResponseError, Target, UntranslatableRequest, Usage};

/// The maximum number of texts in a request, as in OpenAI's API; each becomes an entry that names the model.
pub const MAX_TEXTS: usize = 2048;

const TOO_MANY_TEXTS: &str = "It may have at most 2048 elements.";
const TOKENS_UNSUPPORTED: &str = "The provider accepts text only, not token ids.";

/// Appends the body of `batchEmbedContents` for a body of `POST /v1/embeddings`.
///
/// # Errors
/// Returns [`UntranslatableRequest`] if the body is not such a request, or asks for a feature that
/// Gemini does not support. Nothing is appended then.
pub fn translate_request(
    body: &[u8],
    target: &Target<'_>,
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    let body = Field::body(body)?;
    let mut asked = RequestContext::default();
    let mut losses = DroppedFields::new(target.untranslatable);
    let (mut input, mut dimensions, mut has_model) = (Vec::new(), None, false);
    for (name, value) in body.members()? {
        let field = body.member(&name, value);
        match &*name {
            "model" => {
                asked.model = field.text()?.into_owned();
                has_model = true;
            }
            "input" => input = texts(&field)?,
            "dimensions" => dimensions = Some(field.number()?),
            "encoding_format" => {
                asked.returns_base64 = match &*field.text()? {
                    "float" => false,
                    "base64" => true,
                    _ => return Err(field.error("It must be float or base64.")),
                }
            }
            "user" => losses.drop_listed("user", &field)?,
            _ => losses.drop_unknown(&field)?,
        }
    }
    if !has_model {
        return Err(UntranslatableRequest::new("model", "A model is required."));
    }
    if input.is_empty() {
        return Err(UntranslatableRequest::new("input", "A text is required."));
    }
    out.extend_from_slice(br#"{"requests":["#);
    for (position, text) in input.into_iter().enumerate() {
        out.extend_from_slice(if position == 0 {
            br#"{"model":"#
        } else {
            br#",{"model":"#
        });
        write_model(target.model, out);
        out.extend_from_slice(br#","content":{"parts":[{"text":"#);
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(b"}]}");
        if let Some(dimensions) = dimensions {
            out.extend_from_slice(br#","outputDimensionality":"#);
            out.extend_from_slice(dimensions.as_bytes());
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"]}");
    asked.dropped_fields = losses.into_names();
    Ok(asked)
}

/// Returns the texts of an input, as they appear in the body.
fn texts<'b>(input: &Field<'b, '_>) -> Result<Vec<&'b str>, UntranslatableRequest> {
    if input.is_string() {
        return Ok(vec![input.literal()?]);
    }
    let texts = input.elements()?;
    if texts.len() > MAX_TEXTS {
        return Err(input.error(TOO_MANY_TEXTS));
    }
    let texts = texts.into_iter().enumerate();
    texts
        .map(|(index, text)| {
            let text = input.element(index, text);
            match text.is_string() {
                true => text.literal(),
                false => Err(text.error(TOKENS_UNSUPPORTED)),
            }
        })
        .collect()
}

fn write_model(model: &str, out: &mut Vec<u8>) {
    write_string(out, &format!("models/{model}"));
}

/// An answer of `batchEmbedContents`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EmbeddingsResponse<'b> {
    #[serde(borrow)]
    embeddings: Vec<Embedding<'b>>,
    usage_metadata: Option<Counted>,
}

#[derive(Deserialize)]
struct Embedding<'b> {
    #[serde(borrow)]
    values: Vec<&'b RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counted {
    prompt_token_count: Option<u64>,
    total_token_count: Option<u64>,
}

/// Appends an answer of `batchEmbedContents` as the list of OpenAI's API. `prompt_tokens` is an estimate for the texts,
/// written if the provider reports no count.
///
/// # Errors
/// Returns [`ResponseError::Malformed`] if it is not such an answer. Nothing is appended then.
pub fn translate_response(
    body: &[u8],
    asked: &RequestContext,
    prompt_tokens: u64,
    out: &mut Vec<u8>,
) -> Result<Usage, ResponseError> {
    let start = out.len();
    let usage = write_embeddings(body, asked, prompt_tokens, out);
    if usage.is_err() {
        out.truncate(start);
    }
    usage
}

fn write_embeddings(
    body: &[u8],
    asked: &RequestContext,
    prompt_tokens: u64,
    out: &mut Vec<u8>,
) -> Result<Usage, ResponseError> {
    let answer: EmbeddingsResponse<'_> =
        serde_json::from_slice(body).map_err(|_| ResponseError::Malformed("it has no embeddings"))?;
    out.extend_from_slice(br#"{"object":"list","data":["#);
    for (embedding, index) in answer.embeddings.iter().zip(0..) {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(br#"{"object":"embedding","index":"#);
        write_number(out, index);
        out.extend_from_slice(br#","embedding":"#);
        match asked.returns_base64 {
            true => write_base64(&embedding.values, out)?,
            false => write_numbers(&embedding.values, out)?,
        }
        out.push(b'}');
    }
    out.extend_from_slice(br#"],"model":"#);
    write_string(out, &asked.model);
    let counted = answer
        .usage_metadata
        .and_then(|usage| usage.prompt_token_count.or(usage.total_token_count));
    let tokens = counted.unwrap_or(prompt_tokens);
    out.extend_from_slice(br#","usage":{"prompt_tokens":"#);
    write_number(out, tokens);
    out.extend_from_slice(br#","total_tokens":"#);
    write_number(out, tokens);
    out.extend_from_slice(b"}}");
    Ok(Usage {
        input: counted.unwrap_or(0),
        ..Usage::default()
    })
}

/// Writes the numbers with unchanged digits.
fn write_numbers(values: &[&RawValue], out: &mut Vec<u8>) -> Result<(), ResponseError> {
    out.push(b'[');
    for (position, value) in values.iter().enumerate() {
        parse_number(value)?;
        if position > 0 {
            out.push(b',');
        }
        out.extend_from_slice(value.get().as_bytes());
    }
    out.push(b']');
    Ok(())
}

/// Writes the numbers in base64 as OpenAI's clients read them: four bytes each (IEEE 754 binary32), little-endian.
fn write_base64(values: &[&RawValue], out: &mut Vec<u8>) -> Result<(), ResponseError> {
    let mut bytes = Vec::with_capacity(values.len().saturating_mul(4));
    for value in values {
        bytes.extend_from_slice(&parse_number(value)?.to_le_bytes());
    }
    out.push(b'"');
    out.extend_from_slice(BASE64_STANDARD.encode(bytes).as_bytes());
    out.push(b'"');
    Ok(())
}

fn parse_number(value: &RawValue) -> Result<f32, ResponseError> {
    let number = serde_json::from_str(value.get()).ok();
    number.ok_or(ResponseError::Malformed(
        "an embedding is not an array of numbers",
    ))
}

/// Appends a body of `batchEmbedContents` with the provider's model name in each of its entries. `asked_for` is the client's
/// model name, from the path.
///
/// # Errors
/// Returns [`UntranslatableRequest`] if the body has no entries, or an entry names another model
/// than the path. Nothing is appended then.
pub fn rename_model(
    body: &[u8],
    asked_for: &str,
    target: &Target<'_>,
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    let start = out.len();
    let written = write_renamed(&Field::body(body)?, asked_for, target, out);
    if written.is_err() {
        out.truncate(start);
    }
    written.map(|()| RequestContext::default())
}

fn write_renamed(
    body: &Field<'_, '_>,
    asked_for: &str,
    target: &Target<'_>,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let mut has_requests = false;
    out.push(b'{');
    for (position, (name, value)) in body.members()?.into_iter().enumerate() {
        let field = body.member(&name, value);
        write_name(position, &name, out);
        if name != "requests" {
            out.extend_from_slice(field.json().as_bytes());
            continue;
        }
        has_requests = true;
        let requests = field.elements()?;
        if requests.len() > MAX_TEXTS {
            return Err(field.error(TOO_MANY_TEXTS));
        }
        out.push(b'[');
        for (index, request) in requests.into_iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_request(&field.element(index, request), asked_for, target, out)?;
        }
        out.push(b']');
    }
    out.push(b'}');
    match has_requests {
        true => Ok(()),
        false => Err(UntranslatableRequest::new("requests", "A request is required.")),
    }
}

fn write_request(
    request: &Field<'_, '_>,
    asked_for: &str,
    target: &Target<'_>,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    out.extend_from_slice(br#"{"model":"#);
    write_model(target.model, out);
    for (name, value) in request.members()? {
        let field = request.member(&name, value);
        if name == "model" {
            let model = field.text()?;
            if model.strip_prefix("models/").unwrap_or(&model) != asked_for {
                return Err(field.error("The path names a different model."));
            }
            continue;
        }
        write_name(1, &name, out);
        out.extend_from_slice(field.json().as_bytes());
    }
    out.push(b'}');
    Ok(())
}

fn write_name(position: usize, name: &str, out: &mut Vec<u8>) {
    if position > 0 {
        out.push(b',');
    }
    write_string(out, name);
    out.push(b':');
}
