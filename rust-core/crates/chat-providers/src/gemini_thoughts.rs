//! The thoughts of Gemini, which it shows where a request asks for them.

use proofgate_dialect::constraints::{Constraint, has};
use proofgate_dialect::json::write_all;

/// Appends to a chat request, a comma before it, that thoughts are to be shown, in the words that Google has for clients of chat
/// completions (ai.google.dev, OpenAI compatibility); nothing for a model that does not think.
///
/// Where nothing says how much to think (`has_measure`), a model that takes a budget is given that of -1, to think as it likes:
/// Vertex AI refuses to show thoughts of those that do not think by default (google-gemini/gemini-cli#1953).
pub(crate) fn write_include_thoughts(model: &str, has_measure: bool, out: &mut Vec<u8>) {
    if has(model, Constraint::NoThinking) {
        return;
    }
    let budget = match !has_measure && has(model, Constraint::ThinkingBudget) {
        true => r#","thinking_budget":-1"#,
        false => "",
    };
    let begin = r#","extra_body":{"google":{"thinking_config":{"include_thoughts":true"#;
    write_all(out, &[begin, budget, "}}}"]);
}
