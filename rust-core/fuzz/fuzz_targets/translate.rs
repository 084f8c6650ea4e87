//! Whatever a client or a provider sends, a translation ends without a panic, and what it writes of a request and of a whole
//! answer is JSON. The first byte of the input says which pair and which way; the events of a stream are split at line feeds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_translate::{
    EventKind, RequestContext, StreamStatus, Target, UntranslatableFieldPolicy, anthropic_invoke,
    anthropic_openai, chat_custom_tools, openai_anthropic, openai_converse, openai_gemini, openai_responses,
    responses_openai,
};

fn is_json(document: &[u8]) {
    assert!(serde_json::from_slice::<serde::de::IgnoredAny>(document).is_ok());
}

/// Feeds each line as an event until the stream has ended, as a relay does.
fn stream(data: &[u8], mut event: impl FnMut(&[u8], &mut Vec<u8>) -> Option<StreamStatus>) {
    let mut out = Vec::new();
    for line in data.split(|byte| *byte == b'\n') {
        out.clear();
        if event(line, &mut out) != Some(StreamStatus::InProgress) {
            return;
        }
    }
}

/// What stands before the first blank of a line, and what stands behind it.
fn name_of(line: &[u8]) -> (&str, &[u8]) {
    let at = line.iter().position(|byte| *byte == b' ').unwrap_or(0);
    let (name, rest) = line.split_at(at);
    (std::str::from_utf8(name).unwrap_or_default(), rest)
}

fuzz_target!(|input: &[u8]| {
    let Some((&mode, data)) = input.split_first() else {
        return;
    };
    let target = Target {
        model: "m",
        max_output_tokens: 100,
        untranslatable: match mode & 1 {
            0 => UntranslatableFieldPolicy::Refuse,
            _ => UntranslatableFieldPolicy::Drop,
        },
    };
    let asked = RequestContext {
        model: "c".into(),
        stream: true,
        include_usage: mode & 1 == 1,
        custom_tools: vec!["c".into()],
        ..RequestContext::default()
    };
    let mut out = Vec::new();
    match (mode >> 1) % 31 {
        0 => drop(openai_anthropic::translate_request(data, &target, &mut out).map(|_| is_json(&out))),
        1 => drop(anthropic_openai::translate_request(data, &target, &mut out).map(|_| is_json(&out))),
        2 => drop(openai_gemini::translate_request(data, &target, &mut out).map(|_| is_json(&out))),
        3 => drop(openai_anthropic::translate_response(data, &asked, 1, &mut out).map(|_| is_json(&out))),
        4 => drop(anthropic_openai::translate_response(data, &asked, &mut out).map(|_| is_json(&out))),
        5 => drop(openai_gemini::translate_response(data, &asked, 1, &mut out).map(|_| is_json(&out))),
        6 => {
            let mut translated = openai_anthropic::Stream::new(&asked, 1);
            stream(data, |line, out| translated.push_event("", line, out).ok());
        }
        7 => {
            let mut translated = anthropic_openai::Stream::new(&asked, 1);
            stream(data, |line, out| translated.push_event("", line, out).ok());
        }
        8 => {
            let mut translated = openai_gemini::Stream::new(&asked, 1);
            stream(data, |line, out| translated.push_event("", line, out).ok());
            let _ = translated.finish(&mut out);
        }
        9 => {
            openai_anthropic::translate_error(400, data, &mut out);
            is_json(&out);
        }
        10 => {
            anthropic_openai::translate_error(400, data, &mut out);
            is_json(&out);
        }
        11 => {
            openai_gemini::translate_error(400, data, &mut out);
            is_json(&out);
        }
        12 => drop(openai_converse::translate_request(data, &target, &mut out).map(|_| is_json(&out))),
        13 => drop(
            anthropic_invoke::translate_request(data, &target, &["beta"], &mut out).map(|_| is_json(&out)),
        ),
        14 => drop(openai_converse::translate_response(data, &asked, 1, &mut out).map(|_| is_json(&out))),
        15 => drop(anthropic_invoke::translate_response(data, &mut out).map(|()| is_json(&out))),
        16 => {
            let mut translated = openai_converse::Stream::new(&asked, 1);
            stream(data, |line, out| {
                let (name, line) = name_of(line);
                translated.push_event(EventKind::Event, name, line, out).ok()
            });
        }
        17 => {
            let mut translated = anthropic_invoke::Stream::new();
            stream(data, |line, out| {
                let (name, line) = name_of(line);
                translated.push_event(EventKind::Exception, name, line, out).ok()
            });
        }
        18 => {
            openai_converse::translate_error(400, None, data, &mut out);
            is_json(&out);
        }
        19 => {
            anthropic_invoke::translate_error(400, None, data, &mut out);
            is_json(&out);
        }
        20 => drop(responses_openai::translate_request(data, &target, &mut out).map(|_| is_json(&out))),
        21 => drop(responses_openai::translate_response(data, &asked, 1, &mut out).map(|_| is_json(&out))),
        22 => {
            let mut translated = responses_openai::Stream::new(&asked, 1);
            stream(data, |line, out| translated.push_event("", line, out).ok());
            let _ = translated.finish(&mut out);
        }
        23 => {
            responses_openai::translate_error(400, data, &mut out);
            is_json(&out);
        }
        24 => drop(responses_openai::translate_for_chat(data, &target, &mut out).map(|_| is_json(&out))),
        25 => drop(openai_responses::translate_response(data, &asked, 1, &mut out).map(|_| is_json(&out))),
        26 => {
            let mut translated = openai_responses::Stream::new(&asked, 1);
            stream(data, |line, out| translated.push_event("", line, out).ok());
            let _ = translated.finish(&mut out);
        }
        27 => drop(chat_custom_tools::translate_request(data, &mut out)),
        28 => drop(chat_custom_tools::translate_response(data, &asked, &mut out).map(|()| is_json(&out))),
        29 => {
            let mut translated = chat_custom_tools::Stream::new(&asked);
            stream(data, |line, out| translated.push_event(line, out).ok());
        }
        _ => {
            openai_responses::translate_error(400, data, &mut out);
            is_json(&out);
        }
    }
});
