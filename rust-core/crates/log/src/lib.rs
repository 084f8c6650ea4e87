//! Log output of the core: one line on standard error for each event, in the format of the process's other lines.
//!
//! Python's lines have the same two formats (gateway/src/proofgate/logs.py): text, or JSON with `time`, `level`, `logger`
//! and `message`. The core writes its own lines, because a data-plane thread must not wait for the interpreter.

use proofgate_calendar::{Date, SECONDS_PER_DAY};
use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The severity of an event, as in Python's levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Normal operation.
    Info,
    /// Something that may need attention.
    Warning,
    /// Something that does not work.
    Error,
}

static JSON: AtomicBool = AtomicBool::new(false);

const LOGGER: &str = "proofgate.core";

/// Sets whether lines are JSON or text from now on.
pub fn set_json(json: bool) {
    JSON.store(json, Ordering::Relaxed);
}

/// Writes one line. Errors are ignored.
pub fn write(level: Level, message: fmt::Arguments<'_>) {
    let line = format_line(JSON.load(Ordering::Relaxed), SystemTime::now(), level, message);
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// Writes a line of level info, formatted as by `format!`.
#[macro_export]
macro_rules! info {
    ($($argument:tt)*) => { $crate::write($crate::Level::Info, ::std::format_args!($($argument)*)) };
}

/// Writes a line of level warning, formatted as by `format!`.
#[macro_export]
macro_rules! warning {
    ($($argument:tt)*) => { $crate::write($crate::Level::Warning, ::std::format_args!($($argument)*)) };
}

/// Writes a line of level error, formatted as by `format!`.
#[macro_export]
macro_rules! error {
    ($($argument:tt)*) => { $crate::write($crate::Level::Error, ::std::format_args!($($argument)*)) };
}

fn format_line(json: bool, now: SystemTime, level: Level, message: fmt::Arguments<'_>) -> String {
    let time = rfc3339(now.duration_since(UNIX_EPOCH).unwrap_or_default());
    match json {
        true => {
            let message = to_json_string(&message.to_string());
            let level = level.as_str().to_ascii_lowercase();
            format!(
                "{{\"time\":\"{time}\",\"level\":\"{level}\",\"logger\":\"{LOGGER}\",\"message\":{message}}}\n"
            )
        }
        false => {
            let message: String = message.to_string().chars().map(escape_unprintable).collect();
            format!("{time} {} {LOGGER} {message}\n", level.as_str())
        }
    }
}

/// Escapes a character of a text line. A message may contain text from others, such as file names, which must not forge a
/// line or control a terminal.
fn escape_unprintable(character: char) -> String {
    match character {
        ' '..='~' => character.to_string(),
        other => other.escape_debug().to_string(),
    }
}

/// Writes a JSON string in which all unprintable characters are escaped; JSON itself requires that only for the first 32
/// characters.
fn to_json_string(text: &str) -> String {
    let text = serde_json::Value::String(text.to_owned()).to_string();
    let escaped = text.chars().map(|character| {
        let printed = character.is_ascii_graphic() || character == ' ' || character.escape_debug().len() == 1;
        if printed {
            return character.to_string();
        }
        let mut units = [0; 2];
        let units = character.encode_utf16(&mut units);
        units.iter().map(|unit| format!("\\u{unit:04x}")).collect()
    });
    escaped.collect()
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Level::Info => "INFO",
            Level::Warning => "WARNING",
            Level::Error => "ERROR",
        }
    }
}

/// Formats a time since 1970 in UTC, with milliseconds.
fn rfc3339(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let Date { year, month, day } = Date::from_day_number(seconds / SECONDS_PER_DAY);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let milliseconds = since_1970.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 7)
    }

    #[test]
    fn a_line_of_json_holds_any_message_as_one_line() {
        let text = format_line(
            true,
            at(0),
            Level::Warning,
            format_args!("a \"quote\"\nand é\u{1}"),
        );
        assert_eq!(
            text,
            "{\"time\":\"1970-01-01T00:00:00.007Z\",\"level\":\"warning\",\"logger\":\"proofgate.core\",\
             \"message\":\"a \\\"quote\\\"\\nand é\\u0001\"}\n"
        );
    }

    #[test]
    fn what_others_wrote_forges_no_line_and_steers_no_terminal() {
        let forged = "x\n2026 \"resolved\"\u{1b}[2J\u{9b}2J\u{202e}\u{2028} Größe 大";
        let text = format_line(false, at(0), Level::Error, format_args!("{forged}"));
        assert_eq!(
            text,
            "1970-01-01T00:00:00.007Z ERROR proofgate.core x\\n2026 \"resolved\"\\u{1b}[2J\\u{9b}2J\\u{202e}\\u{2028} Größe 大\n"
        );
        let text = format_line(true, at(0), Level::Error, format_args!("{forged}"));
        assert!(
            text.contains("\\u001b[2J\\u009b2J\\u202e\\u2028 Größe 大"),
            "{text}"
        );
        let read: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        assert_eq!(read["message"], forged);
    }

    #[test]
    fn a_line_of_text_begins_with_time_level_and_logger() {
        let text = format_line(false, at(0), Level::Error, format_args!("{} records", 3));
        assert_eq!(text, "1970-01-01T00:00:00.007Z ERROR proofgate.core 3 records\n");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in [
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
            (1_795_824_000, "2026-11-28T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(Duration::from_secs(seconds)), date);
        }
    }
}
