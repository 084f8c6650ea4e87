//! Requests of chat completions, and what becomes of them at every provider but for those that can more, or less.

use serde_json::{Value, json};

#[path = "probes/messages.rs"]
mod messages;
#[path = "probes/settings.rs"]
mod settings;
#[path = "probes/tools.rs"]
mod tools;

/// Where a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    Anthropic,
    Gemini,
    Converse,
    Responses,
}

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

/// Fields of a request, and what becomes of them.
pub struct Probe {
    pub fields: Value,
    pub verdict: Verdict,
    /// The name of what is lost, or the path of what is refused.
    pub name: &'static str,
    /// Where a provider can more than the others, or less.
    pub exceptions: Vec<(Provider, Verdict)>,
}

impl Probe {
    /// The probe, but for these providers, of which another verdict is true.
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

/// An object with other fields.
fn with(mut object: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        object[name] = value.clone();
    }
    object
}

/// All of them.
pub fn probes() -> Vec<Probe> {
    let mut probes = settings::probes();
    probes.extend(messages::probes());
    probes.extend(messages::parts());
    probes.extend(tools::probes());
    probes.extend(tools::calls());
    probes
}

const OTHERS: &str = "other fields";
