//! What the paths of requests to a provider end in, where that is more than the path of a dialect.

use proofgate_providers::Dialect;
use proofgate_providers::sigv4::encode_segment;

use crate::config::ArnInPath;

/// How a provider's paths name models.
pub(crate) enum PathEnd {
    /// As the dialect has it: not at all, or with the method of Google's or Amazon's API. How an ARN stands there.
    Dialect(ArnInPath),
    /// As Azure's deployments, with a version of the API as the query behind all of them.
    Deployment { query: String },
}

impl PathEnd {
    /// Where the paths of a dialect begin below the provider's base; `None` for one that it does not have.
    pub(crate) fn begin(&self, dialect: Dialect) -> Option<&'static str> {
        match (self, dialect) {
            (PathEnd::Dialect(_), _) => Some(dialect.path_upstream()),
            (PathEnd::Deployment { .. }, Dialect::Moderations) => None,
            // It is not below a deployment (openai-python, `lib/azure.py`).
            (PathEnd::Deployment { .. }, Dialect::Responses) => Some(dialect.path_upstream()),
            (PathEnd::Deployment { .. }, _) => Some("/deployments"),
        }
    }

    /// What follows for a model, percent-encoded, with its query; empty where nothing does.
    pub(crate) fn of(&self, dialect: Dialect, model: &str, stream: bool) -> String {
        match (self, dialect) {
            (PathEnd::Deployment { query }, Dialect::Responses) => query.clone(),
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
            (PathEnd::Dialect(_), _) => dialect.model_in_path(model, stream),
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
        ] {
            let begin = form.begin(dialect).unwrap_or_default();
            assert_eq!(format!("{begin}{}", form.of(dialect, "my/gpt", true)), path);
        }
        assert_eq!(form.begin(Dialect::Moderations), None);
    }
}
