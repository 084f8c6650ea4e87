//! A configuration in the form that a request needs: where it is answered, and beside that its [`Terms`].
//!
//! It is made in two steps. A [`Blueprint`] is everything that takes long or can fail (rules are compiled, certificates
//! parsed), made on any thread. A [`Catalog`] is a blueprint taken into service by the data-plane thread, with the
//! upstream connections of its predecessor where they lead to the same place.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use proofgate_auth::Tenant;
use proofgate_base::Error;
use proofgate_base::descriptors::Sockets;
use proofgate_config::{
    Config, Model as ModelConfig, Provider, ProviderKind, RateLimits, Reasons, Responses, StreamUsage, Vertex,
};
use proofgate_observe::limit_thread::ModelNames;
use proofgate_policy::{Engine, Scratch};
use proofgate_providers::{BaseUrl, Dialect, Family, ProviderKey, RequestTemplate, SetFields, Stored};
use proofgate_translate::UntranslatableFields;
use proofgate_translate::constraints::lacks_responses;
use proofgate_wire::encode;

use crate::access_token::Token;
use crate::path_end::PathEnd;
use crate::pricing::{Prices, Pricing};
use crate::routes::{MAX_TARGETS, Model, Target};
use crate::signer::{Keys, Signer, SignerPlan};
use crate::terms::Terms;
use crate::upstream::{Egress, Pool, Proxy, Route as UpstreamRoute, Trust, Upstream};
use crate::wildcard::{WILDCARD, asked_name, stands_for};

/// A configuration, checked whole and compiled.
pub struct Blueprint {
    upstreams: Vec<UpstreamPlan>,
    models: HashMap<String, ModelPlan>,
    /// Those that stand for all names that begin as theirs, the longest first.
    wildcards: Vec<(String, ModelPlan)>,
    /// By tenant, the provider that keeps its files and batches.
    object_providers: HashMap<String, ModelPlan>,
    /// Everything that does not need the data-plane thread.
    pub terms: Terms,
}

struct UpstreamPlan {
    name: String,
    family: Family,
    templates: Vec<(Dialect, RequestTemplate)>,
    signer: Option<SignerPlan>,
    wants_token: bool,
    path_end: PathEnd,
    betas: Option<Vec<String>>,
    untranslatable: UntranslatableFields,
    key_missing: bool,
    stream_usage: StreamUsage,
    max_concurrency: Option<u32>,
    min_idle: usize,
    rate: RateLimits,
    first_byte: Duration,
    idle: Duration,
    secrets: Vec<Box<str>>,
    set_fields: SetFields,
    route: UpstreamRoute,
}

struct ModelPlan {
    targets: Vec<TargetPlan>,
    fall_back_on: Reasons,
    max_output_tokens: u64,
    known: Vec<String>,
}

struct TargetPlan {
    upstream: usize,
    upstream_model: String,
    replacement: Option<Vec<u8>>,
    weight: u32,
    prices: Prices,
}

/// A configuration in service.
pub struct Catalog {
    upstreams: Vec<Rc<Upstream>>,
    models: HashMap<String, Model>,
    /// Those that stand for all names that begin as theirs, the longest first.
    wildcards: Vec<Model>,
    /// By tenant, where its files and batches are: what has no name among the models.
    object_providers: HashMap<String, Model>,
    /// What every scan of the engine needs and the next one can use again. Catalogs of one engine share it; one of another
    /// engine must not, for the automata in it would be built anew at every turn.
    pub scratch: Rc<RefCell<Scratch>>,
    pub terms: Terms,
    /// Those to providers, of all catalogs of a worker.
    pub sockets: Rc<Sockets>,
}

