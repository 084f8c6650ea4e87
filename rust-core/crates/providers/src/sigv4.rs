//! Signs requests to Amazon Web Services: Signature Version 4, in headers.
//!
//! The signature covers the request as sent: the path as on the wire, and the body after its last
//! rewrite. It is valid for some minutes around its time, so a retry must be signed again.
//!
//! Source: "Signature Version 4 signing process" of the AWS General Reference; the rules for services other than S3.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit, Mac};
use proofgate_calendar::{Date, SECONDS_PER_DAY};
use sha2::{Digest, Sha256};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// 9999-12-31T23:59:59Z: a later year has five digits, which do not fit the date format.
const MAX_TIMESTAMP: u64 = 253_402_300_799;

/// Headers that a proxy may change or extend, and headers that the signer sets itself.
const NEVER_SIGNED: [&str; 20] = [
    "authorization",
    "baggage",
    "connection",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "x-amz-content-sha256",
    "x-amz-date",
    "x-amz-security-token",
    "x-amzn-trace-id",
];

/// AWS credentials. There is no `Debug`, so that no log shows a secret.
///
/// ```compile_fail
/// fn shown<T: std::fmt::Debug>() {}
/// shown::<proofgate_providers::sigv4::Credentials<'_>>();
/// ```
#[derive(Clone, Copy)]
pub struct Credentials<'c> {
    /// The access key id, which is part of the signature.
    pub access_key_id: &'c str,
    /// The secret access key.
    pub secret_access_key: &'c str,
    /// The token of temporary credentials.
    pub session_token: Option<&'c str>,
}

/// The signing key for one day, region and service. It can be reused while [`is_valid_for`](SigningKey::is_valid_for)
/// holds. There is no `Debug`.
///
/// ```compile_fail
/// fn shown<T: std::fmt::Debug>() {}
/// shown::<proofgate_providers::sigv4::SigningKey>();
/// ```
#[derive(Clone)]
pub struct SigningKey {
    key: [u8; 32],
    /// Days since 1970-01-01.
    day: u64,
    region: String,
    service: String,
}

/// Computes the SHA-256 of a body that is read in pieces.
#[derive(Debug, Clone, Default)]
pub struct BodyHash(Sha256);

impl BodyHash {
    /// Adds the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// Returns the hash of all pieces.
    #[must_use]
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// The signed parts of a request head.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'r> {
    /// The method, such as `POST`.
    pub method: &'r str,
    /// The path on the wire, each segment [percent-encoded](encode_segment) once.
    pub path: &'r str,
    /// The query after the question mark, as on the wire; empty if there is none.
    pub query: &'r str,
    /// The value of `host`, which is always signed. The default port `:443` must be omitted here and on the wire.
    pub host: &'r str,
    /// Other headers to sign, with names in any case. Headers that proxies change and headers that
    /// the signer sets are skipped.
    pub headers: &'r [(&'r str, &'r str)],
    /// The SHA-256 of the body as it is sent.
    pub body_sha256: &'r [u8; 32],
    /// Whether to send and sign `x-amz-content-sha256`, as `bedrock-mantle` requires.
    pub with_body_hash: bool,
}

/// The headers that a signature adds to a request.
#[derive(Clone, PartialEq, Eq)]
pub struct Signature {
    /// The value of `authorization`.
    pub authorization: String,
    /// The value of `x-amz-date`, as `20261120T120000Z`.
    pub date: String,
    /// The value of `x-amz-content-sha256`, if requested.
    pub content_sha256: Option<String>,
}

impl SigningKey {
    /// Derives the key from a secret, for the day of `at` (Unix seconds), a region such as `us-east-1` and a service such
    /// as `bedrock`.
    #[must_use]
    pub fn derive(secret_access_key: &str, at: u64, region: &str, service: &str) -> Self {
        let day = day_of(at);
        let date = timestamp(at);
        let key = hmac(
            format!("AWS4{secret_access_key}").as_bytes(),
            &date.as_bytes()[..8],
        );
        let key = hmac(&key, region.as_bytes());
        let key = hmac(&key, service.as_bytes());
        SigningKey {
            key: hmac(&key, b"aws4_request"),
            day,
            region: region.to_owned(),
            service: service.to_owned(),
        }
    }

    /// Whether it is the key for this day (`at` in Unix seconds), region and service. The secret is assumed to be the
    /// same.
    #[must_use]
    pub fn is_valid_for(&self, at: u64, region: &str, service: &str) -> bool {
        self.day == day_of(at) && self.region == region && self.service == service
    }

    /// Signs a request at a time (Unix seconds) on the day of the key; otherwise the provider refuses the signature.
    #[must_use]
    pub fn sign(&self, request: &RequestHead<'_>, credentials: &Credentials<'_>, at: u64) -> Signature {
        let date = timestamp(at);
        let body_hash = hex(request.body_sha256);
        let (canonical, signed) = canonical_request(request, credentials, &date, &body_hash);
        let scope = format!("{}/{}/{}/aws4_request", &date[..8], self.region, self.service);
        let hash = hex(&Sha256::digest(canonical).into());
        let to_sign = format!("{ALGORITHM}\n{date}\n{scope}\n{hash}");
        let signature = hex(&hmac(&self.key, to_sign.as_bytes()));
        Signature {
            authorization: format!(
                "{ALGORITHM} Credential={}/{scope}, SignedHeaders={signed}, Signature={signature}",
                credentials.access_key_id
            ),
            date,
            content_sha256: request.with_body_hash.then_some(body_hash),
        }
    }
}

