//! A configuration in the form that requests need: the routes and the [`GatewaySettings`].
//!
//! A configuration is built in two steps. A [`CompiledConfig`] holds everything that takes long or
//! can fail (compiling rules, parsing certificates) and can be built on any thread. A [`Catalog`]
//! is a compiled configuration that the data-plane thread has put into service. It reuses its
//! predecessor's connections to upstreams whose route is the same.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use proofgate_auth::Tenant;
use proofgate_base::Error;
use proofgate_base::descriptors::UpstreamSockets;
use proofgate_config::{
    Config, FallbackReasons, Model as ModelConfig, Provider, ProviderKind, RateLimits, ResponsesApiMode,
    StreamUsage, Vertex,
};
use proofgate_observe::limit_thread::ModelNames;
use proofgate_policy::{Engine, Scratch};
use proofgate_providers::{
    BaseUrl, BodyFieldOverrides, Dialect, Family, ProviderKey, RequestTemplate, StorageOperation,
};
use proofgate_translate::UntranslatableFieldPolicy;
use proofgate_translate::constraints::lacks_responses_api;
use proofgate_wire::encode;

use crate::access_token::ExpiringToken;
use crate::path_style::PathStyle;
use crate::pricing::{Prices, Pricing};
use crate::routes::{MAX_TARGETS, Model, Target};
use crate::settings::GatewaySettings;
use crate::signer::{Signer, SignerPlan, SigningCredentials};
use crate::upstream::{Egress, Pool, Proxy, Route as UpstreamRoute, TlsTrust, Upstream};
use crate::wildcard::{WILDCARD, client_name, matches_wildcard};

/// A configuration, fully checked and compiled.
pub struct CompiledConfig {
    upstreams: Vec<UpstreamPlan>,
    models: HashMap<String, ModelPlan>,
    /// Models that match all names with a prefix, the longest prefix first.
    wildcards: Vec<(String, ModelPlan)>,
    /// The provider that keeps the files and batches of each tenant.
    object_providers: HashMap<String, ModelPlan>,
    /// Everything that does not need the data-plane thread.
    pub settings: GatewaySettings,
}

struct UpstreamPlan {
    name: String,
    family: Family,
    templates: Vec<(Dialect, RequestTemplate)>,
    signer: Option<SignerPlan>,
    requires_token: bool,
    path_style: PathStyle,
    betas: Option<Vec<String>>,
    untranslatable: UntranslatableFieldPolicy,
    is_key_missing: bool,
    stream_usage: StreamUsage,
    max_concurrency: Option<u32>,
    min_idle: usize,
    rate: RateLimits,
    first_byte_timeout: Duration,
    idle_timeout: Duration,
    secrets: Vec<Box<str>>,
    set_fields: BodyFieldOverrides,
    route: UpstreamRoute,
}

struct ModelPlan {
    targets: Vec<TargetPlan>,
    fallback_reasons: FallbackReasons,
    max_output_tokens: u64,
    known_names: Vec<String>,
}

struct TargetPlan {
    upstream: usize,
    upstream_model: String,
    replacement_name: Option<Vec<u8>>,
    weight: u32,
    prices: Prices,
}

/// A configuration in service.
pub struct Catalog {
    upstreams: Vec<Rc<Upstream>>,
    models: HashMap<String, Model>,
    /// Models that match all names with a prefix, the longest prefix first.
    wildcards: Vec<Model>,
    /// The provider that keeps each tenant's files and batches, which have no model name.
    object_providers: HashMap<String, Model>,
    /// Scratch space that each scan of the engine needs and the next scan reuses. Only catalogs
    /// with the same engine share it, because each switch to another engine would rebuild the
    /// automata.
    pub scratch: Rc<RefCell<Scratch>>,
    pub settings: GatewaySettings,
    /// The sockets to providers, shared by all catalogs of a worker.
    pub sockets: Rc<UpstreamSockets>,
}

