//! Providers, and the connections that lead there.

mod connect;
mod egress;
mod happy_eyeballs;
mod health;
mod http2;
mod names;
mod pool;
mod rate;
mod stream;
mod tcp;
mod tls;
mod tunnel;
mod warm;
mod wire;

use std::rc::Rc;
use std::time::{Duration, Instant};

use proofgate_config::{RateLimits, StreamUsage};
use proofgate_observe::metrics::Metrics;
use proofgate_providers::{Dialect, Family, RequestTemplate, SetFields};
use proofgate_translate::UntranslatableFieldPolicy;

pub use self::connect::ConnectError;
pub use self::egress::Egress;
pub use self::health::{InFlightPermit, Verdict};
pub use self::pool::{Pool, Route};
pub use self::stream::UpstreamStream;
pub use self::tls::TlsTrust;
pub use self::tunnel::{Proxy, ProxyFailure};

use crate::access_token::AccessToken;
use crate::path_end::PathStyle;
use crate::refusals::redacted_error;
use crate::signer::Signer;

/// A provider at run time: how to speak to it, and the connections that lead there.
pub struct Upstream {
    pub name: String,
    /// Whose conventions it follows.
    pub family: Family,
    /// The heads of requests in each dialect that it speaks.
    pub(crate) templates: Vec<(Dialect, RequestTemplate)>,
    /// What signs requests to it, where that is done.
    pub signer: Option<Signer>,
    /// What requests to it present in the place of a key, where that is one.
    pub token: Option<Rc<AccessToken>>,
    /// What the paths of requests to it end in.
    pub path_style: PathStyle,
    /// Values of `anthropic-beta` that clients may send to it.
    pub betas: Option<Vec<String>>,
    /// What becomes of fields that its dialect has no counterpart for.
    pub untranslatable: UntranslatableFieldPolicy,
    /// Nothing may be sent: the key that it wants is not there.
    pub is_key_missing: bool,
    pub stream_usage: StreamUsage,
    /// Requests that may be under way there at a time.
    pub max_concurrency: Option<u32>,
    /// Idle connections that are to be there.
    pub min_idle: usize,
    /// What may be asked of it in a minute.
    pub rate: RateLimits,
    /// How long an attempt may take as far as the head of its answer, connecting included.
    pub first_byte_timeout: Duration,
    /// How long an answer may be silent.
    pub idle_timeout: Duration,
    /// The key that requests to it present, and headers that are secret, so that they are never logged.
    pub(crate) secrets: Vec<Box<str>>,
    /// Fields that are set in every JSON body that it is sent.
    pub set_fields: SetFields,
    pub pool: Rc<Pool>,
}

impl Upstream {
    /// Whether nothing may be sent there now: the key, certificate or token that it wants is not there, or has ended.
    pub(crate) fn lacks_key(&self, now: Instant) -> bool {
        self.is_key_missing
            || self.token.as_ref().is_some_and(|token| !token.is_valid(now))
            || self.signer.as_ref().is_some_and(|signer| !signer.is_valid(now))
    }

    /// Whether as many requests are under way there as may be.
    pub(crate) fn is_full(&self) -> bool {
        self.max_concurrency
            .is_some_and(|most| self.pool.health.in_flight() >= most)
    }

    /// How long no request may be sent there, by what it allows in a minute; `None` when one may be.
    pub fn rate_limit_delay(&self, now: Instant) -> Option<Duration> {
        self.pool.health.rate_limit_delay(self.rate, now)
    }

    /// Counts a request for `model`, as the provider calls it, that may come to `tokens` as under way there, until what is
    /// returned is dropped. `is_whole`: whether all of it is there.
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

    /// Counts an answer by which this provider refuses the gateway's key or a model, and logs its words: once a minute for each
    /// model. `kind`: how a field of the answer's head names the error.
    pub fn report_refusal(
        &self,
        metrics: &Metrics,
        model: &str,
        status: u16,
        kind: Option<&str>,
        body: &[u8],
    ) {
        metrics.provider_refused(&self.name, status);
        if self.pool.refusal_log.should_log(model, Instant::now()) {
            let words = redacted_error(kind, body, &self.secrets);
            let name = &self.name;
            proofgate_log::warning!("provider {name:?} refuses model {model:?} with {status}: {words}");
        }
    }

    /// The head of requests in a dialect; `None` when the provider does not speak it.
    pub fn template(&self, dialect: Dialect) -> Option<&RequestTemplate> {
        let mut templates = self.templates.iter();
        templates
            .find(|(spoken, _)| *spoken == dialect)
            .map(|(_, template)| template)
    }
}
