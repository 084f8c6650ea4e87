//! What a worker sends to providers for given bodies: the head that the provider's template writes, then the body.
//!
//! Standard input holds bodies, each behind its length (four bytes, big endian); standard output gets one JSON string
//! for each provider and body, whose characters stand for bytes (Latin-1).
#![forbid(unsafe_code)]

use proofgate_providers::{BaseUrl, RequestTemplate};
use std::error::Error;
use std::io::{Read, Write};

const PROVIDERS: [(&str, Option<&str>); 4] = [
    ("https://api.provider.example/v1", Some("sk-garden-0123456789")),
    ("http://provider:8080", None),
    ("http://[::1]:9000/openai/v1/", Some("k")),
    ("https://192.0.2.1:8443/a-b_c.d~e/v1", None),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut templates = Vec::new();
    for (url, key) in PROVIDERS {
        templates.push(RequestTemplate::chat_completions(&BaseUrl::parse(url)?, key));
    }
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input)?;
    let mut output = std::io::stdout().lock();
    let mut rest = &input[..];
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length))?;
        let (body, after) = after.split_at_checked(length).ok_or("a body is cut short")?;
        for template in &templates {
            let mut request = Vec::new();
            template.write("01JD0000000000000000000000", body.len(), &mut request);
            request.extend_from_slice(body);
            let text: String = request.iter().copied().map(char::from).collect();
            writeln!(output, "{}", serde_json::to_string(&text)?)?;
        }
        rest = after;
    }
    Ok(())
}
