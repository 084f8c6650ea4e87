//! What a configuration says of requests, apart from where they go: who may ask for what, how much, and under which rules.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proofgate_auth::{AllowList, ApiKey, Authenticator, ShardedTenant, Shards, Tenant, TenantTable};
use proofgate_base::Error;
use proofgate_base::routing::RoutingKey;
use proofgate_config::{Config, Cors, PersonalData, Settings, Timeouts};
use proofgate_evidence::payloads::MAX_PAYLOAD_BYTES;
use proofgate_evidence::{FileStorage, ShredKeys};
use proofgate_external_policies::Hook;
use proofgate_ledger::{Hash, ShredKey};
use proofgate_limits::{Quotas, TenantLimits};
use proofgate_observe::recorder::NoShredKey;
use proofgate_policy::{Engine, PolicyConfig, Profile, TenantPolicy};
use proofgate_wire::Limits;

use crate::client_tls::{self, ClientTls};
use crate::offered_tools::ToolCallBounds;
use crate::tool_policy::ToolPolicy;

/// What holds for requests, apart from where they go.
pub struct GatewaySettings {
    pub authenticator: Authenticator,
    /// One for each tenant of the configuration, in their order, and then those that have names.
    plans: Vec<TenantPlan>,
    /// The one of the configuration before, if the policy has not changed.
    pub engine: Arc<Engine>,
    pub cors: Option<Cors>,
    pub tls: Option<ClientTls>,
    /// What the load balancer is known by; `None` where clients connect themselves.
    pub routing_key: Option<RoutingKey>,
    pub limits: Limits,
    /// The same for a head alone: whether its body may be as long as it says, depends on what it is for.
    pub head_limits: Limits,
    /// Most bytes of a form with files.
    pub max_upload_bytes: u64,
    /// Most label sets of tenants in the metrics.
    pub max_label_sets: usize,
    /// Most bytes of request bodies in memory, of all connections together.
    pub max_buffered_bytes: u64,
    /// Bytes of these for what was found in messages that were scanned.
    pub(crate) max_scan_cache_bytes: u64,
    pub timeouts: Timeouts,
    /// What records say of persons.
    pub personal_data: PersonalData,
    /// What is told of exchanges beyond the metrics.
    pub telemetry: Settings,
    /// Of the configuration, without the shards of tenants.
    pub digest: Hash,
    /// The keys of tenants that lie off the ledger's volume; `None` where salts are stored whole.
    pub shred_keys: Option<Arc<ShredKeys>>,
}

/// The part of the memory for bodies that keeps what was found in messages: 4 MiB of 192 MiB.
const SCAN_CACHE_FRACTION: u64 = 48;
/// Most bytes of it: more than 39,000 messages.
const MAX_SCAN_CACHE_BYTES: u64 = 4 << 20;

/// What a tenant may call, how much it may use, and under which rules.
pub struct TenantPlan {
    pub allowed: AllowList,
    pub quotas: Arc<Quotas>,
    /// Features of Anthropic's API that it may not use, by the names of their betas.
    pub denied_betas: Vec<String>,
    /// Tools that the model may not call after a flagged text of a tool; `None` where it may call all.
    pub tool_policy: Option<ToolPolicy>,
    /// How often tools may be called that a provider runs itself.
    pub tool_calls: ToolCallBounds,
    /// How long a request waits that fits once others have given back what they reserved.
    pub max_wait: Duration,
    pub profile: Profile,
    /// What is asked beyond the rules, in this order.
    pub hooks: Box<[Arc<Hook>]>,
    /// Bytes of a body that is stored, at most; `None` where none is.
    pub max_payload_bytes: Option<usize>,
}

impl GatewaySettings {
    /// Bytes of memory for bodies and held answers.
    pub fn body_memory_bytes(&self) -> u64 {
        self.max_buffered_bytes - self.max_scan_cache_bytes
    }

    /// Bytes of memory for what was found in messages that were scanned.
    pub fn scan_cache_bytes(&self) -> usize {
        usize::try_from(self.max_scan_cache_bytes).unwrap_or(usize::MAX)
    }

