//! A request of chat completions, read once and said to every provider: what is said is JSON, what is refused leaves nothing behind,
//! and all writers agree on what the request is and on what it says of itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_translate::{
    RequestContext, Target, UntranslatableFieldPolicy, UntranslatableRequest, openai_anthropic,
    openai_converse, openai_gemini, openai_responses,
};

type Writer = fn(&[u8], &Target<'_>, &mut Vec<u8>) -> Result<RequestContext, UntranslatableRequest>;

/// The writers, each with a model that takes everything and one that is known to take less.
const WRITERS: [(Writer, [&str; 2]); 4] = [
    (
        openai_anthropic::translate_request,
        ["claude-opus-9", "claude-haiku-4-5"],
    ),
    (
        openai_gemini::translate_request,
        ["gemini-9-pro", "gemini-2.5-flash"],
    ),
    (
        openai_converse::translate_request,
        ["amazon.nova-9", "anthropic.claude-opus-4-7"],
    ),
    (openai_responses::translate_request, ["gpt-9", "gpt-4.1"]),
];

/// What a writer says, or why it refuses.
fn said(
    writer: Writer,
    model: &str,
    untranslatable: UntranslatableFieldPolicy,
    body: &[u8],
) -> Result<(RequestContext, Vec<u8>), UntranslatableRequest> {
    let target = Target {
        model,
        max_output_tokens: 100,
        untranslatable,
    };
    let mut out = b"before".to_vec();
    let asked = writer(body, &target, &mut out);
    assert!(out.starts_with(b"before"));
    match asked {
        Ok(asked) => {
            let written = out.split_off(6);
            assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&written).is_ok());
            Ok((asked, written))
        }
        Err(refused) => {
            assert_eq!(out.len(), 6, "nothing is left of a refused request");
            Err(refused)
        }
    }
}

fuzz_target!(|body: &[u8]| {
    let mut asked: Option<RequestContext> = None;
    let mut unreadable: Option<bool> = None;
    for (writer, models) in WRITERS {
        for model in models {
            let refusing = said(writer, model, UntranslatableFieldPolicy::Refuse, body);
            let dropping = said(writer, model, UntranslatableFieldPolicy::Drop, body);
            let is_unreadable = matches!(&dropping, Err(refused) if refused.param.is_empty());
            assert_eq!(*unreadable.get_or_insert(is_unreadable), is_unreadable);
            if let Ok(taken) = refusing {
                assert_eq!(
                    Ok(&taken),
                    dropping.as_ref(),
                    "only what is lossy depends on the setting"
                );
            }
            let Ok((own, _)) = dropping else { continue };
            let own = RequestContext {
                dropped_fields: Vec::new(),
                ..own
            };
            assert_eq!(*asked.get_or_insert_with(|| own.clone()), own);
        }
    }
});
