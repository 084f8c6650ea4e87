//! What a worker sends to providers for given bodies: the head that the provider's template writes, then the body.
//!
//! Standard input holds bodies, each behind its length (four bytes, big endian); standard output gets one JSON string
//! for each provider and body, whose characters stand for bytes (Latin-1).
#![forbid(unsafe_code)]

use proofgate_providers::{BaseUrl, Dialect, ProviderKey, RequestTemplate};
use std::error::Error;
use std::io::{Read, Write};

/// Where each is, what it speaks, how its key is presented, and what its path ends in.
type Provider = (&'static str, Dialect, Option<ProviderKey<'static>>, &'static str);

const PROVIDERS: [Provider; 4] = [
    (
        "https://api.provider.example/v1",
        Dialect::Chat,
        Some(ProviderKey { header_prefix: "Authorization: Bearer ", key: "sk-garden-0123456789" }),
        "",
    ),
    ("http://provider:8080", Dialect::Embeddings, None, ""),
    (
        "http://[::1]:9000/anthropic/v1/",
        Dialect::Messages,
        Some(ProviderKey { header_prefix: "x-api-key: ", key: "k" }),
        "",
    ),
    (
        "https://192.0.2.1:8443/a-b_c.d~e/v1",
        Dialect::Gemini,
        None,
        "/m%3A1:streamGenerateContent?alt=sse",
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut templates = Vec::new();
    for (url, dialect, key, model) in PROVIDERS {
        templates.push((RequestTemplate::new(&BaseUrl::parse(url)?, dialect, key), model));
    }
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input)?;
    let mut output = std::io::stdout().lock();
    let mut rest = &input[..];
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length))?;
        let (body, after) = after.split_at_checked(length).ok_or("a body is cut short")?;
        for (template, model) in &templates {
            let mut request = Vec::new();
            template.write("01JD0000000000000000000000", body.len(), model, b"", &mut request);
            request.extend_from_slice(body);
            let text: String = request.iter().copied().map(char::from).collect();
            writeln!(output, "{}", serde_json::to_string(&text)?)?;
        }
        rest = after;
    }
    Ok(())
}