    /// Checks and compiles them. `in_service`: the engine of the configuration before, which is kept if the policy is the
    /// same.
    ///
    /// # Errors
    /// [`Error::Config`] with the first thing that is wrong.
    pub fn new(config: &Config, in_service: Option<&Arc<Engine>>) -> Result<Self, Error> {
        let refuse = |error: &dyn std::fmt::Display| Error::Config(error.to_string());
        let nothing = PolicyConfig::default();
        let policy = config.policy.as_ref().unwrap_or(&nothing);
        let engine = match in_service.filter(|engine| engine.config() == policy) {
            Some(engine) => Arc::clone(engine),
            None => Arc::new(Engine::compile(policy).map_err(|error| refuse(&error))?),
        };
        let own = config.tenants.iter().map(|tenant| {
            let plan = TenantPlan {
                allowed: AllowList {
                    models: tenant.models.clone(),
                    endpoints: tenant.endpoints.clone(),
                    hosted_tools: tenant.hosted_tools.clone(),
                },
                quotas: Arc::new(Quotas::with_budgets(
                    &tenant.limits,
                    &tenant.key_limits,
                    &tenant.model_budgets,
                )),
                denied_betas: tenant.denied_betas.clone(),
                tool_policy: ToolPolicy::from_config(tenant.guarded_tools.as_ref()),
                tool_calls: tenant.tool_calls.into(),
                max_wait: tenant.wait,
                profile: profile(&engine, "tenant", &tenant.name, tenant.policy.as_ref())?,
                hooks: config
                    .hooks
                    .find_by_names("tenant", &tenant.name, &tenant.policies)?,
                max_payload_bytes: max_payload_bytes(config, "tenant", &tenant.name, tenant.payload_bytes)?,
            };
            Ok(plan)
        });
        let named = config.plans.iter().map(|plan| {
            let quotas = Quotas::with_budgets(&plan.limits, &plan.key_limits, &plan.model_budgets);
            let plan = TenantPlan {
                allowed: AllowList {
                    models: plan.models.clone(),
                    endpoints: plan.endpoints.clone(),
                    hosted_tools: plan.hosted_tools.clone(),
                },
                quotas: Arc::new(quotas.with_shared_limits(&plan.name, &plan.namespace_limits)),
                denied_betas: plan.denied_betas.clone(),
                tool_policy: ToolPolicy::from_config(plan.guarded_tools.as_ref()),
                tool_calls: plan.tool_calls.into(),
                max_wait: plan.wait,
                profile: profile(&engine, "plan", &plan.name, plan.policy.as_ref())?,
                hooks: config.hooks.find_by_names("plan", &plan.name, &plan.policies)?,
                max_payload_bytes: max_payload_bytes(config, "plan", &plan.name, plan.payload_bytes)?,
            };
            Ok(plan)
        });
        let plans = own.chain(named).collect::<Result<_, Error>>()?;
        let limits = Limits {
            head_bytes: config.limits.head_bytes,
            body_bytes: config.limits.body_bytes,
            ..Limits::default()
        };
        Ok(GatewaySettings {
            authenticator: Authenticator::new(tenants(config)?, named_plans(config)?, config.jwt.clone())
                .map_err(|error| refuse(&error))?,
            plans,
            max_scan_cache_bytes: scan_cache_bytes(config.limits.buffered_bytes, &engine),
            engine,
            cors: config.cors.clone(),
            tls: config.tls.as_ref().map(client_tls::prepare).transpose()?,
            routing_key: config
                .proxy_protocol
                .as_ref()
                .map(|proxy| RoutingKey::new(&proxy.routing_key)),
            limits,
            head_limits: Limits {
                body_bytes: config.limits.body_bytes.max(config.limits.upload_bytes),
                ..limits
            },
            max_upload_bytes: config.limits.upload_bytes,
            max_label_sets: config.metrics.label_sets,
            max_buffered_bytes: config.limits.buffered_bytes,
            timeouts: config.timeouts,
            personal_data: config.personal_data,
            telemetry: Settings::new(&config.telemetry)?,
            digest: parse_digest(&config.config_digest)
                .ok_or_else(|| Error::Config("config_digest is not SHA-256 in hex".into()))?,
            shred_keys: shred_keys(config)?,
        })
    }

    /// The key that the salts of a tenant's new exchanges need; `None` where they need none.
    ///
    /// # Errors
    /// [`NoShredKey`]: none of its exchanges may be admitted.
    pub fn shred_key(&self, tenant: &str) -> Result<Option<&Arc<ShredKey>>, NoShredKey> {
        match &self.shred_keys {
            Some(keys) => keys.current_key(tenant).map(Some).ok_or(NoShredKey),
            None => Ok(None),
        }
    }

    /// The plan of a tenant that this authenticator found.
    pub fn plan(&self, tenant: &Tenant) -> &TenantPlan {
        &self.plans[tenant.plan]
    }

