//! Paths of Azure clients: `/openai/v1/…` is `/v1/…`, and `/openai/deployments/{model}/…` names the model.

use proofgate_providers::{Dialect, Family};

use crate::google_path::{BodyForm, PathParams, model_name};

const OPENAI_PREFIX: &str = "/openai";
const DEPLOYMENTS: &str = "/deployments/";

/// A path of Azure's API.
#[derive(Debug, PartialEq, Eq)]
pub enum AzurePath {
    /// A call that a provider answers, with the parameters from the path.
    Call(Dialect, Option<PathParams>),
    Models,
}

/// Parses a path; `None` if it is not a served path of Azure's API. The model name is percent-decoded once.
pub fn parse(path: &str) -> Option<AzurePath> {
    let rest = path.strip_prefix(OPENAI_PREFIX)?;
    if matches!(rest, "/v1/models" | "/models") {
        return Some(AzurePath::Models);
    }
    if let Some(rest) = rest.strip_prefix(DEPLOYMENTS) {
        let spoken = Family::OpenAi.dialects().iter().copied();
        let mut spoken = spoken.filter(|dialect| !dialect.uses_responses_format());
        return spoken.find_map(|dialect| {
            let name = rest.strip_suffix(dialect.upstream_path())?;
            let model = model_name(name)?;
            let in_path = PathParams {
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
        rest => Dialect::from_path(rest).filter(|dialect| dialect.family() == Family::OpenAi)?,
    };
    Some(AzurePath::Call(dialect, None))
}

#[cfg(test)]
mod tests {
    use proofgate_providers::Dialect;

    use super::{AzurePath, parse};
    use crate::google_path::PathParams;

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
            let in_path = model.map(|model| PathParams {
                model: model.into(),
                stream: None,
                form: crate::google_path::BodyForm::default(),
            });
            assert_eq!(parse(path), Some(AzurePath::Call(dialect, in_path)), "{path}");
        }
        for path in ["/openai/v1/models", "/openai/models"] {
            assert_eq!(parse(path), Some(AzurePath::Models));
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
            assert_eq!(parse(path), None, "{path}");
        }
    }
}