impl CompiledConfig {
    /// Checks and compiles a configuration. `in_service`: the engine of the previous configuration,
    /// which is reused if the policy is the same.
    ///
    /// # Errors
    /// [`Error::Config`] with the first mistake; it never contains a secret.
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
            let key = key.map(|key| ProviderKey {
                header_prefix: field,
                key,
            });
            let path_end = path_style(provider).map_err(fail)?;
            let of_claude: &[Dialect] = match path_end {
                PathStyle::Publisher { .. } => Family::Anthropic.dialects(),
                _ => &[],
            };
            let lines = header_lines(provider).map_err(fail)?;
            let set_fields = provider.body_fields.iter().flat_map(|fields| &fields.0);
            let set_fields = BodyFieldOverrides::new(set_fields.map(|field| (&*field.name, &*field.value)));
            let set_fields = set_fields
                .map_err(|name| fail(format!("the value of its body field {name:?} is not JSON")))?;
            let has_objects = provider.objects_of.is_some();
            let kept = has_objects.then_some(StorageOperation::ALL).into_iter().flatten();
            let spoken = family.dialects().iter().chain(of_claude).copied();
            let spoken = spoken.chain(kept.map(Dialect::Storage));
            let has_responses = match provider.responses {
                ResponsesApiMode::Auto => !lacks_responses_api(&base.host.to_ascii_lowercase()),
                ResponsesApiMode::Native => true,
                ResponsesApiMode::Translated => false,
            };
            let spoken = spoken.filter(|dialect| has_responses || !dialect.uses_responses_format());
            let templates = spoken.filter_map(|dialect| {
                let begin = path_end.prefix(dialect)?;
                let template = RequestTemplate::for_endpoint(&base, &begin, dialect, key);
                Some((dialect, template.with_header_lines(&lines)))
            });
            let templates = templates.collect();
            let (own, all) = (provider.timeouts.unwrap_or_default(), config.timeouts);
            let route = UpstreamRoute::new(
                base,
                TlsTrust {
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
                return Err(fail("another provider has the same name".into()));
            }
            upstreams.push(UpstreamPlan {
                name: provider.name.clone(),
                family,
                templates,
                signer,
                requires_token: wants_token,
                path_style: path_end,
                betas: provider.betas.clone(),
                untranslatable: provider.untranslatable,
                is_key_missing: provider.key_missing,
                stream_usage: provider.stream_usage,
                max_concurrency: provider.max_concurrency,
                min_idle: provider.min_idle,
                rate: provider.rate.unwrap_or_default(),
                first_byte_timeout: own
                    .first_byte
                    .or(all.upstream_first_byte)
                    .unwrap_or(all.upstream_response),
                idle_timeout: own.idle.unwrap_or(all.upstream_response),
                secrets: secrets(provider),
                set_fields,
                route: route.map_err(fail)?.with_keep_alive(own.keep_alive),
            });
        }
        let pricing = Pricing::new(config)?;
        let models = models(config, &pricing, &places)?.into_iter();
        let (mut wildcards, models): (Vec<_>, Vec<_>) =
            models.partition(|(name, _)| name.ends_with(WILDCARD));
        wildcards.sort_unstable_by_key(|(name, _)| Reverse(name.len()));
        Ok(CompiledConfig {
            models: models.into_iter().collect(),
            wildcards,
            object_providers: object_providers(config, &pricing)?,
            settings: GatewaySettings::new(config, in_service)?,
            upstreams,
        })
    }
}

impl ModelNames for CompiledConfig {
    /// Returns the configured name that [`Catalog::route`] would choose.
    fn configured_name<'n>(&'n self, asked: &'n str) -> &'n str {
        if self.models.contains_key(asked) {
            return asked;
        }
        let mut wildcards = self.wildcards.iter().map(|(name, _)| name.as_str());
        wildcards
            .find(|name| matches_wildcard(name, asked))
            .unwrap_or(asked)
    }
}

/// Returns the header lines of every request to a provider.
fn header_lines(provider: &Provider) -> Result<Vec<u8>, String> {
    let mut lines = Vec::new();
    for header in &provider.headers {
        let value = header.value.as_deref().unwrap_or_default();
        let written = encode::write_header(&mut lines, &header.name, value.as_bytes());
        // The error does not quote the value, which may be a secret.
        written.map_err(|_| format!("its header {:?} cannot be written", header.name))?;
    }
    Ok(lines)
}

/// Returns the parts of requests to a provider that must never be logged: its key, and the values
/// of secret headers.
fn secrets(provider: &Provider) -> Vec<Box<str>> {
    let headers = provider.headers.iter().filter(|header| header.secret);
    let values = headers.filter_map(|header| header.value.as_deref());
    let all = provider.api_key.as_deref().into_iter().chain(values);
    all.filter(|secret| !secret.is_empty()).map(Into::into).collect()
}