    /// The limits of everybody who may ask.
    pub fn all_limits(&self, shards: &Shards) -> Vec<TenantLimits> {
        let configured = self.authenticator.tenants().iter().map(|tenant| TenantLimits {
            name: Arc::clone(&tenant.name),
            quotas: Arc::clone(&self.plan(tenant).quotas),
        });
        let sharded = shards.iter().flat_map(|shard| shard.tenants());
        configured
            .chain(sharded.filter_map(|tenant| self.limits_of(tenant)))
            .collect()
    }

    /// The limits of a tenant of a shard; `None` when there is no such plan.
    pub fn limits_of(&self, tenant: &ShardedTenant) -> Option<TenantLimits> {
        let plan = self.authenticator.plan(&tenant.plan)?;
        Some(TenantLimits {
            name: Arc::clone(&tenant.name),
            quotas: Arc::clone(&self.plans[plan].quotas),
        })
    }
}

/// The keys of tenants, and one for each tenant of the configuration.
fn shred_keys(config: &Config) -> Result<Option<Arc<ShredKeys>>, Error> {
    let Some(directory) = &config.shred_keys else {
        return Ok(None);
    };
    let keys = ShredKeys::read(&FileStorage, Path::new(directory))
        .map_err(|error| Error::Config(format!("shred keys: {error}")))?;
    match config
        .tenants
        .iter()
        .find(|tenant| keys.current_key(&tenant.name).is_none())
    {
        Some(tenant) => Err(Error::Config(format!(
            "tenant {:?} has no shred key",
            tenant.name
        ))),
        None => Ok(Some(Arc::new(keys))),
    }
}

/// Bytes of memory for what was found in messages, out of those for bodies.
fn scan_cache_bytes(buffered: u64, engine: &Engine) -> u64 {
    match engine.is_empty() {
        true => 0,
        false => (buffered / SCAN_CACHE_FRACTION).min(MAX_SCAN_CACHE_BYTES),
    }
}

fn profile(engine: &Engine, kind: &str, name: &str, policy: Option<&TenantPolicy>) -> Result<Profile, Error> {
    engine
        .profile(policy)
        .map_err(|error| Error::Config(format!("{kind} {name:?}: {error}")))
}

/// What a tenant or plan has stored, where that can be.
fn max_payload_bytes(
    config: &Config,
    kind: &str,
    name: &str,
    configured: Option<usize>,
) -> Result<Option<usize>, Error> {
    let Some(bytes) = configured else { return Ok(None) };
    let refuse = |why: &str| {
        Err(Error::Config(format!(
            "cannot store payloads for {kind} {name:?}: {why}"
        )))
    };
    let Some(payloads) = config.ledger.payloads else {
        return refuse("ledger.payloads is not configured");
    };
    if config.shred_keys.is_none() {
        return refuse("this needs shred keys, but no folder of shred keys is configured");
    }
    if bytes > MAX_PAYLOAD_BYTES || bytes.saturating_mul(2) > payloads.budget_bytes {
        return refuse(
            "the limit of one body must be at most half of the memory for all bodies, and at most 64 MiB",
        );
    }
    Ok(configured)
}

/// The indices of the plans that have names: they stand behind those of the tenants.
fn named_plans(config: &Config) -> Result<HashMap<String, usize>, Error> {
    let mut plans = HashMap::new();
    for (place, plan) in config.plans.iter().enumerate() {
        let index = config.tenants.len() + place;
        if plans.insert(plan.name.clone(), index).is_some() {
            return Err(Error::Config(format!("plan {:?} is given twice", plan.name)));
        }
    }
    Ok(plans)
}

fn tenants(config: &Config) -> Result<TenantTable, Error> {
    let mut tenants = Vec::new();
    for (plan, tenant) in config.tenants.iter().enumerate() {
        let keys = tenant.keys.iter().map(|key| {
            let hash = parse_digest(&key.hash).ok_or_else(|| {
                Error::Config(format!(
                    "tenant {:?} has a key hash that is not SHA-256 in hex",
                    tenant.name
                ))
            })?;
            Ok(ApiKey {
                hash,
                expires_at: key.expires_at,
                name: key.name.as_deref().map(Into::into),
            })
        });
        let keys = keys.collect::<Result<Vec<_>, Error>>()?;
        tenants.push((
            Tenant {
                name: tenant.name.as_str().into(),
                plan,
            },
            keys,
        ));
    }
    TenantTable::new(tenants).map_err(|error| Error::Config(error.to_string()))
}

/// Reads a SHA-256 digest from 64 hex digits.
pub fn parse_digest(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(hash)
}
