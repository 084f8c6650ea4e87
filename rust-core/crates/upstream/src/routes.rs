//! The models that clients name, and the providers of each model.

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Reverse;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use memchr::memmem;
use proofgate_base::rejection::Rejection;
use proofgate_config::FallbackReasons;
use proofgate_prices::Price;
use proofgate_providers::{Dialect, Family, RequestTemplate};

use crate::path_style::PathStyle;
use crate::pricing::Prices;
use crate::translation::{ResponseTranslator, TranslationPath};
use crate::upstream::Upstream;
use crate::wildcard::{WILDCARD, matches_wildcard};

/// Maximum number of targets of one model.
pub(crate) const MAX_TARGETS: usize = 16;

/// A configured model, under the name that clients use.
pub struct Model {
    /// The model's name. A [`WILDCARD`] at its end matches all models whose names start with the
    /// text before it.
    pub name: Arc<str>,
    /// The providers that serve it: at least one, at most [`MAX_TARGETS`].
    pub targets: Vec<Target>,
    /// Which failures send a request to the next target.
    pub fallback_reasons: FallbackReasons,
    /// Tokens reserved for a response whose request sets no maximum.
    pub max_output_tokens: u64,
    /// The known names that a wildcard matches; empty for a plain name.
    pub known_names: Vec<String>,
}

/// A provider that serves a model.
pub struct Target {
    pub upstream: Rc<Upstream>,
    /// The provider's name for the model. Its [`WILDCARD`] is replaced by the text that the model's
    /// wildcard matched.
    upstream_model: String,
    /// The JSON string that replaces the model's name, if the upstream name differs and is constant.
    replacement_name: Option<Vec<u8>>,
    /// The weight of the target. A target of weight 0 is chosen only if no available target has a
    /// weight.
    weight: u32,
    prices: Prices,
    /// The current weight of smooth weighted round-robin.
    credit: Cell<i64>,
}

/// A target's name for the model that a client requests.
pub struct UpstreamModelName<'m> {
    pub model: Cow<'m, str>,
    /// The JSON string that replaces the model's name in the request; `None` if the names are
    /// equal.
    pub replacement_name: Option<Cow<'m, [u8]>>,
}

/// The protocol of a target for one dialect of clients.
#[derive(Clone, Copy)]
pub struct TargetProtocol<'m> {
    pub template: &'m RequestTemplate,
    /// The translation between the client's and the provider's dialects, if they differ.
    pub translation: Option<TranslationPath>,
}

/// A subset of a model's targets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TargetSet(u32);

impl TargetSet {
    /// Creates the set with this target only.
    pub fn only(target: usize) -> Self {
        TargetSet(1 << target)
    }

    pub fn add(&mut self, target: usize) {
        self.0 |= 1 << target;
    }

    fn has(self, target: usize) -> bool {
        self.0 & (1 << target) != 0
    }
}

impl Target {
    pub fn new(
        upstream: Rc<Upstream>,
        upstream_model: String,
        replacement: Option<Vec<u8>>,
        weight: u32,
        prices: Prices,
    ) -> Self {
        Target {
            upstream,
            upstream_model,
            replacement_name: replacement,
            weight,
            prices,
            credit: Cell::new(0),
        }
    }

    /// Returns the price of the model that the provider calls `model` at `now` (Unix microseconds); `None` if it is not
    /// known.
    pub fn price(&self, model: &str, now: u64) -> Option<Arc<Price>> {
        self.prices.at(model, now)
    }