fn path_style(provider: &Provider) -> Result<PathStyle, String> {
    match (provider.vertex(), provider.kind) {
        (Some(vertex), ProviderKind::VertexAi) => {
            let Vertex { project, location } = vertex;
            // The ID of a project that belongs to an organisation's domain contains a colon.
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b':');
            let is_step = |name: &str| name.bytes().all(|byte| byte == b'.');
            if [project, location]
                .iter()
                .any(|name| is_step(name) || !name.bytes().all(is_name))
            {
                return Err("its project or location is empty or contains an invalid character".into());
            }
            return Ok(PathStyle::Publisher {
                location: format!("/projects/{project}/locations/{location}"),
            });
        }
        (None, ProviderKind::VertexAi) => return Err("it needs a project and a location".into()),
        (Some(_), _) => return Err("it has a project and location, but is not a Vertex AI provider".into()),
        (None, _) => {}
    }
    let Some(version) = &provider.azure_api_version else {
        return Ok(PathStyle::Dialect(provider.arn_in_path));
    };
    let is_version = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    if version.is_empty() || !version.bytes().all(is_version) {
        return Err("its API version is empty or contains an invalid character".into());
    }
    match provider.kind {
        ProviderKind::AzureOpenAi => Ok(PathStyle::Deployment {
            query: format!("?api-version={version}"),
        }),
        _ => Err("it has an API version, but is not an Azure provider".into()),
    }
}

/// Returns the providers that keep the files and batches of a tenant, each as the only target of a model without a name.
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
                replacement_name: None,
                weight: 1,
                prices: pricing.prices(&provider.name, ""),
            }],
            fallback_reasons: FallbackReasons::default(),
            max_output_tokens: 0,
            known_names: Vec::new(),
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
            // In a path, `.` and `..` are dot segments, not names.
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
                replacement_name: replacement.map_err(|error| fail(error.to_string()))?,
                weight: target.weight,
                prices: pricing.prices(target.provider, target.upstream_model),
            })
        });
        let plan = ModelPlan {
            targets: targets.collect::<Result<_, Error>>()?,
            fallback_reasons: model.fall_back_on,
            max_output_tokens: model.max_output_tokens,
            known_names: known_names(model, pricing),
        };
        if models.insert(model.name.clone(), plan).is_some() {
            return Err(Error::Config(format!("model {:?} is given twice", model.name)));
        }
    }
    Ok(models)
}

