use std::fmt;

use crate::dialect::{Dialect, Family};
use crate::stored::StorageOperation;

/// Why a provider's `baseURL` is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BaseUrlError {
    /// The scheme is neither `http` nor `https`.
    #[error("baseURL must begin with http:// or https://")]
    Scheme,
    /// The host is empty or holds a byte that no host has.
    #[error("baseURL needs a host, without user information")]
    Host,
    /// The port is not a number from 1 to 65535.
    #[error("baseURL has a port that is not a number from 1 to 65535")]
    Port,
    /// The path holds a space, a control byte, a query or a fragment.
    #[error("baseURL must have only a path after the host, without query or fragment")]
    Path,
}

/// Where a provider is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BaseUrl {
    /// Whether the connection is made over TLS.
    pub tls: bool,
    /// Host name or address; an IPv6 address stands without its brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path without its trailing slash, such as `/v1`.
    pub path: String,
    /// What goes into `Host`: the authority as it was written, without a default port.
    authority: String,
}

impl BaseUrl {
    /// Reads an absolute `http` or `https` URL (RFC 3986 section 4.3).
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

/// What every body is.
pub const CONTENT_TYPE: &str = "application/json";

/// A provider's key, and how it is presented.
#[derive(Clone, Copy)]
pub struct ProviderKey<'k> {
    /// The field's name and what stands before the key in it, such as `Authorization: Bearer `.
    pub header_prefix: &'static str,
    /// The key.
    pub key: &'k str,
}

/// The head of every request to one provider in one dialect, written once; only what differs is filled in per request.
#[derive(Clone)]
pub struct RequestTemplate {
    /// As far as the path; of a path that no model is part of, all of it.
    path: String,
    method: &'static str,
    /// Whether its requests have a body, and say how long it is.
    has_body: bool,
    before_fields: Vec<u8>,
    host: String,
}

impl RequestTemplate {
    /// Prepares requests to the dialect's path below `base`, which stands for the `/v1` of clients.
    pub fn new(base: &BaseUrl, dialect: Dialect, api_key: Option<ProviderKey<'_>>) -> Self {
        RequestTemplate::for_endpoint(base, dialect.upstream_path(), dialect, api_key)
    }

    /// Prepares requests to another path below `base`.
    pub fn for_endpoint(
        base: &BaseUrl,
        endpoint: &str,
        dialect: Dialect,
        api_key: Option<ProviderKey<'_>>,
    ) -> Self {
        let BaseUrl { path, authority, .. } = base;
        let accept = match dialect {
            // Its answers are recordings of any type.
            Dialect::Speech => "*/*",
            Dialect::Storage(StorageOperation::FileContent) => "*/*",
            Dialect::Storage(_) => "application/json",
            _ if dialect.has_form() => "*/*",
            // It answers with another type where it streams.
            _ if dialect.family() == Family::Amazon => "*/*",
            _ => "application/json, text/event-stream",
        };
        let mut head = format!(
            " HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: proofgate/{}\r\n\
             Accept: {accept}\r\nAccept-Encoding: identity\r\n",
            env!("CARGO_PKG_VERSION"),
        );
        if dialect.has_body() && !dialect.has_form() {
            // That of a form names its boundary.
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

    /// The same with more header lines, each with its line end.
    #[must_use]
    pub fn with_header_lines(mut self, lines: &[u8]) -> Self {
        self.before_fields.extend_from_slice(lines);
        self
    }

    /// The value of `Host`.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The path of a request, with `model` behind it as in [`write`](Self::write).
    pub fn path(&self, model: &str) -> String {
        format!("{}{model}", self.path)
    }

    /// Writes the head of one request whose body has `length` bytes. `fields`: header lines of this request alone.
    /// `model`: what the path ends in where the model stands there, percent-encoded.
    pub fn write(&self, request_id: &str, length: usize, model: &str, fields: &[u8], out: &mut Vec<u8>) {
        self.write_with_framing(request_id, Some(length as u64), model, fields, out);
    }

    /// The same for a body that is still coming: without a length it comes in chunks (RFC 9112 section 7.1).
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
            // Nobody expects one (RFC 9110 section 8.6).
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
