//! Messages and their parts.

use super::Provider::{Anthropic, Converse, Gemini, Responses};
use super::*;
use crate::PIXEL;

fn message(fields: Value) -> Value {
    json!({"messages": [with(json!({"role": "user", "content": "Hi"}), &fields)]})
}

fn assistant(fields: Value) -> Value {
    let said = with(json!({"role": "assistant", "content": "A"}), &fields);
    json!({"messages": [{"role": "user", "content": "Hi"}, said, {"role": "user", "content": "And?"}]})
}

fn beside(other: Value) -> Value {
    json!({"messages": [other, {"role": "user", "content": "Hi"}]})
}

fn part(part: Value) -> Value {
    message(json!({"content": [{"type": "text", "text": "a"}, part]}))
}

fn image(url: &str, fields: Value) -> Value {
    json!({"type": "image_url", "image_url": with(json!({"url": url}), &fields)})
}

pub fn probes() -> Vec<Probe> {
    let mut probes = vec![
        impossible(json!({"messages": []}), "messages"),
        impossible(json!({"messages": null}), "messages"),
        impossible(json!({"messages": "Hi"}), "messages"),
        impossible(json!({"messages": ["Hi"]}), "messages[0]"),
        impossible(message(json!({"role": "function"})), "messages[0].role"),
        impossible(message(json!({"role": null})), "messages[0].role"),
        impossible(message(json!({"content": {"text": "Hi"}})), "messages[0].content"),
        impossible(message(json!({"role": "system"})), "messages").but(Passes, &[Responses]),
        passes(beside(json!({"role": "developer", "content": "Be brief"}))),
        passes(beside(json!({"role": "user", "content": " \n"}))),
        passes(beside(json!({"role": "user"}))),
        passes(beside(json!({"role": "user", "content": []}))),
        harmless(message(json!({"name": "Ann"})), "messages[].name"),
        harmless(message(json!({"new_field": 1})), OTHERS),
        harmless(message(json!({"refusal": "no"})), OTHERS),
        harmless(message(json!({"reasoning_content": "r"})), OTHERS),
        harmless(message(json!({"extra_content": {}})), OTHERS),
        harmless(message(json!({"tool_call_id": "c"})), OTHERS),
        harmless(
            message(json!({"cache_control": {"type": "ephemeral"}})),
            "cache_control",
        )
        .but(Passes, &[Anthropic, Converse]),
        impossible(
            beside(json!({"role": "system", "content": [image("https://images.example/a.png", json!({}))]})),
            "messages[0].content[0].type",
        )
        .but(Passes, &[Responses]),
    ];
    probes.extend(of_the_model());
    probes
}

/// The assistant's messages, as clients send them back.
fn of_the_model() -> Vec<Probe> {
    let drawn = json!([image(&format!("data:image/png;base64,{PIXEL}"), json!({}))]);
    vec![
        passes(assistant(json!({"annotations": []}))),
        harmless(
            assistant(json!({"annotations": [{"type": "url_citation"}]})),
            "messages[].annotations",
        ),
        harmless(
            assistant(json!({"reasoning_content": "r"})),
            "messages[].reasoning_content",
        )
        .but(Passes, &[Gemini]),
        harmless(assistant(json!({"reasoning": "r"})), "messages[].reasoning"),
        passes(assistant(
            json!({"reasoning": "", "reasoning_content": "", "reasoning_details": []}),
        )),
        harmless(
            assistant(json!({"reasoning_details": [{"type": "reasoning.summary", "summary": "s"}]})),
            "messages[].reasoning_details",
        ),
        harmless(
            assistant(
                json!({"reasoning_details": [{"type": "reasoning.text", "text": "t", "signature": "s"}]}),
            ),
            "messages[].reasoning_details",
        )
        .but(Passes, &[Anthropic, Converse]),
        harmless(
            assistant(json!({"extra_content": {"google": {"thought_signature": "s"}}})),
            "messages[].extra_content",
        )
        .but(Passes, &[Gemini]),
        passes(assistant(
            json!({"audio": null, "function_call": null, "refusal": null, "content": null}),
        )),
        passes(assistant(json!({"content": null, "refusal": "no"}))),
        passes(assistant(
            json!({"content": [{"type": "refusal", "refusal": "no"}]}),
        )),
        impossible(
            assistant(json!({"content": drawn})),
            "messages[1].content[0].type",
        ),
        lossy(assistant(json!({"images": drawn})), "messages[].images").but(Passes, &[Gemini]),
        passes(assistant(json!({"images": []}))),
        impossible(assistant(json!({"audio": {"id": "a"}})), "messages[1].audio"),
        impossible(
            assistant(json!({"function_call": {"name": "f", "arguments": "{}"}})),
            "messages[1].function_call",
        ),
    ]
}