/// Returns the names that a wildcard model matches and for which its first provider has a price.
fn known_names(model: &ModelConfig, pricing: &Pricing<'_>) -> Vec<String> {
    let Some(target) = model.targets().next() else {
        return Vec::new();
    };
    let there = pricing.models(target.provider);
    let names = there.filter_map(|there| client_name(&model.name, target.upstream_model, there));
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

impl Catalog {
    /// Puts a compiled configuration into service. It reuses the parts of its predecessor that are
    /// still valid: connections to upstreams whose route is the same, and the signing keys of
    /// issuers. New connections are counted in `sockets`.
    pub fn new(blueprint: CompiledConfig, previous: Option<&Catalog>, sockets: &Rc<UpstreamSockets>) -> Self {
        let CompiledConfig {
            upstreams,
            models,
            wildcards,
            object_providers,
            settings: terms,
        } = blueprint;
        if let Some(previous) = previous {
            terms
                .authenticator
                .inherit_key_sets(&previous.settings.authenticator);
        }
        // The name must match, too: the health of one provider does not apply to another at the
        // same address.
        let named = |name: &str| {
            let mut upstreams = previous.iter().flat_map(|catalog| &catalog.upstreams);
            upstreams.find(|upstream| upstream.name == name)
        };
        let upstreams = upstreams.into_iter().map(|plan| {
            let before = named(&plan.name);
            // A credential for another base URL is never sent to this one.
            let there = before.filter(|before| before.pool.has_same_base(&plan.route));
            let token = there.and_then(|before| before.token.clone()).unwrap_or_default();
            let signed = there.and_then(|before| before.signer.as_ref());
            Rc::new(Upstream {
                pool: Pool::reuse_or_new(before.map(|upstream| &upstream.pool), plan.route, sockets),
                token: plan.requires_token.then_some(token),
                name: plan.name,
                family: plan.family,
                templates: plan.templates,
                signer: plan.signer.map(|plan| Signer::from_plan(plan, signed)),
                path_style: plan.path_style,
                betas: plan.betas,
                untranslatable_fields: plan.untranslatable,
                is_key_missing: plan.is_key_missing,
                stream_usage: plan.stream_usage,
                max_concurrency: plan.max_concurrency,
                min_idle: plan.min_idle,
                rate: plan.rate,
                first_byte_timeout: plan.first_byte_timeout,
                idle_timeout: plan.idle_timeout,
                secrets: plan.secrets,
                body_field_overrides: plan.set_fields,
            })
        });
        let upstreams: Vec<_> = upstreams.collect();
        let scratch = previous
            .filter(|previous| Arc::ptr_eq(&previous.settings.engine, &terms.engine))
            .map(|previous| Rc::clone(&previous.scratch));
        let in_service = |(name, plan): (String, ModelPlan)| {
            let targets = plan.targets.into_iter().map(|target| {
                let upstream = Rc::clone(&upstreams[target.upstream]);
                Target::new(
                    upstream,
                    target.upstream_model,
                    target.replacement_name,
                    target.weight,
                    target.prices,
                )
            });
            let model = Model {
                name: name.as_str().into(),
                targets: targets.collect(),
                fallback_reasons: plan.fallback_reasons,
                max_output_tokens: plan.max_output_tokens,
                known_names: plan.known_names,
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
            settings: terms,
            sockets: Rc::clone(sockets),
        }
    }

    /// Returns the route of `model` for `tenant`; `None` if the model does not exist or the tenant
    /// may not use it.
    pub fn route(&self, tenant: &Tenant, model: &str) -> Option<&Model> {
        let allowed = &self.settings.plan(tenant).allowed;
        self.find(model).filter(|found| allowed.allows_model(&found.name))
    }

    /// Returns the provider of the files and batches of `tenant`; `None` if no provider keeps them.
    pub fn object_provider(&self, tenant: &Tenant) -> Option<&Model> {
        self.object_providers.get(&*tenant.name)
    }

    /// Whether all targets of `model` use the provider whose account belongs to `tenant` alone.
    pub fn is_dedicated_to(&self, tenant: &Tenant, model: &Model) -> bool {
        let object_provider = self.object_provider(tenant).and_then(|kept| kept.targets.first());
        object_provider.is_some_and(|object_provider| {
            let mut targets = model.targets.iter();
            targets.all(|target| target.upstream.name == object_provider.upstream.name)
        })
    }

    /// Returns the models that `tenant` may use, each with its route, sorted by name. A wildcard is replaced by the names
    /// that it is known to match.
    pub(crate) fn models_of<'c>(&'c self, tenant: &Tenant) -> Vec<(&'c str, &'c Model)> {
        let allowed = &self.settings.plan(tenant).allowed;
        let models = self.models.iter().map(|(name, model)| (name.as_str(), model));
        let known = self.wildcards.iter().flat_map(|wildcard| {
            let names = wildcard.known_names.iter().map(String::as_str);
            names.map(move |name| (name, wildcard))
        });
        let is_there = |(name, model): &(&'c str, &'c Model)| {
            let found = self.find(name);
            allowed.allows_model(&model.name) && found.is_some_and(|found| std::ptr::eq(found, *model))
        };
        let mut models: Vec<_> = models.chain(known).filter(is_there).collect();
        models.sort_unstable_by_key(|(name, _)| *name);
        models
    }

    /// Returns the wildcard names that `tenant` may use, the longest first.
    pub(crate) fn wildcards_of(&self, tenant: &Tenant) -> Vec<&str> {
        let allowed = &self.settings.plan(tenant).allowed;
        let wildcards = self.wildcards.iter().map(|wildcard| &*wildcard.name);
        wildcards.filter(|name| allowed.allows_model(name)).collect()
    }

    fn find(&self, model: &str) -> Option<&Model> {
        let named = self.models.get(model);
        named.or_else(|| self.wildcards.iter().find(|wildcard| wildcard.matches(model)))
    }

    /// Whether `provider` is a target of `model`.
    pub fn has_model(&self, model: &str, provider: &str) -> bool {
        let mut wildcards = self.wildcards.iter();
        let found = self.models.get(model);
        let found = found.or_else(|| wildcards.find(|wildcard| *wildcard.name == *model));
        let mut targets = found.iter().flat_map(|model| &model.targets);
        targets.any(|target| target.upstream.name == provider)
    }

    /// Sets the access token that is sent to a provider from now on; returns whether any provider uses one.
    pub fn set_token(&self, provider: &str, token: ExpiringToken) -> bool {
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

    /// Sets the keys that sign requests to a provider from now on; returns whether any provider uses them.
    pub fn set_keys(&self, provider: &str, keys: SigningCredentials) -> bool {
        let mut upstreams = self.upstreams.iter();
        let found = upstreams.find(|upstream| upstream.name == provider);
        let signer = found.and_then(|upstream| upstream.signer.as_ref());
        signer.is_some_and(|signer| signer.set_keys(keys))
    }

    pub fn upstreams(&self) -> &[Rc<Upstream>] {
        &self.upstreams
    }
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
pub mod tests;