impl Blueprint {
    /// Checks and compiles a configuration. `in_service`: the engine of the one before, which is kept if the policy is the
    /// same.
    ///
    /// # Errors
    /// [`Error::Config`] with the first thing that is wrong; never with a secret.
    pub fn new(config: &Config, in_service: Option<&Arc<Engine>>) -> Result<Self, Error> {
        let mut places = HashMap::new();
        let mut upstreams = Vec::new();
        let egress = config.egress.as_ref();
        let proxy = egress.and_then(|egress| egress.proxy.as_ref()).map(Proxy::new);
        let proxy = proxy.transpose().map_err(Error::Config)?;
        let allowed = egress.and_then(|egress| egress.allow.as_deref());
        let egress = Egress::new(allowed).map_err(Error::Config)?;
        for provider in &config.providers {
            let fail = |message: String| Error::Config(format!("provider {:?}: {message}", provider.name));
            let base = BaseUrl::parse(&provider.base_url).map_err(|error| fail(error.to_string()))?;
            let key = provider.api_key.as_deref();
            if key.is_some_and(|key| !key.bytes().all(|byte| byte.is_ascii_graphic())) {
                return Err(fail("its API key must be printable ASCII without spaces".into()));
            }
            let (family, field) = match provider.kind {
                ProviderKind::OpenAi => (Family::OpenAi, "Authorization: Bearer "),
                ProviderKind::AzureOpenAi => (Family::OpenAi, "api-key: "),
                ProviderKind::Anthropic => (Family::Anthropic, "x-api-key: "),
                ProviderKind::Gemini => (Family::Google, "x-goog-api-key: "),
                ProviderKind::Bedrock => (Family::Amazon, "Authorization: Bearer "),
                ProviderKind::VertexAi => (Family::Google, "Authorization: Bearer "),
            };
            let wants_token = provider.takes_access_token();
            if wants_token && key.is_some() {
                return Err(fail("it has an API key, but accepts only access tokens".into()));
            }
            let signer = provider.aws().map(SignerPlan::new);
            let signer = signer.transpose().map_err(fail)?;
            if signer.is_some() && (family != Family::Amazon || key.is_some()) {
                return Err(fail(
                    "only a Bedrock provider without an API key can have its requests signed".into(),
                ));
            }
            let key = key.map(|key| ProviderKey { field, key });
            let path_end = path_end(provider).map_err(fail)?;
            let of_claude: &[Dialect] = match path_end {
                PathEnd::Publisher { .. } => Family::Anthropic.dialects(),
                _ => &[],
            };
            let lines = header_lines(provider).map_err(fail)?;
            let set_fields = provider.body_fields.iter().flat_map(|fields| &fields.0);
            let set_fields = SetFields::new(set_fields.map(|field| (&*field.name, &*field.value)));
            let set_fields = set_fields
                .map_err(|name| fail(format!("the value of its body field {name:?} is not JSON")))?;
            let has_objects = provider.objects_of.is_some();
            let kept = has_objects.then_some(Stored::ALL).into_iter().flatten();
            let spoken = family.dialects().iter().chain(of_claude).copied();
            let spoken = spoken.chain(kept.map(Dialect::Stored));
            let has_responses = match provider.responses {
                Responses::Auto => !lacks_responses(&base.host.to_ascii_lowercase()),
                Responses::Native => true,
                Responses::Translated => false,
            };
            let spoken = spoken.filter(|dialect| has_responses || !dialect.asks_as_responses());
            let templates = spoken.filter_map(|dialect| {
                let begin = path_end.begin(dialect)?;
                let template = RequestTemplate::at(&base, &begin, dialect, key);
                Some((dialect, template.with_lines(&lines)))
            });
            let templates = templates.collect();
            let (own, all) = (provider.timeouts.unwrap_or_default(), config.timeouts);
            let route = UpstreamRoute::new(
                base,
                Trust {
                    ca_pem: provider.ca_pem.clone(),
                    client_certificate_pem: provider.client_certificate_pem.clone(),
                    client_key_pem: provider.client_key_pem.clone(),
                },
                provider.http,
                own.connect.unwrap_or(all.upstream_connect),
                egress.clone(),
                proxy.clone().filter(|_| provider.proxied),
            );
            if places.insert(provider.name.as_str(), upstreams.len()).is_some() {
                return Err(fail("given twice".into()));
            }
            upstreams.push(UpstreamPlan {
                name: provider.name.clone(),
                family,
                templates,
                signer,
                wants_token,
                path_end,
                betas: provider.betas.clone(),
                untranslatable: provider.untranslatable,
                key_missing: provider.key_missing,
                stream_usage: provider.stream_usage,
                max_concurrency: provider.max_concurrency,
                min_idle: provider.min_idle,
                rate: provider.rate.unwrap_or_default(),
                first_byte: own
                    .first_byte
                    .or(all.upstream_first_byte)
                    .unwrap_or(all.upstream_response),
                idle: own.idle.unwrap_or(all.upstream_response),
                secrets: secrets(provider),
                set_fields,
                route: route.map_err(fail)?.keeping_alive(own.keep_alive),
            });
        }
        let pricing = Pricing::new(config)?;
        let models = models(config, &pricing, &places)?.into_iter();
        let (mut wildcards, models): (Vec<_>, Vec<_>) =
            models.partition(|(name, _)| name.ends_with(WILDCARD));
        wildcards.sort_unstable_by_key(|(name, _)| Reverse(name.len()));
        Ok(Blueprint {
            models: models.into_iter().collect(),
            wildcards,
            object_providers: object_providers(config, &pricing)?,
            terms: Terms::new(config, in_service)?,
            upstreams,
        })
    }
}

