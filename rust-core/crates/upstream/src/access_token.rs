//! Access tokens that a provider is sent in the place of a key: they come while the gateway runs, and pass.

use std::cell::RefCell;
use std::time::{Duration, Instant};

/// A token, and until when it is one. It is a secret, so it has no `Debug`.
pub struct Token {
    /// The line of a request's head.
    header_line: String,
    expires_at: Instant,
}

impl Token {
    /// A token that is valid for `lifetime` from now on; `None` for what is none (RFC 6750 section 2.1), or ends in no time that
    /// there is.
    pub fn new(token: &str, lifetime: Duration) -> Option<Self> {
        let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        let until = Instant::now().checked_add(lifetime)?;
        is_token.then(|| Token {
            header_line: format!("Authorization: Bearer {token}\r\n"),
            expires_at: until,
        })
    }
}

/// The token of one provider, of which there may be none yet or no more.
#[derive(Default)]
pub struct AccessToken(RefCell<Option<Token>>);

impl AccessToken {
    pub fn set(&self, token: Token) {
        *self.0.borrow_mut() = Some(token);
    }

    /// Whether there is one that is valid at `now`.
    pub(crate) fn is_valid(&self, now: Instant) -> bool {
        self.0
            .borrow()
            .as_ref()
            .is_some_and(|token| now < token.expires_at)
    }

    /// Appends the header line of a request.
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
        cell.set(Token::new("one", hour).unwrap());
        assert!(cell.is_valid(now + hour - Duration::from_secs(1)));
        assert!(!cell.is_valid(now + hour + Duration::from_secs(60)));
        cell.set(Token::new("two", hour).unwrap());
        let mut fields = b"before".to_vec();
        cell.write(&mut fields);
        assert_eq!(fields, b"beforeAuthorization: Bearer two\r\n");
    }

    #[test]
    fn what_would_end_a_line_is_no_token() {
        for text in ["", "a b", "a\r\nX: y", "\u{e4}"] {
            assert!(Token::new(text, Duration::from_secs(1)).is_none(), "{text:?}");
        }
        assert!(Token::new("token", Duration::MAX).is_none());
    }
}
