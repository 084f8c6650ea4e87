//! Detects whether a response with a success status starts as a response, or with an error that the provider hit
//! after it had sent the head.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::body_kind::{BYTE_ORDER_MARK, BodyKind};
use crate::dialect::Dialect;
use crate::frame_events::EXCEPTION_PREFIX;
use crate::growth::GrowthCheck;
use crate::stream_events::{EventBoundaries, EventMeaning, event_parts};

/// The kind of a response with a success status, as its first bytes show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseStart {
    /// Not known yet.
    Unknown,
    /// A response of the model.
    Success,
    /// The provider failed.
    Failure {
        /// The HTTP status that the provider's API uses for the same error.
        status: u16,
    },
}

/// Inspects the beginning of a body as it arrives: each event once, and a body without events [as it
/// grows](GrowthCheck).
#[derive(Debug)]
pub struct ResponseStartReader {
    dialect: Dialect,
    is_event_stream: bool,
    growth_check: GrowthCheck,
    event_boundaries: EventBoundaries,
    /// The start of the current event, and the end of the part searched for the event's end.
    event_start: usize,
    searched: usize,
}

impl ResponseStartReader {
    /// Creates a reader for a body in `dialect`.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        ResponseStartReader {
            dialect,
            is_event_stream: false,
            growth_check: GrowthCheck::default(),
            event_boundaries: EventBoundaries::default(),
            event_start: 0,
            searched: 0,
        }
    }

    /// Classifies a body from its first bytes. `begin` is the whole part received so far; Amazon's
    /// frames must be passed as decoded events. `is_whole`: whether nothing follows.
    ///
    /// Comments, pings and the events that announce a response before any of its content (`message_start`,
    /// `response.created`) are not conclusive.
    #[must_use]
    pub fn inspect(&mut self, begin: &[u8], is_whole: bool) -> ResponseStart {
        let found = if self.is_event_stream {
            self.inspect_events(begin)
        } else if self.growth_check.check_due(begin.len()) || is_whole {
            self.inspect_any(begin)
        } else {
            ResponseStart::Unknown
        };
        match found {
            ResponseStart::Unknown if is_whole => ResponseStart::Success,
            found => found,
        }
    }

    fn inspect_any(&mut self, begin: &[u8]) -> ResponseStart {
        match BodyKind::detect(begin) {
            None => ResponseStart::Unknown,
            Some(BodyKind::Events) => {
                self.is_event_stream = true;
                if begin.starts_with(BYTE_ORDER_MARK) {
                    (self.event_start, self.searched) = (BYTE_ORDER_MARK.len(), BYTE_ORDER_MARK.len());
                }
                self.inspect_events(begin)
            }
            Some(BodyKind::Object) => classify_object(self.dialect, begin),
            // Google's compatible endpoints wrap an error in an array.
            Some(BodyKind::Other) => match begin.trim_ascii().strip_prefix(b"[") {
                Some(list) if !list.trim_ascii_start().starts_with(b"{") && !list.is_empty() => {
                    ResponseStart::Success
                }
                Some(list) => {
                    classify_object(self.dialect, list.strip_suffix(b"]").unwrap_or(list).trim_ascii())
                }
                None => ResponseStart::Success,
            },
        }
    }

    fn inspect_events(&mut self, begin: &[u8]) -> ResponseStart {
        while let Some(length) = self.event_boundaries.next_boundary(&begin[self.searched..]) {
            let end = self.searched + length;
            let event = &begin[self.event_start..end];
            (self.event_start, self.searched) = (end, end);
            if let Some(found) = classify_event(self.dialect, event) {
                return found;
            }
        }
        self.searched = begin.len();
        ResponseStart::Unknown
    }
}

/// Classifies an event, if it is conclusive.
fn classify_event(dialect: Dialect, event: &[u8]) -> Option<ResponseStart> {
    let (name, data) = event_parts(event);
    if let Some(exception) = name.strip_prefix(EXCEPTION_PREFIX) {
        return Some(ResponseStart::Failure {
            status: exception_status(exception),
        });
    }
    if data.trim_ascii().is_empty() || is_preamble_event(dialect, name, &data) {
        return None;
    }
    let says_error = match dialect {
        Dialect::Invoke => EventMeaning::classify(Dialect::Messages, event) == EventMeaning::Failure,
        Dialect::Gemini => true,
        _ => EventMeaning::classify(dialect, event) == EventMeaning::Failure,
    };
    let status = says_error.then(|| error_document_status(&data)).flatten();
    Some(status.map_or(ResponseStart::Success, |status| ResponseStart::Failure { status }))
}

