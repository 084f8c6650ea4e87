//! Lists of logs (c2sp.org/tlog-list).
//!
//! ```text
//! logs/v0
//!
//! vkey <vkey>
//! [origin <origin>]
//! [qpd <number>]
//! [contact <text>]
//! ```
//!
//! The format requires the last two keys, but they have no effect here, so a list written by hand may omit them.

use crate::WitnessError;
use proofgate_ledger::VerifyingKey;

const HEADER: &str = "logs/v0";
/// The keys of an entry, in order.
const ITEM_KEYS: [&str; 4] = ["vkey", "origin", "qpd", "contact"];

/// A log in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedLog {
    /// The first line of its checkpoints.
    pub origin: String,
    /// The key that signs them.
    pub key: VerifyingKey,
}

/// Parses a list.
///
/// # Errors
/// [`WitnessError::LogList`] with the line and the reason.
pub fn parse_log_list(text: &str) -> Result<Vec<ListedLog>, WitnessError> {
    let mut logs: Vec<ListedLog> = Vec::new();
    // Position of the last key in the order of keys; `None` before the header.
    let mut place = None;
    for (number, line) in text.split('\n').enumerate() {
        let refuse = |reason: &str| WitnessError::LogList {
            line: number + 1,
            reason: reason.to_owned(),
        };
        let line = line.trim_matches([' ', '\t']);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some(last) = place else {
            if line != HEADER {
                return Err(refuse("a list must begin with the line logs/v0"));
            }
            place = Some(ITEM_KEYS.len());
            continue;
        };
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        let value = value.trim_matches([' ', '\t']);
        let Some(at) = ITEM_KEYS.iter().position(|known| *known == key) else {
            return Err(refuse("expected vkey, origin, qpd or contact"));
        };
        if value.is_empty() {
            return Err(refuse("the key has no value"));
        }
        match (at, logs.last_mut()) {
            (0, _) => {
                let key = VerifyingKey::from_text(value).map_err(|error| refuse(&error.to_string()))?;
                logs.push(ListedLog {
                    origin: key.name().to_owned(),
                    key,
                });
            }
            (_, None) => return Err(refuse("a log must begin with its vkey")),
            (at, Some(_)) if at <= last => {
                return Err(refuse("each key must occur once, in the defined order"));
            }
            (1, Some(log)) => value.clone_into(&mut log.origin),
            (2, Some(_)) if !is_number(value) => {
                return Err(refuse("qpd is not a number from 1 to 2147483647"));
            }
            _ => {}
        }
        place = Some(at);
    }
    if place.is_none() {
        return Err(WitnessError::LogList {
            line: 1,
            reason: "a list must begin with the line logs/v0".to_owned(),
        });
    }
    let mut origins: Vec<&str> = logs.iter().map(|log| log.origin.as_str()).collect();
    origins.sort_unstable();
    match origins.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(logs),
        Some(pair) => Err(WitnessError::LogList {
            line: text.lines().count(),
            reason: format!("two logs have the origin {}", pair[0]),
        }),
    }
}

fn is_number(text: &str) -> bool {
    !text.starts_with('0')
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && text.parse::<u32>().is_ok_and(|number| number < 1 << 31)
}

#[cfg(test)]
mod tests;
