//! One request through all writers of chat completions: the same fields are lost, under the same names, by the same verdicts.

use super::probes::{EXCEPTIONS, probes};
use super::*;

const WRITERS: [(&str, Writer, &str); 3] = [
    ("Anthropic", openai_anthropic::request, "claude-opus-9"),
    ("Gemini", openai_gemini::request, "gemini-9-pro"),
    ("Converse", openai_converse::request, "amazon.nova-9"),
];

/// What becomes of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is said, or says nothing: nothing is named.
    Passes,
    /// It is left out and named, whatever the setting.
    Harmless,
    /// It is refused, or left out and named.
    Lossy,
    /// It is refused, whatever the setting.
    Impossible,
}

use Verdict::{Harmless, Impossible, Lossy, Passes};

/// The verdict of a writer, and the name or the path that it gives.
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
    let mut used = [false; EXCEPTIONS.len()];
    let mut wrong = Vec::new();
    for (fields, expected, name) in probes() {
        let body = asking(fields.clone());
        let probe = fields.to_string();
        for (provider, writer, model) in WRITERS {
            let exception = EXCEPTIONS
                .iter()
                .position(|(of, part, ..)| *of == provider && probe.contains(part));
            let found = verdict(writer, model, &body);
            if let Some(exception) = exception {
                used[exception] = true;
                if found.0 != EXCEPTIONS[exception].2 {
                    wrong.push(format!("{provider} {probe}: {found:?}, an exception"));
                }
            } else if found != (expected, name.to_owned()) {
                wrong.push(format!("{provider} {probe}: {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(
        used.iter().all(|used| *used),
        "an exception is of no probe: {used:?}"
    );
}