impl ModelNames for Blueprint {
    /// As [`Catalog::route`] finds it.
    fn name_of<'n>(&'n self, asked: &'n str) -> &'n str {
        if self.models.contains_key(asked) {
            return asked;
        }
        let mut wildcards = self.wildcards.iter().map(|(name, _)| name.as_str());
        wildcards.find(|name| stands_for(name, asked)).unwrap_or(asked)
    }
}

/// The header lines that every request to a provider has.
fn header_lines(provider: &Provider) -> Result<Vec<u8>, String> {
    let mut lines = Vec::new();
    for header in &provider.headers {
        let value = header.value.as_deref().unwrap_or_default();
        let written = encode::write_header(&mut lines, &header.name, value.as_bytes());
        // Its value may be a secret.
        written.map_err(|_| format!("its header {:?} cannot be written", header.name))?;
    }
    Ok(lines)
}

/// What requests to a provider carry and nobody may read in a log: its key, and the values of headers that are secret.
fn secrets(provider: &Provider) -> Vec<Box<str>> {
    let headers = provider.headers.iter().filter(|header| header.secret);
    let values = headers.filter_map(|header| header.value.as_deref());
    let all = provider.api_key.as_deref().into_iter().chain(values);
    all.filter(|secret| !secret.is_empty()).map(Into::into).collect()
}

fn path_end(provider: &Provider) -> Result<PathEnd, String> {
    match (provider.vertex(), provider.kind) {
        (Some(vertex), ProviderKind::VertexAi) => {
            let Vertex { project, location } = vertex;
            // The project of an organisation's domain has a colon in its id.
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b':');
            let is_step = |name: &str| name.bytes().all(|byte| byte == b'.');
            if [project, location]
                .iter()
                .any(|name| is_step(name) || !name.bytes().all(is_name))
            {
                return Err("its project or location is empty or contains an invalid character".into());
            }
            return Ok(PathEnd::Publisher {
                location: format!("/projects/{project}/locations/{location}"),
            });
        }
        (None, ProviderKind::VertexAi) => return Err("it needs a project and a location".into()),
        (Some(_), _) => return Err("it has a project and location, but is not a Vertex AI provider".into()),
        (None, _) => {}
    }
    let Some(version) = &provider.azure_api_version else {
        return Ok(PathEnd::Dialect(provider.arn_in_path));
    };
    let is_version = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    if version.is_empty() || !version.bytes().all(is_version) {
        return Err("its API version is empty or contains an invalid character".into());
    }
    match provider.kind {
        ProviderKind::AzureOpenAi => Ok(PathEnd::Deployment {
            query: format!("?api-version={version}"),
        }),
        _ => Err("it has an API version, but is not an Azure provider".into()),
    }
}

/// The providers that keep the files and batches of a tenant, each as the only target of a model without a name.
fn object_providers(config: &Config, pricing: &Pricing<'_>) -> Result<HashMap<String, ModelPlan>, Error> {
    let mut object_providers = HashMap::new();
    for (upstream, provider) in config.providers.iter().enumerate() {
        let Some(tenant) = &provider.objects_of else {
            continue;
        };
        let fail = |message: &str| Err(Error::Config(format!("provider {:?}: {message}", provider.name)));
        match (provider.kind, &provider.azure_api_version) {
            (ProviderKind::OpenAi | ProviderKind::AzureOpenAi, None) => {}
            _ => {
                return fail(
                    "only OpenAI-compatible providers without an API version can store files and batches \
                              (objectsOf)",
                );
            }
        }
        let plan = ModelPlan {
            targets: vec![TargetPlan {
                upstream,
                upstream_model: String::new(),
                replacement: None,
                weight: 1,
                prices: pricing.prices(&provider.name, ""),
            }],
            fall_back_on: Reasons::default(),
            max_output_tokens: 0,
            known: Vec::new(),
        };
        if object_providers.insert(tenant.clone(), plan).is_some() {
            return fail("another provider already stores the files and batches of its tenant (objectsOf)");
        }
    }
    Ok(object_providers)
}

