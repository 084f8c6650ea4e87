//! Request header fields that are sent upstream as the client sent them.

use proofgate_providers::{Family, is_beta_feature};
use proofgate_wire::{Headers, encode};

/// The version of Anthropic's API for clients that name the version of another API.
const DEFAULT_VERSION: &[u8] = b"2023-06-01";

/// The header fields of Anthropic's clients: the API version and the betas that they use.
#[derive(Debug, Default)]
pub struct AnthropicHeaders {
    version: Vec<u8>,
    betas: Vec<Box<str>>,
}

impl AnthropicHeaders {
    /// Reads the fields that are sent upstream; `None` for other API families.
    pub fn from_headers(family: Family, headers: &Headers<'_>) -> Option<Box<Self>> {
        if family != Family::Anthropic {
            return None;
        }
        let version = headers.get("anthropic-version").unwrap_or_default().to_vec();
        let values = headers.iter();
        let values = values.filter(|(name, _)| name.eq_ignore_ascii_case("anthropic-beta"));
        let names = values.flat_map(|(_, value)| value.split(|byte| *byte == b','));
        let names = names.filter_map(|name| std::str::from_utf8(name.trim_ascii()).ok());
        let names = names.filter(|name| !name.is_empty());
        Some(Box::new(AnthropicHeaders {
            version,
            betas: names.map(Into::into).collect(),
        }))
    }

    /// Removes the betas with these names, which a plan denies, and writes a response header line
    /// with the removed betas to `extra`.
    pub fn deny_betas(&mut self, names: &[String], extra: &mut Vec<u8>) {
        let betas = self.betas.drain(..);
        let (denied, kept): (Vec<_>, Vec<_>) =
            betas.partition(|beta| names.iter().any(|name| is_beta_feature(beta, name)));
        self.betas = kept;
        let denied: Vec<&str> = denied.iter().map(AsRef::as_ref).collect();
        write_names(extra, "x-proofgate-dropped-betas", &denied);
    }

    /// Adds betas from the body, for clients that send them there instead of in the head.
    pub fn add_from_body(&mut self, betas: Vec<String>) {
        if self.version.is_empty() {
            self.version = DEFAULT_VERSION.to_vec();
        }
        for beta in betas {
            let is_new = self.betas.iter().all(|known| **known != *beta);
            // The beta is written into a header field.
            let is_token =
                !beta.is_empty() && beta.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
            if is_new && is_token {
                self.betas.push(beta.into());
            }
        }
    }

    /// Returns the betas of a request that the provider does not accept; `allowed` is `None` if it
    /// accepts all.
    pub fn disallowed_betas(&self, allowed: Option<&[String]>) -> Vec<String> {
        let Some(allowed) = allowed else {
            return Vec::new();
        };
        let refused = self
            .betas
            .iter()
            .filter(|beta| !allowed.iter().any(|name| **name == ***beta));
        refused.map(|beta| beta.to_string()).collect()
    }

    /// Returns the header lines for a provider that accepts the betas in `allowed` (`None`: all).
    /// Writes a response header line with the dropped betas to `extra`.
    pub fn for_upstream(&self, allowed: Option<&[String]>, extra: &mut Vec<u8>) -> Vec<u8> {
        let mut lines = Vec::new();
        if !self.version.is_empty() {
            // A value that was read from a header field is valid in a header field.
            let _ = encode::write_header(&mut lines, "anthropic-version", &self.version);
        }
        write_names(&mut lines, "anthropic-beta", &self.allowed_betas(allowed, extra));
        lines
    }

    /// Returns the betas that may be sent to the provider. Writes a response header line with the
    /// dropped betas to `extra`.
    pub fn allowed_betas(&self, allowed: Option<&[String]>, extra: &mut Vec<u8>) -> Vec<&str> {
        let betas = self.betas.iter().map(AsRef::as_ref);
        let Some(allowed) = allowed else {
            return betas.collect();
        };
        let (sent, dropped): (Vec<&str>, Vec<&str>) =
            betas.partition(|beta| allowed.iter().any(|name| name == beta));
        write_names(extra, "x-proofgate-dropped-betas", &dropped);
        sent
    }
}

fn write_names(lines: &mut Vec<u8>, field: &str, names: &[&str]) {
    if !names.is_empty() {
        let _ = encode::write_header(lines, field, names.join(", ").as_bytes());
    }
}
