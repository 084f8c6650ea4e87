//! The framing and connection fields of a head, collected in one pass.

use crate::api_key_headers::ApiKeyHeaders;
use crate::headers::{is_protected, normalize_name_byte};
use crate::protocol_error::ProtocolError;
use crate::syntax::{is_token, trim_ows};
use httparse::Header;

/// The framing and connection fields of a head, each checked separately. The meaning of their
/// combination depends on the kind of message, so the message's parser decides it.
#[derive(Debug, Default)]
pub(crate) struct Fields<'b> {
    pub(crate) host: Option<&'b [u8]>,
    pub(crate) content_length: Option<u64>,
    pub(crate) chunked: bool,
    pub(crate) close: bool,
    /// The other protocol that the head offers, if any.
    pub(crate) upgrade: Upgrade,
    pub(crate) keep_alive: bool,
    pub(crate) expectation: Expectation,
    pub(crate) keys: ApiKeyHeaders<'b>,
    content_type: Option<()>,
}

/// The protocol that the Upgrade fields offer (RFC 9110 section 7.8). If there are several, it is
/// the most demanding one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Upgrade {
    #[default]
    None,
    /// An offer that a server may ignore, such as `h2c`.
    Offered,
    /// A request that is useless without the other protocol (RFC 6455 section 4.1).
    WebSocket,
}

impl Upgrade {
    fn from_value(value: &[u8]) -> Self {
        let is_websocket = value.split(|&byte| byte == b',').any(|protocol| {
            let name = protocol.split(|&byte| byte == b'/').next().unwrap_or_default();
            trim_ows(name).eq_ignore_ascii_case(b"websocket")
        });
        match is_websocket {
            true => Upgrade::WebSocket,
            false => Upgrade::Offered,
        }
    }
}

/// The expectation in the Expect fields.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expectation {
    #[default]
    None,
    Continue,
    Unknown,
}

impl<'b> Fields<'b> {
    /// Reads all of `headers`. Returns the error of the first invalid field.
    pub(crate) fn from_headers(headers: &[Header<'b>]) -> Result<Self, ProtocolError> {
        let mut fields = Self::default();
        for header in headers {
            fields.add(header.name, header.value)?;
        }
        if fields.chunked && fields.content_length.is_some() {
            return Err(ProtocolError::LengthAndCoding);
        }
        Ok(fields)
    }

    fn add(&mut self, name: &str, value: &'b [u8]) -> Result<(), ProtocolError> {
        match name.len() {
            4 if name.eq_ignore_ascii_case("host") => {
                if self.host.is_some() {
                    return Err(ProtocolError::DuplicateHost);
                }
                self.host = Some(value);
            }
            6 if name.eq_ignore_ascii_case("expect") => {
                let known =
                    value.eq_ignore_ascii_case(b"100-continue") && self.expectation == Expectation::None;
                self.expectation = if known {
                    Expectation::Continue
                } else {
                    Expectation::Unknown
                };
            }
            7 if name.eq_ignore_ascii_case("api-key") => set_once(&mut self.keys.api_key, value)?,
            7 if name.eq_ignore_ascii_case("upgrade") => {
                self.upgrade = self.upgrade.max(Upgrade::from_value(value))
            }
            9 if name.eq_ignore_ascii_case("x-api-key") => set_once(&mut self.keys.x_api_key, value)?,
            10 if name.eq_ignore_ascii_case("connection") => self.add_connection(value)?,
            12 if name.eq_ignore_ascii_case("content-type") => set_once(&mut self.content_type, ())?,
            13 if name.eq_ignore_ascii_case("authorization") => {
                set_once(&mut self.keys.authorization, value)?
            }
            14 if name.eq_ignore_ascii_case("content-length") => {
                if self.content_length.is_some() {
                    return Err(ProtocolError::DuplicateContentLength);
                }
                self.content_length =
                    Some(parse_content_length(value).ok_or(ProtocolError::InvalidContentLength)?);
            }
            14 if name.eq_ignore_ascii_case("x-goog-api-key") => {
                set_once(&mut self.keys.x_goog_api_key, value)?
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(ProtocolError::InvalidTransferEncoding);
                }
                self.chunked = true;
            }
            _ => {}
        }
        let differs = name.bytes().fold(false, |differs, byte| {
            differs | (normalize_name_byte(byte) != byte)
        });
        if differs && imitates_protected(name) {
            return Err(ProtocolError::ImitatedHeader);
        }
        Ok(())
    }

    /// Reads the options of one Connection field (RFC 9110 section 7.6.1). Empty list elements are allowed.
    fn add_connection(&mut self, value: &[u8]) -> Result<(), ProtocolError> {
        for option in value
            .split(|&byte| byte == b',')
            .map(trim_ows)
            .filter(|option| !option.is_empty())
        {
            if !is_token(option) {
                return Err(ProtocolError::InvalidConnection);
            }
            if is_protected(option) {
                return Err(ProtocolError::ProtectedConnectionOption);
            }
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
        Ok(())
    }
}

fn set_once<T>(place: &mut Option<T>, value: T) -> Result<(), ProtocolError> {
    match place.replace(value) {
        Some(_) => Err(ProtocolError::DuplicateHeader),
        None => Ok(()),
    }
}

/// Parses `1*DIGIT` (RFC 9110 section 8.6) without leading zeros, below 2^64.
fn parse_content_length(value: &[u8]) -> Option<u64> {
    match value {
        [] => None,
        [b'0', _, ..] => None,
        digits => digits.iter().try_fold(0_u64, |length, byte| {
            let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
            length.checked_mul(10)?.checked_add(digit)
        }),
    }
}

/// Returns whether a server that reads other punctuation as `-` would treat the name as a protected
/// name. CGI's `HTTP_` variables fold `_`, and some servers fold all punctuation.
fn imitates_protected(name: &str) -> bool {
    let mut folded = [0_u8; crate::headers::MAX_KNOWN_NAME_BYTES];
    for (place, byte) in folded.iter_mut().zip(name.bytes()) {
        *place = normalize_name_byte(byte);
    }
    is_protected(&folded[..name.len().min(folded.len())])
}