fn models(
    config: &Config,
    pricing: &Pricing<'_>,
    upstreams: &HashMap<&str, usize>,
) -> Result<HashMap<String, ModelPlan>, Error> {
    let mut models = HashMap::new();
    for model in &config.models {
        let fail = |message: String| Error::Config(format!("model {:?} {message}", model.name));
        if !(1..=MAX_TARGETS).contains(&model.targets().count()) {
            return Err(fail(format!("must have 1 to {MAX_TARGETS} targets")));
        }
        let targets = model.targets().map(|target| {
            let upstream = upstreams.get(target.provider);
            let missing = || {
                fail(format!(
                    "refers to provider {:?}, which does not exist",
                    target.provider
                ))
            };
            // In a path it would be no name, but a step.
            if matches!(target.upstream_model, "." | "..") {
                return Err(fail(format!(
                    "cannot be called {:?} at a provider",
                    target.upstream_model
                )));
            }
            if target.upstream_model.contains(WILDCARD) && !model.name.ends_with(WILDCARD) {
                return Err(fail(format!(
                    "is called {:?} at a provider, but has no {WILDCARD} in its own name",
                    target.upstream_model
                )));
            }
            let replacement = (target.upstream_model != model.name)
                .then(|| serde_json::to_vec(target.upstream_model))
                .transpose();
            Ok(TargetPlan {
                upstream: *upstream.ok_or_else(missing)?,
                upstream_model: target.upstream_model.to_owned(),
                replacement: replacement.map_err(|error| fail(error.to_string()))?,
                weight: target.weight,
                prices: pricing.prices(target.provider, target.upstream_model),
            })
        });
        let plan = ModelPlan {
            targets: targets.collect::<Result<_, Error>>()?,
            fall_back_on: model.fall_back_on,
            max_output_tokens: model.max_output_tokens,
            known: known(model, pricing),
        };
        if models.insert(model.name.clone(), plan).is_some() {
            return Err(Error::Config(format!("model {:?} is given twice", model.name)));
        }
    }
    Ok(models)
}

