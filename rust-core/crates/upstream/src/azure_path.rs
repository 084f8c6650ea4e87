//! Paths of Azure's clients: `/openai/v1/…` is `/v1/…`, and `/openai/deployments/{model}/…` names the model.

use proofgate_providers::{Dialect, Family};

use crate::google_path::{BodyForm, InPath, model_name};

const BEGIN: &str = "/openai";
const DEPLOYMENTS: &str = "/deployments/";

/// What is known under one path of Azure's API.
#[derive(Debug, PartialEq, Eq)]
pub enum AzurePath {
    /// Something that a provider answers, and what the path says of it.
    Call(Dialect, Option<InPath>),
    Models,
}

/// Reads a path; `None` for what is no path of Azure's API that is served. The name of the model is percent-decoded once.
pub fn read(path: &str) -> Option<AzurePath> {
    let rest = path.strip_prefix(BEGIN)?;
    if matches!(rest, "/v1/models" | "/models") {
        return Some(AzurePath::Models);
    }
    if let Some(rest) = rest.strip_prefix(DEPLOYMENTS) {
        let spoken = Family::OpenAi.dialects().iter().copied();
        let mut spoken = spoken.filter(|dialect| !dialect.asks_as_responses());
        return spoken.find_map(|dialect| {
            let name = rest.strip_suffix(dialect.path_upstream())?;
            let model = model_name(name)?;
            let in_path = InPath {
                model,
                stream: None,
                form: BodyForm::default(),
            };
            Some(AzurePath::Call(dialect, Some(in_path)))
        });
    }
    let dialect = match rest {
        "/responses" => Dialect::Responses,
        "/responses/input_tokens" => Dialect::ResponseTokens,
        rest => Dialect::at(rest).filter(|dialect| dialect.family() == Family::OpenAi)?,
    };
    Some(AzurePath::Call(dialect, None))
}

#[cfg(test)]
mod tests {
    use proofgate_providers::Dialect;

    use super::{AzurePath, read};
    use crate::google_path::InPath;

    #[test]
    fn a_path_of_either_form_is_known_and_a_deployment_is_decoded_once() {
        for (path, dialect, model) in [
            (
                "/openai/deployments/gpt/chat/completions",
                Dialect::Chat,
                Some("gpt"),
            ),
            (
                "/openai/deployments/gpt/completions",
                Dialect::Completions,
                Some("gpt"),
            ),
            (
                "/openai/deployments/a%2Fb%253a/embeddings",
                Dialect::Embeddings,
                Some("a/b%3a"),
            ),
            (
                "/openai/deployments/a/b/audio/speech",
                Dialect::Speech,
                Some("a/b"),
            ),
            ("/openai/responses", Dialect::Responses, None),
            ("/openai/v1/responses", Dialect::Responses, None),
            ("/openai/responses/input_tokens", Dialect::ResponseTokens, None),
            ("/openai/v1/chat/completions", Dialect::Chat, None),
        ] {
            let in_path = model.map(|model| InPath {
                model: model.into(),
                stream: None,
                form: crate::google_path::BodyForm::default(),
            });
            assert_eq!(read(path), Some(AzurePath::Call(dialect, in_path)), "{path}");
        }
        for path in ["/openai/v1/models", "/openai/models"] {
            assert_eq!(read(path), Some(AzurePath::Models));
        }
    }

    #[test]
    fn what_else_there_is_is_no_path_of_azures() {
        for path in [
            "/openai",
            "/openai/v1",
            "/openai/v1/messages",
            "/openai/v1/models/m",
            "/openai/v1beta/models/m:generateContent",
            "/openai/deployments/gpt",
            "/openai/deployments/gpt/responses",
            "/openai/deployments/gpt/messages",
            "/openai/deployments//chat/completions",
            "/openai/deployments/../chat/completions",
            "/openai/deployments/%2e%2e/chat/completions",
            "/openai/deployments/a/../b/chat/completions",
            "/openai/deployments/a%0A/chat/completions",
            "/openaiv1/chat/completions",
        ] {
            assert_eq!(read(path), None, "{path}");
        }
    }
}
