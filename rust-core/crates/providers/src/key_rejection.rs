use serde::Deserialize;

/// Google's error (google.rpc.Status as JSON, AIP-193).
#[derive(Deserialize)]
struct Report {
    error: Status,
}

#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    details: Vec<Detail>,
}

#[derive(Deserialize)]
struct Detail {
    reason: Option<String>,
}

/// Whether the body of one of Google's errors reports an invalid key, for which Google uses status 400 instead of
/// 401.
#[must_use]
pub fn is_key_rejection(error: &[u8]) -> bool {
    let is_key = |detail: &Detail| detail.reason.as_deref() == Some("API_KEY_INVALID");
    serde_json::from_slice::<Report>(error).is_ok_and(|report| report.error.details.iter().any(is_key))
}