pub fn parts() -> Vec<Probe> {
    let png = format!("data:image/png;base64,{PIXEL}");
    let text = |fields: Value| part(with(json!({"type": "text", "text": "b"}), &fields));
    let mut probes = vec![
        passes(part(image(&png, json!({})))),
        passes(part(image(&png, json!({"detail": "auto"})))),
        harmless(
            part(image(&png, json!({"detail": "high"}))),
            "messages[].content[].image_url.detail",
        )
        .but(Passes, &[Responses]),
        harmless(part(image(&png, json!({"new_field": 1}))), OTHERS),
        passes(part(image("https://images.example/a.png", json!({})))).but(Impossible, &[Converse]),
        impossible(
            part(image("data:image/svg+xml;base64,PHN2Zz4=", json!({}))),
            "messages[0].content[1].image_url.url",
        )
        .but(Passes, &[Gemini, Responses]),
        passes(text(json!({"text": ""}))),
        passes(text(json!({"index": 0}))),
        harmless(text(json!({"new_field": 1})), OTHERS),
        harmless(text(json!({"file": {"file_data": "JVBERi0="}})), OTHERS),
        harmless(
            text(json!({"cache_control": {"type": "ephemeral"}})),
            "cache_control",
        )
        .but(Passes, &[Anthropic, Converse]),
        harmless(
            text(json!({"prompt_cache_breakpoint": {"mode": "explicit"}})),
            "messages[].content[].prompt_cache_breakpoint",
        )
        .but(Passes, &[Converse, Responses]),
        impossible(text(json!({"text": null})), "messages[0].content[1].text"),
        impossible(text(json!({"text": 1})), "messages[0].content[1].text"),
        impossible(part(json!({"text": "b"})), "messages[0].content[1].type"),
        impossible(part(json!("b")), "messages[0].content[1]"),
        harmless(part(json!({"type": "video_url"})), "messages[].content[].type"),
    ];
    for address in [
        "gs://bucket/a.png",
        "file:///etc/passwd",
        "data:image/png,AA",
        "data:image/png;base64,A B",
        "",
    ] {
        let path = "messages[0].content[1].image_url.url";
        probes.push(impossible(part(image(address, json!({}))), path));
    }
    probes.extend(files());
    probes
}

fn files() -> Vec<Probe> {
    let file = |file: Value| part(json!({"type": "file", "file": file}));
    let audio = |data: &str, format: &str| {
        part(json!({"type": "input_audio", "input_audio": {"data": data, "format": format}}))
    };
    let pdf = "data:application/pdf;base64,JVBERi0=";
    vec![
        passes(file(json!({"file_data": pdf}))),
        passes(file(json!({"file_data": "JVBERi0="}))),
        harmless(
            file(json!({"file_data": pdf, "filename": "a.pdf"})),
            "messages[].content[].file.filename",
        )
        .but(Passes, &[Anthropic, Converse, Responses]),
        harmless(file(json!({"file_data": pdf, "new_field": 1})), OTHERS),
        passes(file(json!({"file_data": "data:text/csv;base64,YQ=="}))).but(Impossible, &[Anthropic]),
        passes(file(json!({"file_data": "https://files.example/a.pdf"}))).but(Impossible, &[Converse]),
        impossible(
            file(json!({"file_data": "c:\\a.pdf"})),
            "messages[0].content[1].file.file_data",
        ),
        impossible(
            file(json!({"file_id": "file-1"})),
            "messages[0].content[1].file.file_id",
        )
        .but(Passes, &[Responses]),
        impossible(file(json!({})), "messages[0].content[1].file"),
        impossible(
            file(json!({"file_id": "file-1", "file_data": pdf})),
            "messages[0].content[1].file",
        ),
        passes(audio("UklGRg==", "wav")).but(Impossible, &[Anthropic, Responses]),
        impossible(
            audio("UklGRg==", "ogg"),
            "messages[0].content[1].input_audio.format",
        ),
    ]
}