    /// Returns the provider's name for a model that a client requests as `asked`, where `model` is
    /// the configured model.
    pub fn model_name_for(&self, model: &Model, asked: &str) -> UpstreamModelName<'_> {
        let parts = self.upstream_model.split_once(WILDCARD);
        let rest = model.prefix().and_then(|prefix| asked.strip_prefix(prefix));
        let (Some((before, after)), Some(rest)) = (parts, rest) else {
            return UpstreamModelName {
                model: Cow::Borrowed(&self.upstream_model),
                replacement_name: self.replacement_name.as_deref().map(Cow::Borrowed),
            };
        };
        let named = [before, rest, after].concat();
        // The name has no characters to escape (see `Model::matches`).
        let replacement = (named != asked).then(|| Cow::Owned(format!("\"{named}\"").into_bytes()));
        UpstreamModelName {
            model: Cow::Owned(named),
            replacement_name: replacement,
        }
    }

    /// Returns the protocol for a request in a dialect, if the target can ever serve it.
    fn find_protocol(&self, dialect: Dialect) -> Option<TargetProtocol<'_>> {
        let upstream = &*self.upstream;
        let (model, at) = (&*self.upstream_model, &upstream.path_style);
        let passed = upstream
            .template(dialect)
            .filter(|_| at.passes_through(dialect, model));
        let pairs = match (passed, at) {
            (Some(_), _) => None,
            (None, PathStyle::Publisher { .. }) => TranslationPath::for_publisher(dialect, model),
            (None, _) => TranslationPath::between(dialect, upstream.family, model),
        };
        let template = pairs.map_or(passed, |pairs| upstream.template(pairs.upstream_dialect()))?;
        Some(TargetProtocol {
            template,
            translation: pairs,
        })
    }

    /// Returns the protocol for a request in a dialect.
    ///
    /// # Errors
    /// The reason why the target cannot serve it now, or ever.
    pub fn available_protocol(
        &self,
        dialect: Dialect,
        now: Instant,
    ) -> Result<TargetProtocol<'_>, Rejection> {
        let upstream = &*self.upstream;
        let way = self
            .find_protocol(dialect)
            .ok_or_else(|| match upstream.path_style {
                PathStyle::Publisher { .. } => Rejection::unsupported_by_publisher_api(),
                _ => Rejection::unsupported_dialect(upstream.family),
            })?;
        if upstream.lacks_credentials(now) {
            return Err(Rejection::NO_PROVIDER_KEY);
        }
        if upstream.is_full() {
            return Err(Rejection::PROVIDER_BUSY);
        }
        if let Some(wait) = upstream.rate_limit_delay(now) {
            return Err(Rejection::provider_rate_limited(wait));
        }
        Ok(way)
    }

    /// Whether provider-run tools in a request in `dialect` reach this target.
    pub fn receives_hosted_tools(&self, dialect: Dialect) -> bool {
        let way = self.find_protocol(dialect);
        way.is_some_and(|way| {
            way.translation
                .is_none_or(TranslationPath::preserves_hosted_tools)
        })
    }

    /// Returns the translation between a client and this provider for a request whose body is
    /// known. Some OpenAI models accept certain requests only as Responses, and other providers
    /// support custom tools only as functions. `pairs`: the translation that
    /// [`Self::available_protocol`] returned. `model`: the provider's name for the model.
    pub fn translation_for(
        &self,
        pairs: Option<TranslationPath>,
        dialect: Dialect,
        model: &str,
        body: &[u8],
    ) -> Option<TranslationPath> {
        let upstream = &*self.upstream;
        let has_responses =
            upstream.family == Family::OpenAi && upstream.template(Dialect::Responses).is_some();
        has_responses
            .then(|| TranslationPath::through_responses(dialect, model, body))
            .flatten()
            .or(pairs)
            .map(|pairs| match memmem::find(body, br#""custom""#) {
                Some(_) => pairs.with_functions(),
                None => pairs,
            })
    }

    /// Returns the request head for `template`, or for the translated request.
    pub fn template_for<'m>(
        &'m self,
        template: &'m RequestTemplate,
        translated: Option<&ResponseTranslator>,
    ) -> &'m RequestTemplate {
        let spoken = translated.map(ResponseTranslator::upstream_dialect);
        spoken
            .and_then(|dialect| self.upstream.template(dialect))
            .unwrap_or(template)
    }
}

impl Model {
    /// Returns the prefix of the names that a wildcard matches; `None` for a plain name.
    pub(crate) fn prefix(&self) -> Option<&str> {
        self.name.strip_suffix(WILDCARD)
    }

    /// Whether this wildcard matches a name.
    pub fn matches(&self, asked: &str) -> bool {
        matches_wildcard(&self.name, asked)
    }

    /// Whether any target of the model supports a request in a dialect, even if it cannot serve the
    /// request now.
    pub fn supports(&self, dialect: Dialect) -> bool {
        self.targets
            .iter()
            .any(|target| target.find_protocol(dialect).is_some())
    }

