use std::collections::HashMap;
use std::rc::Rc;

use proofgate_auth::{Tenant, TenantTable};
use proofgate_providers::{BaseUrl, RequestTemplate};

use crate::config::{Config, ProviderKind};
use crate::upstream::Upstream;
use crate::{Error, upstream};

/// Who may ask for what, and where it is answered: the configuration in the form that a request needs.
pub(crate) struct Catalog {
    pub(crate) tenants: TenantTable,
    models: HashMap<String, ModelRoute>,
}

/// Where a model is answered.
pub(crate) struct ModelRoute {
    pub(crate) upstream: Rc<Upstream>,
    pub(crate) upstream_model: String,
    /// The JSON string that replaces the model's name, when it has another one upstream.
    pub(crate) replacement: Option<Vec<u8>>,
}

impl Catalog {
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let upstreams = upstreams(config)?;
        let mut models = HashMap::new();
        for model in &config.models {
            let upstream = upstreams.get(model.provider.as_str()).ok_or_else(|| {
                Error::Config(format!(
                    "model {:?} names provider {:?}, which is not there",
                    model.name, model.provider
                ))
            })?;
            let replacement = (model.upstream_model != model.name)
                .then(|| serde_json::to_vec(&model.upstream_model))
                .transpose()
                .map_err(|error| Error::Config(error.to_string()))?;
            let route = ModelRoute {
                upstream: Rc::clone(upstream),
                upstream_model: model.upstream_model.clone(),
                replacement,
            };
            if models.insert(model.name.clone(), route).is_some() {
                return Err(Error::Config(format!("model {:?} is given twice", model.name)));
            }
        }
        Ok(Catalog {
            tenants: tenants(config)?,
            models,
        })
    }

    /// Where `model` is answered for `tenant`; `None` both when it does not exist and when it is not for this tenant.
    pub(crate) fn route(&self, tenant: &Tenant, model: &str) -> Option<&ModelRoute> {
        self.models.get(model).filter(|_| tenant.may_use(model))
    }

    pub(crate) fn upstreams(&self) -> impl Iterator<Item = &Rc<Upstream>> {
        self.models.values().map(|route| &route.upstream)
    }
}

fn upstreams(config: &Config) -> Result<HashMap<&str, Rc<Upstream>>, Error> {
    let mut upstreams = HashMap::new();
    for provider in &config.providers {
        let fail = |message: String| Error::Config(format!("provider {:?}: {message}", provider.name));
        let base = BaseUrl::parse(&provider.base_url).map_err(|error| fail(error.to_string()))?;
        if provider
            .api_key
            .as_ref()
            .is_some_and(|key| !key.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err(fail("its API key holds a byte that no key has".into()));
        }
        let template = match provider.kind {
            ProviderKind::OpenAi => RequestTemplate::chat_completions(&base, provider.api_key.as_deref()),
        };
        let tls = base
            .tls
            .then(|| upstream::tls(&base.host, provider.ca_pem.as_deref()))
            .transpose()
            .map_err(fail)?;
        let upstream = Upstream::new(
            provider.name.clone(),
            base,
            template,
            tls,
            config.timeouts.upstream_connect,
        );
        if upstreams
            .insert(provider.name.as_str(), Rc::new(upstream))
            .is_some()
        {
            return Err(fail("given twice".into()));
        }
    }
    Ok(upstreams)
}

fn tenants(config: &Config) -> Result<TenantTable, Error> {
    let mut tenants = Vec::new();
    for tenant in &config.tenants {
        let hashes = tenant.key_hashes.iter().map(|text| {
            digest(text).ok_or_else(|| {
                Error::Config(format!(
                    "tenant {:?} has a key hash that is not SHA-256 in hex",
                    tenant.name
                ))
            })
        });
        let hashes = hashes.collect::<Result<Vec<_>, _>>()?;
        tenants.push((
            Tenant {
                name: tenant.name.clone(),
                models: tenant.models.clone(),
            },
            hashes,
        ));
    }
    TenantTable::new(tenants).map_err(|error| Error::Config(error.to_string()))
}

/// Reads a SHA-256 digest from 64 hex digits.
pub(crate) fn digest(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(hash)
}
