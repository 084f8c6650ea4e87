//! Distinguishes a path that a provider does not have from a missing resource that the request
//! names.

/// Maximum bytes of the body that are examined.
const MAX_BODY_BYTES: usize = 4096;

/// Words for the resources that a Responses request names, in providers' errors for a missing resource.
const RESOURCE_WORDS: [&str; 7] = [
    "model",
    "deployment",
    "previous_response",
    "resp_",
    "conversation",
    "item",
    "file",
];

/// Whether a 404 or 405 response means that the path itself does not exist.
pub(super) fn is_missing_path(status: u16, body: &[u8]) -> bool {
    let said = body.get(..MAX_BODY_BYTES).unwrap_or(body);
    let said = String::from_utf8_lossy(said).to_ascii_lowercase();
    status == 405 || !RESOURCE_WORDS.iter().any(|named| said.contains(named))
}

#[cfg(test)]
mod tests {
    use super::is_missing_path;

    #[test]
    fn an_answer_that_names_what_is_missing_says_nothing_of_the_path() {
        for (status, body) in [
            (404, r#"{"detail":"Not Found"}"#),
            (404, "404 page not found"),
            (404, ""),
            (
                404,
                r#"{"error":{"message":"Invalid URL (POST /v1/responses)","type":"invalid_request_error","param":null}}"#,
            ),
            (404, r#"{"error":{"code":"404","message":"Resource not found"}}"#),
            (405, r#"{"detail":"Method Not Allowed"}"#),
        ] {
            assert!(is_missing_path(status, body.as_bytes()), "{body}");
        }
        for body in [
            r#"{"error":{"message":"The model `m` does not exist","code":"model_not_found"}}"#,
            r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment does not exist."}}"#,
            r#"{"error":{"message":"Previous response with id 'resp_1' not found.","code":"previous_response_not_found"}}"#,
            r#"{"error":{"message":"Item with id 'rs_1' not found."}}"#,
        ] {
            assert!(!is_missing_path(404, body.as_bytes()), "{body}");
        }
    }
}
