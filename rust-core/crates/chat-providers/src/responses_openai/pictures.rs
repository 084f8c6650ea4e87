//! Pictures that a model made: OpenAI tells them as calls of a tool of its own, with their data as the result.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::responses_openai::calls::put_string;
use crate::responses_openai::events::{Items, Of};
use crate::responses_openai::tools::{inside, put};
use proofgate_dialect::AnswerError;

#[derive(Deserialize)]
struct Picture<'p> {
    #[serde(borrow)]
    image_url: Option<Address<'p>>,
}

#[derive(Deserialize)]
struct Address<'p> {
    #[serde(borrow)]
    url: &'p RawValue,
}

/// The format and the data of those in a message's `images` that hold their data, as insides of strings; no client looks for
/// an address.
pub(super) fn read(images: &RawValue) -> Vec<(&str, &str)> {
    let images: Vec<Picture<'_>> = serde_json::from_str(images.get()).unwrap_or_default();
    let urls = images.into_iter().filter_map(|picture| picture.image_url);
    urls.filter_map(|address| data_of(inside(address.url.get())))
        .collect()
}

fn data_of(url: &str) -> Option<(&str, &str)> {
    let (kind, data) = url.strip_prefix("data:image/")?.split_once(";base64,")?;
    let is_plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+/=.-".contains(&byte))
    };
    (is_plain(kind) && is_plain(data)).then_some((kind, data))
}

/// Tells one as an item.
pub(super) fn tell(
    (format, data): (&str, &str),
    items: &mut Items,
    out: &mut Vec<u8>,
) -> Result<(), AnswerError> {
    items.keep(data.len())?;
    let index = items.open()?;
    let id = items.id("ig", index);
    let begun = item(&id, "in_progress", format, None);
    items.added(index, &begun, out);
    let of = Of {
        id: &id,
        index,
        part: None,
    };
    items.event_of("response.image_generation_call.completed", of, out, |_| {});
    let done = item(&id, "completed", format, Some(data));
    items.finish(index, done, out);
    Ok(())
}

fn item(id: &str, status: &str, format: &str, data: Option<&str>) -> Vec<u8> {
    let mut item = Vec::with_capacity(data.map_or(0, str::len) + 128);
    for piece in [
        "{\"id\":\"",
        id,
        "\",\"type\":\"image_generation_call\",\"status\":\"",
        status,
        "\"",
    ] {
        put(&mut item, piece);
    }
    put_string("output_format", format, &mut item);
    match data {
        Some(data) => put_string("result", data, &mut item),
        None => put(&mut item, ",\"result\":null"),
    }
    item.push(b'}');
    item
}
