//! Access tokens that are sent to a provider instead of a key. They arrive while the gateway runs, and expire.

use std::cell::RefCell;
use std::time::{Duration, Instant};

/// An access token and its expiry. It is a secret, so it has no `Debug`.
pub struct ExpiringToken {
    /// The `Authorization` header line.
    header_line: String,
    expires_at: Instant,
}

impl ExpiringToken {
    /// Creates a token that is valid for `lifetime` from now on; `None` if the text is not a token
    /// (RFC 6750 section 2.1) or its expiry does not fit an `Instant`.
    pub fn new(token: &str, lifetime: Duration) -> Option<Self> {
        let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        let until = Instant::now().checked_add(lifetime)?;
        is_token.then(|| ExpiringToken {
            header_line: format!("Authorization: Bearer {token}\r\n"),
            expires_at: until,
        })
    }
}

/// The access token of one provider; `None` before the first token arrives.
#[derive(Default)]
pub struct AccessToken(RefCell<Option<ExpiringToken>>);

impl AccessToken {
    /// Replaces the token.
    pub fn set(&self, token: ExpiringToken) {
        *self.0.borrow_mut() = Some(token);
    }

    /// Whether there is a token that is valid at `now`.
    pub(crate) fn is_valid(&self, now: Instant) -> bool {
        self.0
            .borrow()
            .as_ref()
            .is_some_and(|token| now < token.expires_at)
    }

    /// Appends the header line to a request.
    pub fn write(&self, fields: &mut Vec<u8>) {
        if let Some(token) = &*self.0.borrow() {
            fields.extend_from_slice(token.header_line.as_bytes());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_valid_until_its_end_and_another_takes_its_place() {
        let (cell, hour) = (AccessToken::default(), Duration::from_secs(3600));
        let now = Instant::now();
        assert!(!cell.is_valid(now));
        cell.set(ExpiringToken::new("one", hour).unwrap());
        assert!(cell.is_valid(now + hour - Duration::from_secs(1)));
        assert!(!cell.is_valid(now + hour + Duration::from_secs(60)));
        cell.set(ExpiringToken::new("two", hour).unwrap());
        let mut fields = b"before".to_vec();
        cell.write(&mut fields);
        assert_eq!(fields, b"beforeAuthorization: Bearer two\r\n");
    }

    #[test]
    fn what_would_end_a_line_is_no_token() {
        for text in ["", "a b", "a\r\nX: y", "\u{e4}"] {
            assert!(
                ExpiringToken::new(text, Duration::from_secs(1)).is_none(),
                "{text:?}"
            );
        }
        assert!(ExpiringToken::new("token", Duration::MAX).is_none());
    }
}