/// Returns the canonical request, and the names of its signed headers. It is public to debug refused signatures; it
/// contains the session token.
#[must_use]
pub fn canonical_request(
    request: &RequestHead<'_>,
    credentials: &Credentials<'_>,
    date: &str,
    body_hash: &str,
) -> (String, String) {
    let mut headers: Vec<(String, &str)> = Vec::with_capacity(request.headers.len() + 4);
    for &(name, value) in request.headers {
        let name = name.to_ascii_lowercase();
        if !NEVER_SIGNED.contains(&name.as_str()) && !name.starts_with("amz-sdk-") {
            headers.push((name, value));
        }
    }
    let host = request.host.strip_suffix(":443").unwrap_or(request.host);
    headers.push(("host".to_owned(), host));
    headers.push(("x-amz-date".to_owned(), date));
    if let Some(token) = credentials.session_token {
        headers.push(("x-amz-security-token".to_owned(), token));
    }
    if request.with_body_hash {
        headers.push(("x-amz-content-sha256".to_owned(), body_hash));
    }
    // The sort is stable: the values of a repeated header keep their order.
    headers.sort_by(|one, other| one.0.cmp(&other.0));

    let mut canonical = format!("{}\n", request.method);
    write_path(&mut canonical, request.path);
    canonical.push('\n');
    write_query(&mut canonical, request.query);
    let mut names = String::new();
    let mut before = None;
    for (name, value) in &headers {
        if before == Some(name) {
            canonical.push(',');
        } else {
            names.push_str(if before.is_some() { ";" } else { "" });
            names.push_str(name);
            canonical.push('\n');
            canonical.push_str(name);
            canonical.push(':');
        }
        write_collapsed(&mut canonical, value);
        before = Some(name);
    }
    let _ = write!(canonical, "\n\n{names}\n{body_hash}");
    (canonical, names)
}

/// Appends a path segment as on the wire: everything except `A-Z a-z 0-9 - . _ ~` percent-encoded, so that a model's
/// `:` becomes `%3A` and an ARN's `/` becomes `%2F`.
pub fn encode_segment(out: &mut String, segment: &str) {
    percent_encode(out, segment.bytes());
}

fn percent_encode(out: &mut String, bytes: impl Iterator<Item = u8>) {
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

/// Writes the path without empty and dot segments (RFC 3986, section 5.2.4), with each segment encoded once more:
/// only S3 takes the path as is.
fn write_path(out: &mut String, path: &str) {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            _ => segments.push(segment),
        }
    }
    for segment in &segments {
        out.push('/');
        percent_encode(out, segment.bytes());
    }
    if segments.is_empty() || path.ends_with('/') {
        out.push('/');
    }
}

/// Writes the query's pairs, sorted and re-encoded.
fn write_query(out: &mut String, query: &str) {
    let encoded = |text: &str| {
        let mut written = String::with_capacity(text.len());
        percent_encode(&mut written, PercentDecoder(text.as_bytes()));
        written
    };
    let mut pairs: Vec<(String, String)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (encoded(name), encoded(value))
        })
        .collect();
    pairs.sort();
    for (number, (name, value)) in pairs.iter().enumerate() {
        let separator = if number == 0 { "" } else { "&" };
        let _ = write!(out, "{separator}{name}={value}");
    }
}

/// Decodes percent-encoded text; a `%` without two hexadecimal digits is kept.
struct PercentDecoder<'t>(&'t [u8]);

impl Iterator for PercentDecoder<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        let digit = |at: usize| rest.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        if first == b'%'
            && let (Some(high), Some(low)) = (digit(0), digit(1))
        {
            self.0 = &rest[2..];
            return u8::try_from(high * 16 + low).ok();
        }
        self.0 = rest;
        Some(first)
    }
}

/// Writes a header's value trimmed, with each run of blanks collapsed to one.
fn write_collapsed(out: &mut String, value: &str) {
    for (number, word) in value.split_ascii_whitespace().enumerate() {
        out.push_str(if number == 0 { "" } else { " " });
        out.push_str(word);
    }
}

fn hmac(key: &[u8], data: &[u8]) -> [u8; 32] {
    // A key longer than the block is hashed first (RFC 2104, section 2).
    let mut block = [0u8; 64];
    match block.get_mut(..key.len()) {
        Some(start) => start.copy_from_slice(key),
        None => block[..32].copy_from_slice(&Sha256::digest(key)),
    }
    let mut mac = Hmac::<Sha256>::new(&block.into());
    mac.update(data);
    mac.finalize().into_bytes().into()
}

fn hex(bytes: &[u8; 32]) -> String {
    let mut text = String::with_capacity(64);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn day_of(at: u64) -> u64 {
    at.min(MAX_TIMESTAMP) / SECONDS_PER_DAY
}

/// Formats Unix seconds as `20261120T120000Z`.
fn timestamp(at: u64) -> String {
    let at = at.min(MAX_TIMESTAMP);
    let Date { year, month, day } = Date::from_day_number(at / SECONDS_PER_DAY);
    let second = at % SECONDS_PER_DAY;
    format!(
        "{year:04}{month:02}{day:02}T{:02}{:02}{:02}Z",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}