/// Whether an event comes before any content of the response.
fn is_preamble_event(dialect: Dialect, name: &str, data: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Typed {
        r#type: String,
    }
    let announcements: &[&str] = match dialect {
        Dialect::Messages | Dialect::Invoke => &["message_start", "ping"],
        Dialect::Responses => &["response.created", "response.queued", "response.in_progress"],
        Dialect::Converse => return name == "messageStart",
        _ => return false,
    };
    let typed: Option<Typed> = serde_json::from_slice(data).ok();
    typed.is_some_and(|typed| announcements.contains(&typed.r#type.as_str()))
}

/// Classifies a body that begins like an object. If its first member is not an error, the rest is
/// not read.
fn classify_object(dialect: Dialect, begin: &[u8]) -> ResponseStart {
    let firsts: &[&[u8]] = match dialect {
        Dialect::Messages => &[b"\"error\":", b"\"type\":\"error\""],
        _ => &[b"\"error\":"],
    };
    // The first non-whitespace bytes, enough to identify the first member.
    let first = begin.iter().copied().filter(|byte| !byte.is_ascii_whitespace());
    let first: Vec<u8> = first.skip_while(|byte| *byte != b'{').skip(1).take(16).collect();
    let is_error = firsts.iter().any(|error| first.starts_with(error));
    let may_be_error = firsts.iter().any(|error| error.starts_with(&first));
    match is_error {
        false if !may_be_error => ResponseStart::Success,
        true if serde_json::from_slice::<IgnoredAny>(begin.trim_ascii()).is_ok() => {
            match error_document_status(begin) {
                Some(status) => ResponseStart::Failure { status },
                None => ResponseStart::Success,
            }
        }
        _ => ResponseStart::Unknown,
    }
}

/// Returns the status of an error document: `{"error": {…}}` with a numeric code or with error names. In a stream of
/// Responses, the event itself and the response in it may also be the error.
fn error_document_status(document: &[u8]) -> Option<u16> {
    let document: Value = serde_json::from_slice(document).ok()?;
    let is_flat = document["type"] == "error" && !document["error"].is_object();
    let error = match is_flat {
        true => &document,
        false if document["response"]["error"].is_object() => &document["response"]["error"],
        false => Some(&document["error"]).filter(|error| !error.is_null())?,
    };
    let number = |value: &Value| {
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
        number
            .and_then(|number| u16::try_from(number).ok())
            .filter(|status| (400..600).contains(status))
    };
    let told = number(&error["code"]).or_else(|| number(&error["status"]));
    let names = [&error["code"], &error["type"], &error["status"]];
    let named = || names.iter().find_map(|name| error_name_status(name.as_str()?));
    Some(told.or_else(named).unwrap_or(500))
}

/// Returns the status for an error name of OpenAI, Anthropic or Google. Unknown names count as
/// failures of the provider.
fn error_name_status(name: &str) -> Option<u16> {
    Some(match name.to_ascii_lowercase().as_str() {
        "invalid_request_error" | "invalid_argument" | "failed_precondition" | "context_length_exceeded" => {
            400
        }
        "authentication_error" | "invalid_api_key" | "unauthenticated" => 401,
        "billing_error" => 402,
        "permission_error" | "permission_denied" => 403,
        "not_found_error" | "model_not_found" | "not_found" => 404,
        "request_too_large" => 413,
        "rate_limit_error"
        | "rate_limit_exceeded"
        | "insufficient_quota"
        | "slow_down"
        | "resource_exhausted" => 429,
        "server_is_overloaded" | "overloaded" | "unavailable" | "service_unavailable" => 503,
        "timeout_error" | "deadline_exceeded" => 504,
        "overloaded_error" => 529,
        _ => return None,
    })
}

/// Returns the status for a Bedrock error. Source: botocore 1.44.5, errors of ConverseStream and
/// InvokeModelWithResponseStream.
fn exception_status(name: &str) -> u16 {
    let name = name.strip_suffix("Exception").unwrap_or(name);
    match name.to_ascii_lowercase().as_str() {
        "validation" | "servicequotaexceeded" => 400,
        "accessdenied" => 403,
        "resourcenotfound" => 404,
        "modeltimeout" => 408,
        "modelerror" | "modelstreamerror" => 424,
        "throttling" | "modelnotready" => 429,
        "serviceunavailable" => 503,
        _ => 500,
    }
}

#[cfg(test)]
mod tests {
    use super::ResponseStart::{self, Success, Unknown};
    use super::ResponseStartReader;
    use crate::dialect::Dialect;

    /// Classifies a beginning, and checks that the result is the same in one piece and byte by byte.
    fn of(dialect: Dialect, begin: &str) -> ResponseStart {
        let found = look(dialect, begin, false);
        let mut reader = ResponseStartReader::new(dialect);
        let mut looks = (1..=begin.len()).map(|length| reader.inspect(&begin.as_bytes()[..length], false));
        let first = looks.find(|found| *found != Unknown);
        assert!(first.is_none_or(|first| first == found), "{begin}");
        found
    }

    fn look(dialect: Dialect, begin: &str, is_whole: bool) -> ResponseStart {
        ResponseStartReader::new(dialect).inspect(begin.as_bytes(), is_whole)
    }

    fn failure(status: u16) -> ResponseStart {
        ResponseStart::Failure { status }
    }

    #[test]
    fn the_first_event_of_each_dialect_tells_its_failure_as_a_status() {
        use Dialect::{Chat, Converse, Gemini, Invoke, Messages, Responses};
        for (dialect, event, found) in [
            (
                Messages,
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}",
                failure(529),
            ),
            (
                Messages,
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\"}}",
                failure(429),
            ),
            (
                Messages,
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\"}}",
                failure(500),
            ),
            (
                Chat,
                "data: {\"error\":{\"message\":\"m\",\"type\":\"server_error\",\"code\":null}}",
                failure(500),
            ),
            (
                Chat,
                "data: {\"error\":{\"code\":502,\"message\":\"m\"},\"choices\":[]}",
                failure(502),
            ),
            (
                Chat,
                "data: {\"error\":{\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}",
                failure(429),
            ),
            (Chat, "data: {\"error\":\"broken\"}", failure(500)),
            (Chat, "data: {\"error\":null,\"choices\":[]}", Success),
            (
                Chat,
                "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}",
                Success,
            ),
            (Chat, "data: [DONE]", Success),
            (
                Responses,
                "event: error\ndata: {\"type\":\"error\",\"code\":\"server_is_overloaded\",\"message\":\"m\"}",
                failure(503),
            ),
            (
                Responses,
                "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"rate_limit_exceeded\"}}}",
                failure(429),
            ),
            (
                Gemini,
                "data: {\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\"}}",
                failure(503),
            ),
            (Gemini, "data: {\"candidates\":[]}", Success),
            (
                Converse,
                "event: exception:throttlingException\ndata: {\"message\":\"m\"}",
                failure(429),
            ),
            (
                Converse,
                "event: exception:modelStreamErrorException\ndata: {}",
                failure(424),
            ),
            (
                Converse,
                "event: contentBlockDelta\ndata: {\"delta\":{\"text\":\"Hi\"}}",
                Success,
            ),
            (
                Invoke,
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
                failure(529),
            ),
        ] {
            assert_eq!(of(dialect, &format!("{event}\n\n")), found, "{event}");
            assert_eq!(of(dialect, event), Unknown, "it is not whole: {event}");
        }
    }

    #[test]
    fn comments_pings_and_announcements_say_nothing() {
        let error = "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n";
        for (dialect, before) in [
            (
                Dialect::Messages,
                ": processing\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n",
            ),
            (
                Dialect::Messages,
                "data: {\"type\":\"message_start\",\"message\":{}}\n\n",
            ),
            (
                Dialect::Responses,
                "data: {\"type\":\"response.created\"}\n\ndata: {\"type\":\"response.in_progress\"}\n\n",
            ),
            (
                Dialect::Converse,
                "event: messageStart\ndata: {\"role\":\"assistant\"}\n\n",
            ),
        ] {
            assert_eq!(of(dialect, before), Unknown, "{before}");
            assert_eq!(look(dialect, before, true), Success, "nothing follows");
            if dialect != Dialect::Converse {
                assert_eq!(of(dialect, &format!("{before}{error}")), failure(529), "{before}");
            }
        }
    }

    #[test]
    fn a_whole_answer_is_read_on_only_while_its_first_member_may_be_an_error() {
        for (dialect, begin, found) in [
            (Dialect::Chat, "", Unknown),
            (Dialect::Chat, "\n\n {", Unknown),
            (Dialect::Chat, "{ \"er", Unknown),
            (Dialect::Chat, "{\"error\":{\"code\":429,", Unknown),
            (
                Dialect::Chat,
                "{ \"error\": {\"code\":429,\"message\":\"m\"},\"user_id\":\"u\"}\n",
                failure(429),
            ),
            (Dialect::Chat, "{\"error\":null}", Success),
            (Dialect::Chat, "{\"id\":\"x\",\"error\":{}", Success),
            (Dialect::Chat, "plain", Success),
            (Dialect::Messages, "{\"type\": \"err", Unknown),
            (
                Dialect::Messages,
                "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
                failure(529),
            ),
            (Dialect::Messages, "{\"type\":\"message\",", Success),
            (Dialect::Gemini, "[{\n  \"error\": {\"code\": 503", Unknown),
            (
                Dialect::Gemini,
                "[{\n  \"error\": {\"code\": 503, \"status\": \"UNAVAILABLE\"}\n}\n]\n",
                failure(503),
            ),
            (
                Dialect::Gemini,
                "{\"error\": {\"status\": \"RESOURCE_EXHAUSTED\"}}",
                failure(429),
            ),
            (Dialect::Embeddings, "[1]", Success),
        ] {
            assert_eq!(of(dialect, begin), found, "{begin}");
        }
    }
}
