//! Gemini's thoughts, which it shows only on request.

use proofgate_dialect::constraints::{Constraint, has_constraint};
use proofgate_dialect::json::write_all;

/// Appends to a chat request, with a comma before it, the request to show thoughts, in Google's form for clients of chat
/// completions (ai.google.dev, OpenAI compatibility); nothing for a model that does not think.
///
/// If no other field sets the amount of thinking (`has_measure` is false), a model with a thinking
/// budget gets a budget of -1, which leaves the amount to the model: Vertex AI refuses to show
/// thoughts of models that do not think by default (google-gemini/gemini-cli#1953).
pub(crate) fn write_include_thoughts(model: &str, has_measure: bool, out: &mut Vec<u8>) {
    if has_constraint(model, Constraint::NoThinking) {
        return;
    }
    let budget = match !has_measure && has_constraint(model, Constraint::ThinkingBudget) {
        true => r#","thinking_budget":-1"#,
        false => "",
    };
    let begin = r#","extra_body":{"google":{"thinking_config":{"include_thoughts":true"#;
    write_all(out, &[begin, budget, "}}}"]);
}
