//! Pictures that a model made: OpenAI tells them as calls of a tool of its own, with their data as the result.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::responses_openai::calls::write_string_member;
use crate::responses_openai::events::{EventTarget, OutputItems};
use crate::responses_openai::tools::{inside_quotes, write_json};
use proofgate_dialect::ResponseError;

#[derive(Deserialize)]
struct Image<'p> {
    #[serde(borrow)]
    image_url: Option<ImageUrl<'p>>,
}

#[derive(Deserialize)]
struct ImageUrl<'p> {
    #[serde(borrow)]
    url: &'p RawValue,
}

/// The format and the data of those in a message's `images` that hold their data, as insides of strings; no client looks for
/// an address.
pub(super) fn read(images: &RawValue) -> Vec<(&str, &str)> {
    let images: Vec<Image<'_>> = serde_json::from_str(images.get()).unwrap_or_default();
    let urls = images.into_iter().filter_map(|picture| picture.image_url);
    urls.filter_map(|address| parse_data_url(inside_quotes(address.url.get())))
        .collect()
}

fn parse_data_url(url: &str) -> Option<(&str, &str)> {
    let (kind, data) = url.strip_prefix("data:image/")?.split_once(";base64,")?;
    let is_plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+/=.-".contains(&byte))
    };
    (is_plain(kind) && is_plain(data)).then_some((kind, data))
}

/// Tells one as an item.
pub(super) fn write_image_item(
    (format, data): (&str, &str),
    items: &mut OutputItems,
    out: &mut Vec<u8>,
) -> Result<(), ResponseError> {
    items.count_retained(data.len())?;
    let index = items.next_index()?;
    let id = items.item_id("ig", index);
    let begun = item(&id, "in_progress", format, None);
    items.write_added(index, &begun, out);
    let of = EventTarget {
        id: &id,
        index,
        part: None,
    };
    items.write_targeted_event("response.image_generation_call.completed", of, out, |_| {});
    let done = item(&id, "completed", format, Some(data));
    items.finish_item(index, done, out);
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
        write_json(&mut item, piece);
    }
    write_string_member("output_format", format, &mut item);
    match data {
        Some(data) => write_string_member("result", data, &mut item),
        None => write_json(&mut item, ",\"result\":null"),
    }
    item.push(b'}');
    item
}
