//! The models that clients name, and the providers that answer for each.

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Reverse;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use memchr::memmem;
use proofgate_base::rejection::Rejection;
use proofgate_config::Reasons;
use proofgate_prices::Price;
use proofgate_providers::{Dialect, Family, RequestTemplate};

use crate::path_end::PathStyle;
use crate::pricing::Prices;
use crate::translation::{ResponseTranslator, TranslationPath};
use crate::upstream::Upstream;
use crate::wildcard::{WILDCARD, matches_wildcard};

/// Most targets of one model.
pub(crate) const MAX_TARGETS: usize = 16;

/// A model as clients name it.
pub struct Model {
    /// Its name; with the [`WILDCARD`] at its end it is that of all models whose names begin so.
    pub name: Arc<str>,
    /// Where it is answered: at least one, at most [`MAX_TARGETS`].
    pub targets: Vec<Target>,
    /// What sends a request on to the next of them.
    pub fallback_reasons: Reasons,
    /// Tokens set aside for an answer whose request names no maximum.
    pub max_output_tokens: u64,
    /// Names that it stands for, as far as they are known, where it stands for several.
    pub known_names: Vec<String>,
}

/// A provider that answers for a model.
pub struct Target {
    pub upstream: Rc<Upstream>,
    /// The model's name there; the [`WILDCARD`] in it is what the model's stands for.
    upstream_model: String,
    /// The JSON string that replaces the model's name, when it has another one upstream that is always the same.
    replacement_name: Option<Vec<u8>>,
    /// Its share of the requests; of 0 it gets those that failed elsewhere.
    weight: u32,
    prices: Prices,
    /// What it is ahead or behind of its share.
    credit: Cell<i64>,
}

/// What a target calls the model that a client asks for.
pub struct UpstreamModelName<'m> {
    pub model: Cow<'m, str>,
    /// The JSON string that replaces the model's name in the request, where that is another one.
    pub replacement_name: Option<Cow<'m, [u8]>>,
}

/// How a target is spoken to.
#[derive(Clone, Copy)]
pub struct TargetProtocol<'m> {
    pub template: &'m RequestTemplate,
    /// What lies between the client and the provider, if they do not speak the same.
    pub translation: Option<TranslationPath>,
}

/// Some of a model's targets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TargetSet(u32);

impl TargetSet {
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

    /// What the model that it calls `model` costs there at `now` (unix microseconds); `None` when that is not known.
    pub fn price(&self, model: &str, now: u64) -> Option<Arc<Price>> {
        self.prices.at(model, now)
    }

    /// What it calls the model that a client asks for by the name `asked`, where `model` is its own.
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
        // A name without anything to escape: see `Model::matches`.
        let replacement = (named != asked).then(|| Cow::Owned(format!("\"{named}\"").into_bytes()));
        UpstreamModelName {
            model: Cow::Owned(named),
            replacement_name: replacement,
        }
    }

    /// How a request in a dialect is put to it, if it ever can be.
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

    /// How a request in a dialect is put to it.
    ///
    /// # Errors
    /// Why it cannot be, now or at all.
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
        if upstream.lacks_key(now) {
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

    /// Whether the tools reach it that providers run for a client of a dialect.
    pub fn receives_hosted_tools(&self, dialect: Dialect) -> bool {
        let way = self.find_protocol(dialect);
        way.is_some_and(|way| {
            way.translation
                .is_none_or(TranslationPath::preserves_hosted_tools)
        })
    }

    /// What lies between a client and this provider, for a request whose body is known: some of OpenAI's models take it by
    /// Responses alone, and its custom tools are functions elsewhere. `pairs`: what [`Self::available_protocol`] found. `model`: what the provider calls it.
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

    /// The head of a request that goes there in the way of `template`, or as it was translated.
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
    /// What all names begin with that it stands for, where it stands for several.
    pub(crate) fn prefix(&self) -> Option<&str> {
        self.name.strip_suffix(WILDCARD)
    }

    /// Whether it stands for a model of this name, which is not its own.
    pub fn matches(&self, asked: &str) -> bool {
        matches_wildcard(&self.name, asked)
    }

    /// Whether any of its targets has words for a request in a dialect, now or at another time.
    pub fn supports(&self, dialect: Dialect) -> bool {
        self.targets
            .iter()
            .any(|target| target.find_protocol(dialect).is_some())
    }

    /// Where a request in a dialect for the model `asked` goes first, and how; and whose shares it was that decided.
    ///
    /// # Errors
    /// Why it can go nowhere: the reason of the target that is nearest to taking it.
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
        // What passes first: 503 before 400, and of several the one that is over soonest.
        let nearest = refusals.max_by_key(|refusal| (refusal.status, Reverse(refusal.retry_after())));
        Err(nearest.unwrap_or(Rejection::UNKNOWN_MODEL))
    }

    /// Where a request that was tried elsewhere goes next.
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

    /// Whether there is another target for a request in a dialect.
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

    /// By their shares those that have one: smooth weighted round-robin, as nginx has it. Else the first of the others.
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

    /// Takes back what a request moved that was to go to the target in a place and was turned away before: else whoever is
    /// refused would choose where others go.
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
