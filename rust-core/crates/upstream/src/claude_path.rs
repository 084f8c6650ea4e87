//! Paths of Claude clients that speak to Amazon Bedrock or Vertex AI. They name the model and say whether the response is
//! streamed.

use proofgate_providers::Dialect;

use crate::google_path::{BodyForm, PathError, PathParams, model_name};

const BEDROCK: &str = "/model/";
const PROJECTS: &str = "/projects/";
const PUBLISHER: &str = "/publishers/anthropic/models/";

/// The dialect of a Claude client's path, and its parameters.
pub type ClaudePath = (Dialect, PathParams);

/// Whether only Bedrock clients request this path.
pub fn is_bedrock_path(path: &str) -> bool {
    path.starts_with(BEDROCK)
}

/// Parses a path; `None` if it is not a served path of these APIs. The model name is percent-decoded once.
pub fn parse(path: &str) -> Option<Result<ClaudePath, PathError>> {
    if let Some(rest) = path.strip_prefix(BEDROCK) {
        let (name, method) = rest.rsplit_once('/')?;
        let stream = match method {
            "invoke" => false,
            "invoke-with-response-stream" => true,
            _ => return None,
        };
        return Some(messages_path(name, stream, BodyForm::Invoke));
    }
    // A client's base URL may or may not end with the version.
    let rest = path.strip_prefix("/v1").unwrap_or(path).strip_prefix(PROJECTS)?;
    let (place, rest) = rest.split_once(PUBLISHER)?;
    let (project, location) = place.split_once("/locations/")?;
    if project.is_empty() || location.is_empty() || project.contains('/') || location.contains('/') {
        return None;
    }
    let (name, method) = rest.rsplit_once(':')?;
    match (name, method) {
        // The body names the model.
        ("count-tokens", "rawPredict") => Some(Ok((
            Dialect::CountTokens,
            PathParams {
                model: String::new(),
                stream: None,
                form: BodyForm::RawPredict,
            },
        ))),
        (_, "rawPredict") => Some(messages_path(name, false, BodyForm::RawPredict)),
        (_, "streamRawPredict") => Some(messages_path(name, true, BodyForm::RawPredict)),
        _ => None,
    }
}

fn messages_path(name: &str, stream: bool, form: BodyForm) -> Result<ClaudePath, PathError> {
    let model = model_name(name).ok_or(PathError::InvalidModel)?;
    let stream = Some(stream);
    Ok((Dialect::Messages, PathParams { model, stream, form }))
}

#[cfg(test)]
mod tests {
    use proofgate_providers::Dialect;

    use super::parse;
    use crate::google_path::{BodyForm, PathError};

    #[test]
    fn the_path_names_the_model_and_says_whether_the_answer_is_streamed() {
        let vertex = "/projects/p-1/locations/europe-west1/publishers/anthropic/models";
        for (path, model, stream, form) in [
            (
                "/model/claude/invoke".to_owned(),
                "claude",
                false,
                BodyForm::Invoke,
            ),
            (
                "/model/us.anthropic.claude-sonnet-5-v1%3A0/invoke-with-response-stream".to_owned(),
                "us.anthropic.claude-sonnet-5-v1:0",
                true,
                BodyForm::Invoke,
            ),
            (
                "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fx/invoke".to_owned(),
                "arn:aws:bedrock:us-east-1:1:inference-profile/x",
                false,
                BodyForm::Invoke,
            ),
            (
                format!("/v1{vertex}/claude-5@20261001:rawPredict"),
                "claude-5@20261001",
                false,
                BodyForm::RawPredict,
            ),
            (
                format!("{vertex}/claude-5:streamRawPredict"),
                "claude-5",
                true,
                BodyForm::RawPredict,
            ),
        ] {
            let (dialect, in_path) = parse(&path).unwrap().unwrap();
            assert_eq!(
                (dialect, in_path.model.as_str(), in_path.stream, in_path.form),
                (Dialect::Messages, model, Some(stream), form),
                "{path}"
            );
        }
        let (dialect, in_path) = parse(&format!("/v1{vertex}/count-tokens:rawPredict"))
            .unwrap()
            .unwrap();
        assert_eq!(
            (dialect, in_path.model.as_str(), in_path.stream),
            (Dialect::CountTokens, "", None)
        );
    }

    #[test]
    fn what_is_no_name_of_a_model_is_refused() {
        for path in [
            "/model//invoke",
            "/model/../invoke",
            "/model/a/%2E%2E/invoke",
            "/projects/p/locations/l/publishers/anthropic/models/:rawPredict",
        ] {
            assert_eq!(parse(path), Some(Err(PathError::InvalidModel)), "{path}");
        }
    }

    #[test]
    fn what_else_there_is_is_no_path_of_theirs() {
        for path in [
            "/model/claude",
            "/model/claude/converse",
            "/model/invoke",
            "/models/claude/invoke",
            "/v1/model/claude/invoke",
            "/projects/p/locations/l/publishers/google/models/g:rawPredict",
            "/projects/p/publishers/anthropic/models/m:rawPredict",
            "/projects/a/b/locations/l/publishers/anthropic/models/m:rawPredict",
            "/projects/p/locations/l/publishers/anthropic/models/m:predict",
            "/v1beta/projects/p/locations/l/publishers/anthropic/models/m:rawPredict",
        ] {
            assert_eq!(parse(path), None, "{path}");
        }
    }
}
