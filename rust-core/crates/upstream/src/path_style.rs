//! Request paths of providers whose paths differ from those of the dialect.

use std::borrow::Cow;

use proofgate_config::ArnInPath;
use proofgate_providers::Dialect;
use proofgate_providers::sigv4::encode_segment;
use proofgate_translate::anthropic_invoke_tokens;
use proofgate_translate::anthropic_raw_predict::supports_messages;

/// The form in which a provider's paths name models.
pub enum PathStyle {
    /// The form of the dialect: without the model, or with the model and method as in Google's or
    /// Amazon's API. [`ArnInPath`] says how an ARN is written.
    Dialect(ArnInPath),
    /// The form of Azure's deployments, with an API version as the query of every path.
    Deployment { query: String },
    /// The form of Vertex AI, below a project's location and the model's publisher.
    Publisher { location: String },
}

impl PathStyle {
    /// Returns the prefix of a dialect's paths below the provider's base URL; `None` if the provider does not have the
    /// dialect.
    pub fn prefix(&self, dialect: Dialect) -> Option<Cow<'static, str>> {
        match (self, dialect) {
            (PathStyle::Dialect(_), _) => Some(dialect.upstream_path().into()),
            (PathStyle::Deployment { .. }, Dialect::Moderations) => None,
            // The Responses path is not below a deployment (openai-python, `lib/azure.py`).
            (PathStyle::Deployment { .. }, dialect) if dialect.uses_responses_format() => {
                Some(dialect.upstream_path().into())
            }
            (PathStyle::Deployment { .. }, _) => Some("/deployments".into()),
            (PathStyle::Publisher { location }, Dialect::Gemini | Dialect::GeminiTokens) => {
                Some(format!("{location}/publishers/google/models").into())
            }
            (PathStyle::Publisher { location }, Dialect::Messages | Dialect::CountTokens) => {
                Some(format!("{location}/publishers/anthropic/models").into())
            }
            (PathStyle::Publisher { .. }, _) => None,
        }
    }

    /// Whether a request in a dialect that the provider supports is sent to a model with its body
    /// unchanged.
    pub(crate) fn passes_through(&self, dialect: Dialect, model: &str) -> bool {
        match (self, dialect) {
            (PathStyle::Publisher { .. }, Dialect::CountTokens) => supports_messages(model),
            (PathStyle::Publisher { .. }, Dialect::Gemini | Dialect::GeminiTokens) => {
                !supports_messages(model)
            }
            (PathStyle::Publisher { .. }, _) | (_, Dialect::GeminiEmbeddings) => false,
            _ => true,
        }
    }

    /// Returns the rest of the path for a model, percent-encoded, with its query; empty if the path
    /// has no such rest.
    pub fn suffix_for(&self, dialect: Dialect, model: &str, stream: bool) -> String {
        match (self, dialect) {
            (PathStyle::Deployment { query }, dialect) if dialect.uses_responses_format() => query.clone(),
            (PathStyle::Deployment { query }, _) => {
                format!("/{}{}{query}", model_segment(model), dialect.upstream_path())
            }
            (PathStyle::Dialect(arn), Dialect::Converse | Dialect::Invoke) => {
                let method = match (dialect, stream) {
                    (Dialect::Converse, false) => "converse",
                    (Dialect::Converse, true) => "converse-stream",
                    (_, false) => "invoke",
                    (_, true) => "invoke-with-response-stream",
                };
                format!("/{}/{method}", bedrock_model(model, *arn))
            }
            (PathStyle::Dialect(arn), Dialect::InvokeTokens) => {
                let model = anthropic_invoke_tokens::counting_model_id(model).unwrap_or(model);
                format!("/{}/count-tokens", bedrock_model(model, *arn))
            }
            (PathStyle::Publisher { .. }, Dialect::Messages) => {
                let method = if stream { "streamRawPredict" } else { "rawPredict" };
                format!("/{}:{method}", model_segment(model))
            }
            // The model is in the body (`AnthropicVertex` of Anthropic's client).
            (PathStyle::Publisher { .. }, Dialect::CountTokens) => "/count-tokens:rawPredict".into(),
            (PathStyle::Dialect(_) | PathStyle::Publisher { .. }, _) => {
                dialect.upstream_model_path(model, stream)
            }
        }
    }
}

/// Writes a Bedrock model ID for a path.
fn bedrock_model(model: &str, arn: ArnInPath) -> String {
    match arn {
        ArnInPath::Literal if model.starts_with("arn:") => {
            let segments = model.split('/').map(model_segment);
            let segments: Vec<String> = segments.map(|part| part.replace("%3A", ":")).collect();
            segments.join("/")
        }
        _ => model_segment(model),
    }
}

fn model_segment(model: &str) -> String {
    let mut encoded = String::new();
    encode_segment(&mut encoded, model);
    encoded
}

#[cfg(test)]
mod tests {
    use proofgate_providers::Dialect;

    use super::PathStyle;

    #[test]
    fn a_deployment_is_one_segment_of_the_path_and_the_version_its_query() {
        let form = PathStyle::Deployment {
            query: "?api-version=2024-10-21".into(),
        };
        for (dialect, path) in [
            (
                Dialect::Chat,
                "/deployments/my%2Fgpt/chat/completions?api-version=2024-10-21",
            ),
            (
                Dialect::Speech,
                "/deployments/my%2Fgpt/audio/speech?api-version=2024-10-21",
            ),
            (Dialect::Responses, "/responses?api-version=2024-10-21"),
            (
                Dialect::ResponseTokens,
                "/responses/input_tokens?api-version=2024-10-21",
            ),
        ] {
            let begin = form.prefix(dialect).unwrap_or_default();
            assert_eq!(
                format!("{begin}{}", form.suffix_for(dialect, "my/gpt", true)),
                path
            );
        }
        assert_eq!(form.prefix(Dialect::Moderations), None);
    }

    #[test]
    fn a_model_of_vertex_ai_stands_below_its_publisher_and_only_there() {
        let form = PathStyle::Publisher {
            location: "/projects/p/locations/l".into(),
        };
        for (dialect, stream, path) in [
            (Dialect::Gemini, false, "google/models/a%2Fb:generateContent"),
            (
                Dialect::Gemini,
                true,
                "google/models/a%2Fb:streamGenerateContent?alt=sse",
            ),
            (Dialect::GeminiTokens, false, "google/models/a%2Fb:countTokens"),
            (Dialect::Messages, false, "anthropic/models/a%2Fb:rawPredict"),
            (Dialect::Messages, true, "anthropic/models/a%2Fb:streamRawPredict"),
            (
                Dialect::CountTokens,
                false,
                "anthropic/models/count-tokens:rawPredict",
            ),
        ] {
            let begin = form.prefix(dialect).unwrap_or_default();
            assert_eq!(
                format!("{begin}{}", form.suffix_for(dialect, "a/b", stream)),
                format!("/projects/p/locations/l/publishers/{path}")
            );
        }
        assert_eq!(form.prefix(Dialect::GeminiEmbedding), None);
        assert!(
            form.passes_through(Dialect::Gemini, "gemini-3")
                && !form.passes_through(Dialect::Gemini, "claude-4")
        );
        assert!(
            form.passes_through(Dialect::CountTokens, "claude-4")
                && !form.passes_through(Dialect::CountTokens, "gemini-3")
        );
    }
}
