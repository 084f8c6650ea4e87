use serde::Deserialize;
use serde_json::value::RawValue;

use crate::anthropic_openai::chat::{Arguments, ToolCall};
use crate::custom_tools::custom_input;
use crate::edits::Edits;
use proofgate_dialect::json::{write_all, write_member, write_string};
use proofgate_dialect::{RequestContext, ResponseError};

#[derive(Deserialize)]
struct Answer<'b> {
    #[serde(borrow)]
    choices: Vec<Choice<'b>>,
}

#[derive(Deserialize)]
struct Choice<'b> {
    #[serde(borrow)]
    message: Message<'b>,
}

#[derive(Deserialize)]
struct Message<'b> {
    #[serde(borrow)]
    tool_calls: Option<Vec<&'b RawValue>>,
}

const NOT_A_COMPLETION: ResponseError = ResponseError::Malformed("it is not a chat completion");

/// Appends a whole chat completion in which calls of functions that replace custom tools become calls of these tools.
///
/// # Errors
/// Returns [`ResponseError::Malformed`] if it is not a chat completion. Nothing is appended then.
pub fn translate_response(
    body: &[u8],
    asked: &RequestContext,
    out: &mut Vec<u8>,
) -> Result<(), ResponseError> {
    let text = std::str::from_utf8(body).map_err(|_| NOT_A_COMPLETION)?;
    let answer: Answer<'_> = serde_json::from_str(text).map_err(|_| NOT_A_COMPLETION)?;
    let mut edits = Edits::default();
    for raw in answer
        .choices
        .iter()
        .flat_map(|choice| choice.message.tool_calls.iter().flatten())
    {
        let call: ToolCall<'_> = serde_json::from_str(raw.get()).map_err(|_| NOT_A_COMPLETION)?;
        if is_custom_call(&call, asked) {
            edits.replace(text, raw, to_custom_call(&call)?);
        }
    }
    let start = out.len();
    edits
        .write(text, out)
        .ok_or(NOT_A_COMPLETION)
        .inspect_err(|_| out.truncate(start))
}

/// Returns whether a call is of a function that replaces a custom tool.
pub(super) fn is_custom_call(call: &ToolCall<'_>, asked: &RequestContext) -> bool {
    call.name().is_some_and(|name| {
        let name: Result<String, _> = serde_json::from_str(&["\"", name, "\""].concat());
        name.is_ok_and(|name| asked.custom_tools.contains(&name))
    })
}

fn to_custom_call(call: &ToolCall<'_>) -> Result<String, ResponseError> {
    let mut out = b"{\"id\":\"".to_vec();
    let (id, name) = (call.id().unwrap_or_default(), call.name().unwrap_or_default());
    write_all(
        &mut out,
        &[
            id,
            "\",\"type\":\"custom\",\"custom\":{\"name\":\"",
            name,
            "\",\"input\":",
        ],
    );
    write_string(&mut out, &custom_input(&arguments(call)?));
    out.push(b'}');
    write_member(&mut out, "extra_content", call.extra_content.map(RawValue::get));
    out.push(b'}');
    Ok(String::from_utf8(out).unwrap_or_default())
}

/// Returns the arguments as text; absent ones are an empty object.
fn arguments(call: &ToolCall<'_>) -> Result<String, ResponseError> {
    match call.arguments()? {
        Arguments::None => Ok("{}".to_owned()),
        Arguments::Object(object) => Ok(object.to_owned()),
        Arguments::String(inside) => serde_json::from_str(&["\"", inside, "\""].concat())
            .map_err(|_| ResponseError::Malformed("the arguments of a tool call are invalid")),
    }
}
