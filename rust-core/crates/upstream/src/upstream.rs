//! Providers, and the connections to them.

mod connect;
mod egress;
mod happy_eyeballs;
mod health;
mod http2;
mod maybe_tls_stream;
mod pool;
mod rate;
mod resolver;
mod stream;
mod tcp;
mod tls;
mod tunnel;
mod warm;

use std::rc::Rc;
use std::time::{Duration, Instant};

use proofgate_config::{RateLimits, StreamUsage};
use proofgate_observe::metrics::Metrics;
use proofgate_providers::{BodyFieldOverrides, Dialect, Family, RequestTemplate};
use proofgate_translate::UntranslatableFieldPolicy;

pub use self::connect::ConnectError;
pub use self::egress::Egress;
pub use self::health::{InFlightPermit, Verdict};
pub use self::pool::{Pool, Route};
pub use self::stream::UpstreamStream;
pub use self::tls::TlsTrust;
pub use self::tunnel::{Proxy, ProxyFailure};

use crate::access_token::AccessToken;
use crate::path_style::PathStyle;
use crate::refusals::redacted_error;
use crate::signer::Signer;

/// A provider at run time: its call settings, and the connections to it.
pub struct Upstream {
    pub name: String,
    /// The family of the provider's API.
    pub family: Family,
    /// The request heads for the dialects that the provider supports.
    pub(crate) templates: Vec<(Dialect, RequestTemplate)>,
    /// The signer of requests; `None` if the provider requires no signatures.
    pub signer: Option<Signer>,
    /// The access token that is sent instead of a key; `None` if the provider uses no token.
    pub token: Option<Rc<AccessToken>>,
    /// The form of its request paths.
    pub path_style: PathStyle,
    /// Values of `anthropic-beta` that clients may send to the provider.
    pub betas: Option<Vec<String>>,
    /// The handling of fields without a counterpart in the provider's dialect.
    pub untranslatable_fields: UntranslatableFieldPolicy,
    /// Whether the required key is missing, so that no request may be sent.
    pub is_key_missing: bool,
    /// Whether the gateway asks for usage in streaming requests.
    pub stream_usage: StreamUsage,
    /// Maximum number of concurrent requests.
    pub max_concurrency: Option<u32>,
    /// Minimum number of idle connections.
    pub min_idle: usize,
    /// The provider's limits of requests and tokens per minute.
    pub rate: RateLimits,
    /// Timeout of an attempt up to the response head, including connecting.
    pub first_byte_timeout: Duration,
    /// Timeout between two reads of a response.
    pub idle_timeout: Duration,
    /// The key and the secret header values of requests, which are never logged.
    pub(crate) secrets: Vec<Box<str>>,
    /// Fields that are set in every JSON body for the provider.
    pub body_field_overrides: BodyFieldOverrides,
    pub pool: Rc<Pool>,
}

impl Upstream {
    /// Whether no request may be sent now because the required key, certificate or token is missing
    /// or has expired.
    pub(crate) fn lacks_credentials(&self, now: Instant) -> bool {
        self.is_key_missing
            || self.token.as_ref().is_some_and(|token| !token.is_valid(now))
            || self.signer.as_ref().is_some_and(|signer| !signer.is_valid(now))
    }

    /// Whether the limit of concurrent requests is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.max_concurrency
            .is_some_and(|most| self.pool.health.in_flight() >= most)
    }

    /// Returns how long the rate limits forbid a request; `None` if a request may be sent now.
    pub fn rate_limit_delay(&self, now: Instant) -> Option<Duration> {
        self.pool.health.rate_limit_delay(self.rate, now)
    }

    /// Counts a request as in flight until the returned permit is dropped. The request is for
    /// `model` (the provider's name) and may use up to `tokens`. `is_whole`: whether the request is
    /// complete.
    pub fn start_request(
        &self,
        now: Instant,
        model: &str,
        is_whole: bool,
        tokens: impl FnOnce() -> u64,
    ) -> InFlightPermit {
        let tokens = if self.rate.counts_tokens() { tokens() } else { 0 };
        self.pool
            .health
            .start_request(now, model, self.rate, tokens, is_whole)
    }

    /// Counts a response in which this provider refuses the gateway's key or a model, and logs its
    /// message, at most once a minute for each model. `kind`: the error type in the response head.
    pub fn report_refusal(
        &self,
        metrics: &Metrics,
        model: &str,
        status: u16,
        kind: Option<&str>,
        body: &[u8],
    ) {
        metrics.record_provider_refusal(&self.name, status);
        if self.pool.refusal_log.should_log(model, Instant::now()) {
            let words = redacted_error(kind, body, &self.secrets);
            let name = &self.name;
            proofgate_log::warning!("provider {name:?} refuses model {model:?} with {status}: {words}");
        }
    }

    /// Returns the request head for a dialect; `None` if the provider does not support it.
    pub fn template(&self, dialect: Dialect) -> Option<&RequestTemplate> {
        let mut templates = self.templates.iter();
        templates
            .find(|(spoken, _)| *spoken == dialect)
            .map(|(_, template)| template)
    }
}
