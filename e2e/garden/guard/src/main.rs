//! What the gateway's parser makes of raw bytes, without a gateway.
//!
//! Standard input holds messages, each behind its length (four bytes, big endian); standard output gets one line
//! of JSON for each. Bytes stand in it as Latin-1 text.
#![forbid(unsafe_code)]

use proofgate_wire::{
    BodyDecoder, HeadScanner, Limits, ProtocolError, RequestFraming, RequestHead, encode, parse_request,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::error::Error;
use std::io::{Read, Write};

/// What a request that is not complete still lacks.
fn incomplete(missing: &str, bytes: u64) -> Value {
    json!({"verdict": "incomplete", "missing": missing, "bytes": bytes})
}

fn judge(message: &[u8]) -> Result<Value, ProtocolError> {
    let limits = Limits::default();
    let Some(head_length) = HeadScanner::new().scan(message, &limits)? else {
        return Ok(incomplete("head", 0));
    };
    let head = parse_request(&message[..head_length], &limits)?;
    let mut decoder = BodyDecoder::for_request(head.framing, &limits);
    let (mut body, mut at) = (Vec::new(), head_length);
    loop {
        let step = decoder.decode(&message[at..])?;
        body.extend_from_slice(&message[at..][step.data]);
        at += step.consumed;
        if step.done {
            break;
        }
        if at == message.len() {
            return Ok(match head.framing {
                RequestFraming::Length(length) => incomplete("length", length - body.len() as u64),
                _ => incomplete("chunks", 0),
            });
        }
    }
    let framing = match head.framing {
        RequestFraming::Empty => "empty",
        RequestFraming::Length(_) => "length",
        RequestFraming::Chunked => "chunked",
    };
    let digest: String = Sha256::digest(&body)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok(json!({
        "verdict": "accepted",
        "consumed": at,
        "keep_alive": head.keep_alive,
        "read": {
            "method": head.method_text,
            "target": head.target,
            "host": head.host,
            "framing": framing,
            "length": body.len(),
            "sha256": digest,
        },
        "forwarded": latin1(&forwarded(&head, &body)?),
        "body": latin1(&body),
    }))
}

/// The request as a proxy would pass it on with [`encode`]: end-to-end fields, and the framing written anew.
fn forwarded(head: &RequestHead<'_>, body: &[u8]) -> Result<Vec<u8>, ProtocolError> {
    let length = body.len().to_string();
    let framing = match head.framing {
        RequestFraming::Empty => None,
        RequestFraming::Length(_) => Some(("content-length", length.as_bytes())),
        RequestFraming::Chunked => Some(("transfer-encoding", &b"chunked"[..])),
    };
    let end_to_end = head.headers.iter().filter(|(name, _)| {
        !head.headers.is_hop_by_hop(name)
            && !name.eq_ignore_ascii_case("content-length")
            && !name.eq_ignore_ascii_case("expect")
    });
    let mut out = Vec::new();
    encode::write_request_head(&mut out, head.method_text, head.target, end_to_end.chain(framing))?;
    if head.framing == RequestFraming::Chunked {
        let (first, second) = body.split_at(body.len() / 2);
        encode::write_chunk(&mut out, first);
        encode::write_chunk(&mut out, second);
        out.extend_from_slice(encode::LAST_CHUNK);
    } else {
        out.extend_from_slice(body);
    }
    Ok(out)
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input)?;
    let mut output = std::io::stdout().lock();
    let mut rest = &input[..];
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length))?;
        let (message, after) = after.split_at_checked(length).ok_or("a message is cut short")?;
        let verdict =
            judge(message).unwrap_or_else(|refusal| json!({"verdict": "refused", "code": refusal.code()}));
        writeln!(output, "{verdict}")?;
        rest = after;
    }
    Ok(())
}
