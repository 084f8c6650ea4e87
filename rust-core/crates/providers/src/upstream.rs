use std::fmt;

use crate::dialect::{Dialect, Family};
use crate::storage_operation::StorageOperation;

/// The reason why a provider's `baseURL` is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BaseUrlError {
    /// The scheme is neither `http` nor `https`.
    #[error("baseURL must begin with http:// or https://")]
    Scheme,
    /// The host is empty or contains an invalid byte.
    #[error("baseURL needs a host, without user information")]
    Host,
    /// The port is not a number from 1 to 65535.
    #[error("baseURL has a port that is not a number from 1 to 65535")]
    Port,
    /// The path contains a space, a control byte, a query or a fragment.
    #[error("baseURL must have only a path after the host, without query or fragment")]
    Path,
}

/// The base URL of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BaseUrl {
    /// Whether the connection is made over TLS.
    pub tls: bool,
    /// Host name or address; an IPv6 address without its brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path without its trailing slash, such as `/v1`.
    pub path: String,
    /// The value of `Host`: the authority as written, without a default port.
    authority: String,
}

impl BaseUrl {
    /// Parses an absolute `http` or `https` URL (RFC 3986 section 4.3).
    ///
    /// # Errors
    /// [`BaseUrlError`] naming the part that is wrong.
    pub fn parse(url: &str) -> Result<Self, BaseUrlError> {
        let (tls, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return Err(BaseUrlError::Scheme),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if !path
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'?' && byte != b'#')
        {
            return Err(BaseUrlError::Path);
        }
        let default = if tls { ":443" } else { ":80" };
        let (host, port) = split_port(authority)?;
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
        if host.is_empty() || !host.bytes().all(allowed) {
            return Err(BaseUrlError::Host);
        }
        Ok(BaseUrl {
            tls,
            host: host.to_owned(),
            port: port.unwrap_or(if tls { 443 } else { 80 }),
            path: path.trim_end_matches('/').to_owned(),
            authority: authority.strip_suffix(default).unwrap_or(authority).to_owned(),
        })
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), BaseUrlError> {
    let after_address = authority.rfind(']').map_or(0, |end| end + 1);
    match authority[after_address..].rfind(':') {
        None => Ok((authority, None)),
        Some(colon) => {
            let (host, port) = authority.split_at(after_address + colon);
            match port[1..].parse::<u16>() {
                Ok(port) if port != 0 => Ok((host, Some(port))),
                _ => Err(BaseUrlError::Port),
            }
        }
    }
}

/// The content type of JSON bodies.
pub const CONTENT_TYPE: &str = "application/json";

/// A provider's key, and how it is sent.
#[derive(Clone, Copy)]
pub struct ProviderKey<'k> {
    /// The header's name and the prefix of its value, such as `Authorization: Bearer `.
    pub header_prefix: &'static str,
    /// The key.
    pub key: &'k str,
}

/// The head of requests to one provider in one dialect, built once; only the parts that differ are filled in per
/// request.
#[derive(Clone)]
pub struct RequestTemplate {
    /// The path up to the model; the whole path if it contains no model.
    path: String,
    method: &'static str,
    /// Whether requests have a body and state its length.
    has_body: bool,
    before_fields: Vec<u8>,
    host: String,
}

impl RequestTemplate {
    /// Creates a template for the dialect's path below `base`, which corresponds to the clients' `/v1`.
    pub fn new(base: &BaseUrl, dialect: Dialect, api_key: Option<ProviderKey<'_>>) -> Self {
        RequestTemplate::for_endpoint(base, dialect.upstream_path(), dialect, api_key)
    }

    /// Creates a template for another path below `base`.
    pub fn for_endpoint(
        base: &BaseUrl,
        endpoint: &str,
        dialect: Dialect,
        api_key: Option<ProviderKey<'_>>,
    ) -> Self {
        let BaseUrl { path, authority, .. } = base;
        let accept = match dialect {
            // Responses are recordings of any type.
            Dialect::Speech => "*/*",
            Dialect::Storage(StorageOperation::FileContent) => "*/*",
            Dialect::Storage(_) => "application/json",
            _ if dialect.has_form() => "*/*",
            // The content type differs when the response is streamed.
            _ if dialect.family() == Family::Amazon => "*/*",
            _ => "application/json, text/event-stream",
        };
        let mut head = format!(
            " HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: proofgate/{}\r\n\
             Accept: {accept}\r\nAccept-Encoding: identity\r\n",
            env!("CARGO_PKG_VERSION"),
        );
        if dialect.has_body() && !dialect.has_form() {
            // The content type of a form contains its boundary.
            head.push_str("Content-Type: ");
            head.push_str(CONTENT_TYPE);
            head.push_str("\r\n");
        }
        if let Some(ProviderKey {
            header_prefix: field,
            key,
        }) = api_key
        {
            for part in [field, key, "\r\n"] {
                head.push_str(part);
            }
        }
        RequestTemplate {
            path: format!("{path}{endpoint}"),
            method: dialect.method(),
            has_body: dialect.has_body() || dialect.method() == "POST",
            before_fields: head.into_bytes(),
            host: authority.clone(),
        }
    }

    /// Adds header lines, each including its line end.
    #[must_use]
    pub fn with_header_lines(mut self, lines: &[u8]) -> Self {
        self.before_fields.extend_from_slice(lines);
        self
    }

    /// Returns the value of `Host`.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the path of a request, followed by `model` as in [`write`](Self::write).
    pub fn path(&self, model: &str) -> String {
        format!("{}{model}", self.path)
    }

    /// Writes the head of a request with a body of `length` bytes. `fields`: header lines of this request only.
    /// `model`: the end of the path, percent-encoded, in dialects with the model in the path.
    pub fn write(&self, request_id: &str, length: usize, model: &str, fields: &[u8], out: &mut Vec<u8>) {
        self.write_with_framing(request_id, Some(length as u64), model, fields, out);
    }

    /// Like [`write`](Self::write), for a body that is still arriving. A body without a `length` is
    /// sent in chunks (RFC 9112 section 7.1).
    pub fn write_with_framing(
        &self,
        request_id: &str,
        length: Option<u64>,
        model: &str,
        fields: &[u8],
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(self.method.as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.path.as_bytes());
        out.extend_from_slice(model.as_bytes());
        out.extend_from_slice(&self.before_fields);
        out.extend_from_slice(fields);
        out.extend_from_slice(b"X-Request-Id: ");
        out.extend_from_slice(request_id.as_bytes());
        match length {
            // A request without a body needs no length (RFC 9110 section 8.6).
            Some(0) if !self.has_body => {}
            Some(length) => {
                out.extend_from_slice(b"\r\nContent-Length: ");
                out.extend_from_slice(length.to_string().as_bytes());
            }
            None => out.extend_from_slice(b"\r\nTransfer-Encoding: chunked"),
        }
        out.extend_from_slice(b"\r\n\r\n");
    }
}

impl fmt::Debug for RequestTemplate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RequestTemplate { .. }")
    }
}
