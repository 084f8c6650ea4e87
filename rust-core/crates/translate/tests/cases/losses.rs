//! One request through all writers of chat completions: they drop the same fields, under the same names, with the same
//! verdicts.

use super::probes::{
    Provider::{self, Anthropic, Converse, Gemini, Responses},
    Verdict::{self, Harmless, Impossible, Lossy, Passes},
    probes,
};
use super::*;
use proofgate_translate::openai_responses;

const WRITERS: [(Provider, Writer, &str); 4] = [
    (Anthropic, openai_anthropic::translate_request, "claude-opus-9"),
    (Gemini, openai_gemini::translate_request, "gemini-9-pro"),
    (Converse, openai_converse::translate_request, "amazon.nova-9"),
    (Responses, openai_responses::translate_request, "gpt-9"),
];

/// Returns the verdict of a writer, and the name or the path that it reports.
fn verdict(writer: Writer, model: &str, body: &Value) -> (Verdict, String) {
    let refusing = written(writer, model, REFUSE, body);
    let dropping = written(writer, model, DROP, body);
    match (refusing, dropping) {
        (Ok((sent, names)), Ok((same, again))) => {
            assert_eq!(
                (&sent, &names),
                (&same, &again),
                "what is not lossy does not depend on the setting"
            );
            match names[..] {
                [] => (Passes, String::new()),
                _ => (Harmless, names.join(" ")),
            }
        }
        (Err(refused), Ok((_, names))) => {
            assert!(!refused.param.is_empty() && refused.message.len() > 10);
            (Lossy, names.join(" "))
        }
        (Err(refused), Err(again)) => {
            assert_eq!(refused, again);
            (Impossible, refused.param.into_owned())
        }
        (Ok(_), Err(refused)) => panic!("dropping refuses what refusing takes: {refused:?}"),
    }
}

#[test]
fn a_request_loses_the_same_wherever_it_goes() {
    let mut wrong = Vec::new();
    let probes = probes();
    assert!(probes.len() >= 130, "{} probes", probes.len());
    for probe in probes {
        let body = asking(probe.fields.clone());
        for (provider, writer, model) in WRITERS {
            let found = verdict(writer, model, &body);
            let is_right = match probe.exceptions.iter().find(|(of, _)| *of == provider) {
                Some((_, exception)) => found.0 == *exception && *exception != probe.verdict,
                None => found == (probe.verdict, probe.name.to_owned()),
            };
            if !is_right {
                wrong.push(format!("{provider:?} {}: {found:?}", probe.fields));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
