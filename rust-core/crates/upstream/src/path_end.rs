//! What the paths of requests to a provider end in, where that is more than the path of a dialect.

use std::borrow::Cow;

use proofgate_config::ArnInPath;
use proofgate_providers::Dialect;
use proofgate_providers::sigv4::encode_segment;
use proofgate_translate::anthropic_invoke_tokens;
use proofgate_translate::anthropic_raw_predict::takes_messages;

/// How a provider's paths name models.
pub enum PathEnd {
    /// As the dialect has it: not at all, or with the method of Google's or Amazon's API. How an ARN stands there.
    Dialect(ArnInPath),
    /// As Azure's deployments, with a version of the API as the query behind all of them.
    Deployment { query: String },
    /// As Vertex AI's, below a project's location and the publisher of the model.
    Publisher { location: String },
}

impl PathEnd {
    /// Where the paths of a dialect begin below the provider's base; `None` for one that it does not have.
    pub fn begin(&self, dialect: Dialect) -> Option<Cow<'static, str>> {
        match (self, dialect) {
            (PathEnd::Dialect(_), _) => Some(dialect.path_upstream().into()),
            (PathEnd::Deployment { .. }, Dialect::Moderations) => None,
            // It is not below a deployment (openai-python, `lib/azure.py`).
            (PathEnd::Deployment { .. }, dialect) if dialect.asks_as_responses() => {
                Some(dialect.path_upstream().into())
            }
            (PathEnd::Deployment { .. }, _) => Some("/deployments".into()),
            (PathEnd::Publisher { location }, Dialect::Gemini | Dialect::GeminiTokens) => {
                Some(format!("{location}/publishers/google/models").into())
            }
            (PathEnd::Publisher { location }, Dialect::Messages | Dialect::CountTokens) => {
                Some(format!("{location}/publishers/anthropic/models").into())
            }
            (PathEnd::Publisher { .. }, _) => None,
        }
    }

    /// Whether a client that speaks a dialect which the provider has is passed through to a model there, with its body as it is.
    pub(crate) fn passes(&self, dialect: Dialect, model: &str) -> bool {
        match (self, dialect) {
            (PathEnd::Publisher { .. }, Dialect::CountTokens) => takes_messages(model),
            (PathEnd::Publisher { .. }, Dialect::Gemini | Dialect::GeminiTokens) => !takes_messages(model),
            (PathEnd::Publisher { .. }, _) | (_, Dialect::GeminiEmbeddings) => false,
            _ => true,
        }
    }

    /// What follows for a model, percent-encoded, with its query; empty where nothing does.
    pub fn of(&self, dialect: Dialect, model: &str, stream: bool) -> String {
        match (self, dialect) {
            (PathEnd::Deployment { query }, dialect) if dialect.asks_as_responses() => query.clone(),
            (PathEnd::Deployment { query }, _) => {
                format!("/{}{}{query}", segment(model), dialect.path_upstream())
            }
            (PathEnd::Dialect(arn), Dialect::Converse | Dialect::Invoke) => {
                let method = match (dialect, stream) {
                    (Dialect::Converse, false) => "converse",
                    (Dialect::Converse, true) => "converse-stream",
                    (_, false) => "invoke",
                    (_, true) => "invoke-with-response-stream",
                };
                format!("/{}/{method}", bedrock_model(model, *arn))
            }
            (PathEnd::Dialect(arn), Dialect::InvokeTokens) => {
                let model = anthropic_invoke_tokens::model(model).unwrap_or(model);
                format!("/{}/count-tokens", bedrock_model(model, *arn))
            }
            (PathEnd::Publisher { .. }, Dialect::Messages) => {
                let method = if stream { "streamRawPredict" } else { "rawPredict" };
                format!("/{}:{method}", segment(model))
            }
            // The model stands in the body (`AnthropicVertex` of Anthropic's client).
            (PathEnd::Publisher { .. }, Dialect::CountTokens) => "/count-tokens:rawPredict".into(),
            (PathEnd::Dialect(_) | PathEnd::Publisher { .. }, _) => dialect.model_in_path(model, stream),
        }
    }
}

/// A model of Bedrock's in a path.
fn bedrock_model(model: &str, arn: ArnInPath) -> String {
    match arn {
        ArnInPath::Literal if model.starts_with("arn:") => {
            let segments = model.split('/').map(segment);
            let segments: Vec<String> = segments.map(|part| part.replace("%3A", ":")).collect();
            segments.join("/")
        }
        _ => segment(model),
    }
}

fn segment(model: &str) -> String {
    let mut encoded = String::new();
    encode_segment(&mut encoded, model);
    encoded
}

#[cfg(test)]
mod tests {
    use proofgate_providers::Dialect;

    use super::PathEnd;

    #[test]
    fn a_deployment_is_one_segment_of_the_path_and_the_version_its_query() {
        let form = PathEnd::Deployment {
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
            let begin = form.begin(dialect).unwrap_or_default();
            assert_eq!(format!("{begin}{}", form.of(dialect, "my/gpt", true)), path);
        }
        assert_eq!(form.begin(Dialect::Moderations), None);
    }

    #[test]
    fn a_model_of_vertex_ai_stands_below_its_publisher_and_only_there() {
        let form = PathEnd::Publisher {
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
            let begin = form.begin(dialect).unwrap_or_default();
            assert_eq!(
                format!("{begin}{}", form.of(dialect, "a/b", stream)),
                format!("/projects/p/locations/l/publishers/{path}")
            );
        }
        assert_eq!(form.begin(Dialect::GeminiEmbedding), None);
        assert!(form.passes(Dialect::Gemini, "gemini-3") && !form.passes(Dialect::Gemini, "claude-4"));
        assert!(
            form.passes(Dialect::CountTokens, "claude-4") && !form.passes(Dialect::CountTokens, "gemini-3")
        );
    }
}
