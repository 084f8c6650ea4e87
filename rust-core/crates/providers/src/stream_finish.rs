use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::dialect::Dialect;
use crate::stream_events::{EventMeaning, event_data};

/// Tracks whether every choice of a stream has a finish reason. If so, and if the body ended properly, the response
/// is complete even without its end marker, which some providers omit (`data: [DONE]`, `message_stop`).
///
/// Only events that give a reason are parsed.
#[derive(Debug)]
pub struct FinishTracker {
    dialect: Dialect,
    /// Number of requested choices.
    choice_count: u64,
    /// The choices that have finished, one bit for each index.
    finished: u64,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u32,
    finish_reason: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct MessageEvent<'d> {
    #[serde(borrow)]
    r#type: Cow<'d, str>,
    delta: Option<MessageDelta>,
}

#[derive(Deserialize)]
struct MessageDelta {
    stop_reason: Option<IgnoredAny>,
}

impl FinishTracker {
    /// Creates a tracker for a new stream with `choices` requested choices.
    #[must_use]
    pub fn new(dialect: Dialect, choices: u64) -> Self {
        FinishTracker {
            dialect,
            choice_count: choices.max(1),
            finished: 0,
        }
    }

    /// Reads a complete event.
    pub fn read_event(&mut self, event: &[u8]) {
        static FINISH_REASON_FINDER: LazyLock<Finder<'static>> =
            LazyLock::new(|| Finder::new(b"\"finish_reason\""));
        static STOP_REASON_FINDER: LazyLock<Finder<'static>> =
            LazyLock::new(|| Finder::new(b"\"stop_reason\""));
        match self.dialect {
            Dialect::Chat | Dialect::Completions if has_non_null_member(event, &FINISH_REASON_FINDER) => {
                let chunk = serde_json::from_slice::<Chunk>(&event_data(event));
                for choice in chunk.into_iter().flat_map(|chunk| chunk.choices) {
                    if choice.finish_reason.is_some() {
                        self.finished |= 1u64.checked_shl(choice.index).unwrap_or(0);
                    }
                }
            }
            Dialect::Messages | Dialect::Invoke if has_non_null_member(event, &STOP_REASON_FINDER) => {
                let data = event_data(event);
                let event = serde_json::from_slice::<MessageEvent<'_>>(&data).ok();
                let event = event.filter(|event| event.r#type == "message_delta");
                let reason = event.and_then(|event| event.delta?.stop_reason);
                self.finished |= u64::from(reason.is_some());
            }
            _ => {}
        }
    }

    /// Whether the response is complete if its body ends properly after `rest`, which is empty or an event without
    /// its final empty line.
    pub fn is_complete_after(&mut self, rest: &[u8]) -> bool {
        let rest = rest.trim_ascii();
        if !rest.is_empty() {
            let is_event = serde_json::from_slice::<IgnoredAny>(&event_data(rest)).is_ok();
            if !is_event || EventMeaning::classify(self.dialect, rest) == EventMeaning::Failure {
                return false;
            }
            self.read_event(rest);
        }
        u64::from(self.finished.count_ones()) >= self.choice_count
    }
}

/// Whether an event has a member with this name and a value other than `null`.
fn has_non_null_member(event: &[u8], name: &Finder<'_>) -> bool {
    name.find_iter(event).any(|at| {
        let value = event.get(at + name.needle().len()..).unwrap_or_default();
        let value = value.trim_ascii_start().strip_prefix(b":");
        value.is_some_and(|value| !value.trim_ascii_start().starts_with(b"null"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(dialect: Dialect, choices: u64, events: &[&str], rest: &str) -> bool {
        let mut finish = FinishTracker::new(dialect, choices);
        events
            .iter()
            .for_each(|event| finish.read_event(event.as_bytes()));
        finish.is_complete_after(rest.as_bytes())
    }

    #[test]
    fn a_stream_is_whole_when_every_choice_has_finished() {
        let begun = r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":null}]}"#;
        let first = r#"data: {"choices":[{"index":0,"finish_reason" : "stop"}]}"#;
        let second = r#"data: {"choices":[{"index":1,"finish_reason":"length"}]}"#;
        for dialect in [Dialect::Chat, Dialect::Completions] {
            assert!(!finished(dialect, 1, &[begun], ""));
            assert!(finished(dialect, 1, &[begun, first], "\n"));
            assert!(!finished(dialect, 2, &[first, first], ""));
            assert!(finished(dialect, 2, &[second, begun, first], ""));
            assert!(
                finished(dialect, 1, &[begun], first),
                "the empty line may be missing"
            );
            assert!(
                !finished(dialect, 1, &[first], r#"data: {"cho"#),
                "an event is cut"
            );
            assert!(!finished(
                dialect,
                1,
                &[first],
                r#"data: {"error":{"message":"m"}}"#
            ));
        }
        let huge = r#"data: {"choices":[{"index":4294967295,"finish_reason":"stop"}]}"#;
        assert!(!finished(Dialect::Chat, 1, &[huge], ""));
    }

    #[test]
    fn a_message_is_whole_when_it_has_told_why_it_stopped() {
        let start = r#"data: {"type":"message_start","message":{"stop_reason":null}}"#;
        let quoted = r#"data: {"type":"content_block_delta","delta":{"text":"\"stop_reason\": 1"}}"#;
        let delta = r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
        assert!(!finished(Dialect::Messages, 1, &[start, quoted], ""));
        assert!(finished(Dialect::Messages, 1, &[start, delta], ""));
    }
}