/// The names that a model with a wildcard stands for, as far as its first provider has a price for them.
fn known(model: &ModelConfig, pricing: &Pricing<'_>) -> Vec<String> {
    let Some(target) = model.targets().next() else {
        return Vec::new();
    };
    let there = pricing.models(target.provider);
    let names = there.filter_map(|there| asked_name(&model.name, target.upstream_model, there));
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

impl Catalog {
    /// Takes a blueprint into service, with what its predecessor has that is still good: connections to upstreams that
    /// are reached the same way, and the signing keys of issuers. New connections are among `sockets`.
    pub fn new(blueprint: Blueprint, previous: Option<&Catalog>, sockets: &Rc<Sockets>) -> Self {
        let Blueprint {
            upstreams,
            models,
            wildcards,
            object_providers,
            terms,
        } = blueprint;
        if let Some(previous) = previous {
            terms
                .authenticator
                .keep_key_sets_of(&previous.terms.authenticator);
        }
        // By name, too: how a provider is, another one at the same address need not be.
        let named = |name: &str| {
            let mut upstreams = previous.iter().flat_map(|catalog| &catalog.upstreams);
            upstreams.find(|upstream| upstream.name == name)
        };
        let upstreams = upstreams.into_iter().map(|plan| {
            let before = named(&plan.name);
            // What was made for another place is never sent to this one.
            let there = before.filter(|before| before.pool.has_base_of(&plan.route));
            let token = there.and_then(|before| before.token.clone()).unwrap_or_default();
            let signed = there.and_then(|before| before.signer.as_ref());
            Rc::new(Upstream {
                pool: Pool::follow(before.map(|upstream| &upstream.pool), plan.route, sockets),
                token: plan.wants_token.then_some(token),
                name: plan.name,
                family: plan.family,
                templates: plan.templates,
                signer: plan.signer.map(|plan| Signer::follow(plan, signed)),
                path_end: plan.path_end,
                betas: plan.betas,
                untranslatable: plan.untranslatable,
                key_missing: plan.key_missing,
                stream_usage: plan.stream_usage,
                max_concurrency: plan.max_concurrency,
                min_idle: plan.min_idle,
                rate: plan.rate,
                first_byte: plan.first_byte,
                idle: plan.idle,
                secrets: plan.secrets,
                set_fields: plan.set_fields,
            })
        });
        let upstreams: Vec<_> = upstreams.collect();
        let scratch = previous
            .filter(|previous| Arc::ptr_eq(&previous.terms.engine, &terms.engine))
            .map(|previous| Rc::clone(&previous.scratch));
        let in_service = |(name, plan): (String, ModelPlan)| {
            let targets = plan.targets.into_iter().map(|target| {
                let upstream = Rc::clone(&upstreams[target.upstream]);
                Target::new(
                    upstream,
                    target.upstream_model,
                    target.replacement,
                    target.weight,
                    target.prices,
                )
            });
            let model = Model {
                name: name.as_str().into(),
                targets: targets.collect(),
                fall_back_on: plan.fall_back_on,
                max_output_tokens: plan.max_output_tokens,
                known: plan.known,
            };
            (name, model)
        };
        let object_providers = object_providers.into_iter().map(|(tenant, plan)| {
            let (_, object_provider) = in_service((String::new(), plan));
            (tenant, object_provider)
        });
        let object_providers = object_providers.collect();
        let wildcards = wildcards.into_iter().map(in_service);
        Catalog {
            wildcards: wildcards.map(|(_, wildcard)| wildcard).collect(),
            models: models.into_iter().map(in_service).collect(),
            object_providers,
            scratch: scratch.unwrap_or_default(),
            upstreams,
            terms,
            sockets: Rc::clone(sockets),
        }
    }

    /// Where `model` is answered for `tenant`; `None` both when it does not exist and when it is not for this tenant.
    pub fn route(&self, tenant: &Tenant, model: &str) -> Option<&Model> {
        let allowed = &self.terms.plan(tenant).allowed;
        self.find(model).filter(|found| allowed.has_model(&found.name))
    }

    /// Where the files and batches of `tenant` are; `None` when no provider keeps them.
    pub fn stored_of(&self, tenant: &Tenant) -> Option<&Model> {
        self.object_providers.get(&*tenant.name)
    }

    /// Whether all providers of `model` are the one whose account is that of `tenant` alone.
    pub fn keeps_for(&self, tenant: &Tenant, model: &Model) -> bool {
        let object_provider = self.stored_of(tenant).and_then(|kept| kept.targets.first());
        object_provider.is_some_and(|object_provider| {
            let mut targets = model.targets.iter();
            targets.all(|target| target.upstream.name == object_provider.upstream.name)
        })
    }

    /// The models that `tenant` may use, each by what answers for it, sorted by name: in the place of one that stands for several
    /// the names that it is known to stand for.
    pub(crate) fn models_of<'c>(&'c self, tenant: &Tenant) -> Vec<(&'c str, &'c Model)> {
        let allowed = &self.terms.plan(tenant).allowed;
        let models = self.models.iter().map(|(name, model)| (name.as_str(), model));
        let known = self.wildcards.iter().flat_map(|wildcard| {
            let names = wildcard.known.iter().map(String::as_str);
            names.map(move |name| (name, wildcard))
        });
        let is_there = |(name, model): &(&'c str, &'c Model)| {
            let found = self.find(name);
            allowed.has_model(&model.name) && found.is_some_and(|found| std::ptr::eq(found, *model))
        };
        let mut models: Vec<_> = models.chain(known).filter(is_there).collect();
        models.sort_unstable_by_key(|(name, _)| *name);
        models
    }

    /// The names of the models that `tenant` may use and that stand for several, the longest first.
    pub(crate) fn wildcards_of(&self, tenant: &Tenant) -> Vec<&str> {
        let allowed = &self.terms.plan(tenant).allowed;
        let wildcards = self.wildcards.iter().map(|wildcard| &*wildcard.name);
        wildcards.filter(|name| allowed.has_model(name)).collect()
    }

    fn find(&self, model: &str) -> Option<&Model> {
        let named = self.models.get(model);
        named.or_else(|| self.wildcards.iter().find(|wildcard| wildcard.takes(model)))
    }

    /// Whether `model` is answered by `provider`.
    pub fn has_model(&self, model: &str, provider: &str) -> bool {
        let mut wildcards = self.wildcards.iter();
        let found = self.models.get(model);
        let found = found.or_else(|| wildcards.find(|wildcard| *wildcard.name == *model));
        let mut targets = found.iter().flat_map(|model| &model.targets);
        targets.any(|target| target.upstream.name == provider)
    }

    /// Gives a provider the access token that it is sent from now on; whether there is one that wants it.
    pub fn set_token(&self, provider: &str, token: Token) -> bool {
        let mut upstreams = self.upstreams.iter();
        let found = upstreams.find(|upstream| upstream.name == provider);
        match found.and_then(|upstream| upstream.token.as_ref()) {
            Some(cell) => {
                cell.set(token);
                true
            }
            None => false,
        }
    }

    /// Gives a provider the keys that requests to it are signed with from now on; whether there is one that takes any.
    pub fn set_keys(&self, provider: &str, keys: Keys) -> bool {
        let mut upstreams = self.upstreams.iter();
        let found = upstreams.find(|upstream| upstream.name == provider);
        let signer = found.and_then(|upstream| upstream.signer.as_ref());
        signer.is_some_and(|signer| signer.set(keys))
    }

    pub fn upstreams(&self) -> &[Rc<Upstream>] {
        &self.upstreams
    }
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
pub mod tests;