    /// Returns the first target for a request in a dialect for the model `asked`, its protocol, and
    /// the set of targets from which it was picked by weight.
    ///
    /// # Errors
    /// The refusal of the target that could serve the request soonest.
    pub fn first_target(
        &self,
        dialect: Dialect,
        asked: &str,
        now: Instant,
    ) -> Result<(usize, TargetProtocol<'_>, TargetSet), Rejection> {
        let chosen = match &self.targets[..] {
            [_] => Some((0, TargetSet::default())),
            _ => self.choose_target(dialect, asked, TargetSet::default(), now),
        };
        if let Some((chosen, among)) = chosen {
            return Ok((
                chosen,
                self.targets[chosen].available_protocol(dialect, now)?,
                among,
            ));
        }
        let refusals = self
            .targets
            .iter()
            .filter_map(|target| target.available_protocol(dialect, now).err());
        // Prefers the most temporary refusal: 503 before 400, and at the same status the refusal
        // that ends soonest.
        let nearest = refusals.max_by_key(|refusal| (refusal.status, Reverse(refusal.retry_after())));
        Err(nearest.unwrap_or(Rejection::UNKNOWN_MODEL))
    }

    /// Returns the next target for a request that failed at the targets in `tried`.
    pub fn next_target(
        &self,
        dialect: Dialect,
        asked: &str,
        tried: TargetSet,
        now: Instant,
    ) -> Option<(usize, TargetProtocol<'_>)> {
        let (chosen, _) = self.choose_target(dialect, asked, tried, now)?;
        Some((
            chosen,
            self.targets[chosen].available_protocol(dialect, now).ok()?,
        ))
    }

    /// Whether a target outside `tried` can serve a request in a dialect.
    pub fn has_next_target(&self, dialect: Dialect, tried: TargetSet, now: Instant) -> bool {
        let mut targets = self.targets.iter().enumerate();
        self.targets.len() > 1
            && targets
                .any(|(place, target)| !tried.has(place) && target.available_protocol(dialect, now).is_ok())
    }

    fn choose_target(
        &self,
        dialect: Dialect,
        asked: &str,
        tried: TargetSet,
        now: Instant,
    ) -> Option<(usize, TargetSet)> {
        let serves = |place: usize, target: &Target| {
            !tried.has(place) && target.available_protocol(dialect, now).is_ok()
        };
        let available = |target: &Target| {
            let health = &target.upstream.pool.health;
            health.is_available(|| target.model_name_for(self, asked).model, now)
        };
        self.pick_weighted(|place, target| available(target) && serves(place, target))
            .or_else(|| self.pick_weighted(serves))
    }

    /// Picks by smooth weighted round-robin, as in nginx, among targets with a weight. If none
    /// fits, picks the first target of weight 0 that fits.
    fn pick_weighted(&self, fits: impl Fn(usize, &Target) -> bool) -> Option<(usize, TargetSet)> {
        let (mut total, mut among) = (0, TargetSet::default());
        let mut best: Option<(usize, &Target)> = None;
        for (place, target) in self.targets.iter().enumerate() {
            if target.weight == 0 || !fits(place, target) {
                continue;
            }
            let weight = i64::from(target.weight);
            target.credit.set(target.credit.get().saturating_add(weight));
            total += weight;
            among.add(place);
            if best.is_none_or(|(_, best)| target.credit.get() > best.credit.get()) {
                best = Some((place, target));
            }
        }
        if let Some((place, target)) = best {
            target.credit.set(target.credit.get().saturating_sub(total));
            return Some((place, among));
        }
        let mut others = self.targets.iter().enumerate();
        others
            .find(|(place, target)| target.weight == 0 && fits(*place, target))
            .map(|(place, _)| (place, among))
    }

    /// Undoes the weight change for a request that was rejected before it was sent to its target.
    /// Otherwise, rejected requests could influence the targets of other requests.
    pub fn undo_pick(&self, place: usize, among: TargetSet) {
        let mut total = 0;
        for (other, target) in self.targets.iter().enumerate() {
            if among.has(other) {
                let weight = i64::from(target.weight);
                target.credit.set(target.credit.get().saturating_sub(weight));
                total += weight;
            }
        }
        if let Some(target) = self.targets.get(place) {
            target.credit.set(target.credit.get().saturating_add(total));
        }
    }
}
