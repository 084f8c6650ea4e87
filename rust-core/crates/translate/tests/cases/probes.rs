//! Chat-completions requests, and their verdict at every provider, with exceptions for some.

use serde_json::{Value, json};

#[path = "probes/messages.rs"]
mod messages;
#[path = "probes/settings.rs"]
mod settings;
#[path = "probes/tools.rs"]
mod tools;

/// The provider of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    Anthropic,
    Gemini,
    Converse,
    Responses,
}

/// The verdict on a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is translated, or has no effect: nothing is reported.
    Passes,
    /// It is left out and reported, whatever the setting.
    Harmless,
    /// It is refused, or left out and reported, depending on the setting.
    Lossy,
    /// It is refused, whatever the setting.
    Impossible,
}

use Verdict::{Harmless, Impossible, Lossy, Passes};

/// Fields of a request and their verdict.
pub struct Probe {
    pub fields: Value,
    pub verdict: Verdict,
    /// The name of the dropped field, or the path of the refused one.
    pub name: &'static str,
    /// Providers with another verdict.
    pub exceptions: Vec<(Provider, Verdict)>,
}

impl Probe {
    /// Sets another verdict for these providers.
    fn but(mut self, verdict: Verdict, providers: &[Provider]) -> Self {
        let others = providers.iter().map(|provider| (*provider, verdict));
        self.exceptions.extend(others);
        self
    }
}

fn probe(fields: Value, verdict: Verdict, name: &'static str) -> Probe {
    Probe {
        fields,
        verdict,
        name,
        exceptions: Vec::new(),
    }
}

fn passes(fields: Value) -> Probe {
    probe(fields, Passes, "")
}

fn harmless(fields: Value, name: &'static str) -> Probe {
    probe(fields, Harmless, name)
}

fn lossy(fields: Value, name: &'static str) -> Probe {
    probe(fields, Lossy, name)
}

fn impossible(fields: Value, path: &'static str) -> Probe {
    probe(fields, Impossible, path)
}

/// Returns an object with additional fields.
fn with(mut object: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        object[name] = value.clone();
    }
    object
}

/// Returns all probes.
pub fn probes() -> Vec<Probe> {
    let mut probes = settings::probes();
    probes.extend(messages::probes());
    probes.extend(messages::parts());
    probes.extend(tools::probes());
    probes.extend(tools::calls());
    probes
}

const OTHERS: &str = "other fields";
