//! All settings of requests except their routes: access, limits and rules.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proofgate_auth::{AllowList, ApiKey, Authenticator, ShardedTenant, Shards, Tenant, TenantTable};
use proofgate_base::Error;
use proofgate_base::routing::RoutingKey;
use proofgate_config::{Config, Cors, PayloadMode, PersonalData, TelemetrySettings, Timeouts};
use proofgate_evidence::payloads::MAX_PAYLOAD_BYTES;
use proofgate_evidence::{FileStorage, ShredKeys};
use proofgate_external_policies::ExternalPolicy;
use proofgate_ledger::{Hash, ShredKey};
use proofgate_limits::{Quotas, TenantLimits};
use proofgate_observe::recorder::NoShredKey;
use proofgate_policy::{Engine, PolicyConfig, Profile, TenantPolicy};
use proofgate_wire::Limits;

use crate::client_tls::{self, ClientTls};
use crate::offered_tools::ToolCallBounds;
use crate::tool_policy::ToolPolicy;

/// All settings of requests except their routes.
pub struct GatewaySettings {
    pub authenticator: Authenticator,
    /// The plans of the configuration's tenants, in the order of the tenants, followed by the named
    /// plans.
    plans: Vec<TenantPlan>,
    /// The engine of the previous configuration, if the policy has not changed.
    pub engine: Arc<Engine>,
    pub cors: Option<Cors>,
    pub tls: Option<ClientTls>,
    /// The key of the load balancer; `None` if clients connect directly.
    pub routing_key: Option<RoutingKey>,
    pub limits: Limits,
    /// The limits of a request head. The maximum of a body depends on the endpoint.
    pub head_limits: Limits,
    /// Maximum bytes of a form with files.
    pub max_upload_bytes: u64,
    /// Maximum number of tenant label sets in the metrics.
    pub max_label_sets: usize,
    /// Maximum bytes of request bodies in memory, for all connections together.
    pub max_buffered_bytes: u64,
    /// The part of `max_buffered_bytes` that the cache of scan results gets, in bytes.
    pub(crate) max_scan_cache_bytes: u64,
    pub timeouts: Timeouts,
    /// The personal data that records contain.
    pub personal_data: PersonalData,
    /// The data of exchanges that the access log and traces report.
    pub telemetry: TelemetrySettings,
    /// The digest of the configuration, without the tenant shards.
    pub digest: Hash,
    /// The shred keys of tenants, stored off the ledger's volume; `None` if salts are stored whole.
    pub shred_keys: Option<Arc<ShredKeys>>,
}

/// The fraction of the memory for bodies that the cache of scan results gets: 4 MiB of 192 MiB.
const SCAN_CACHE_FRACTION: u64 = 48;
/// Maximum bytes of the cache of scan results, enough for more than 39,000 messages.
const MAX_SCAN_CACHE_BYTES: u64 = 4 << 20;

/// The access, limits and rules of a tenant.
pub struct TenantPlan {
    pub allowed: AllowList,
    pub quotas: Arc<Quotas>,
    /// Features of Anthropic's API that the tenant may not use, by their beta names.
    pub denied_betas: Vec<String>,
    /// Tools that the model may not call after a tool text was flagged; `None` if it may call all.
    pub tool_policy: Option<ToolPolicy>,
    /// The bounds on calls of provider-run tools.
    pub tool_calls: ToolCallBounds,
    /// The maximum time that a request waits for other requests to release their reservations.
    pub max_wait: Duration,
    pub profile: Profile,
    /// The external policies evaluated after the rules, in this order.
    pub external_policies: Box<[Arc<ExternalPolicy>]>,
    /// Maximum bytes of a stored body; `None` if bodies are not stored.
    pub max_payload_bytes: Option<usize>,
}

impl GatewaySettings {
    /// Returns the bytes of memory for bodies and held responses.
    pub fn body_memory_bytes(&self) -> u64 {
        self.max_buffered_bytes - self.max_scan_cache_bytes
    }

    /// Returns the bytes of memory for the cache of scan results.
    pub fn scan_cache_bytes(&self) -> usize {
        usize::try_from(self.max_scan_cache_bytes).unwrap_or(usize::MAX)
    }

    /// Checks and compiles the settings. `in_service`: the engine of the previous configuration, which is kept if the policy
    /// is the same.
    ///
    /// # Errors
    /// [`Error::Config`] with the first mistake.
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
                    hosted_tools: tenant.hosted_tools.allow.clone(),
                },
                quotas: Arc::new(Quotas::with_budgets(
                    &tenant.limits,
                    &tenant.key_limits,
                    &tenant.model_budgets,
                )),
                denied_betas: tenant.denied_betas.clone(),
                tool_policy: ToolPolicy::from_config(tenant.guarded_tools.as_ref()),
                tool_calls: (&tenant.hosted_tools).into(),
                max_wait: tenant.wait,
                profile: profile(&engine, "tenant", &tenant.name, tenant.policy.as_ref())?,
                external_policies: config
                    .policies
                    .find_by_names("tenant", &tenant.name, &tenant.policies)?,
                max_payload_bytes: max_payload_bytes(config, "tenant", &tenant.name, tenant.payloads)?,
            };
            Ok(plan)
        });
        let named = config.plans.iter().map(|plan| {
            let quotas = Quotas::with_budgets(&plan.limits, &plan.key_limits, &plan.model_budgets);
            let plan = TenantPlan {
                allowed: AllowList {
                    models: plan.models.clone(),
                    endpoints: plan.endpoints.clone(),
                    hosted_tools: plan.hosted_tools.allow.clone(),
                },
                quotas: Arc::new(quotas.with_shared_limits(&plan.name, &plan.namespace_limits)),
                denied_betas: plan.denied_betas.clone(),
                tool_policy: ToolPolicy::from_config(plan.guarded_tools.as_ref()),
                tool_calls: (&plan.hosted_tools).into(),
                max_wait: plan.wait,
                profile: profile(&engine, "plan", &plan.name, plan.policy.as_ref())?,
                external_policies: config
                    .policies
                    .find_by_names("plan", &plan.name, &plan.policies)?,
                max_payload_bytes: max_payload_bytes(config, "plan", &plan.name, plan.payloads)?,
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
            authenticator: Authenticator::new(
                tenants(config)?,
                named_plans(config)?,
                config.issuers().to_vec(),
            )
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
            personal_data: config.ledger.personal_data(),
            telemetry: TelemetrySettings::new(&config.telemetry)?,
            digest: parse_digest(&config.config_digest)
                .ok_or_else(|| Error::Config("configDigest is not SHA-256 in hex".into()))?,
            shred_keys: shred_keys(config)?,
        })
    }

    /// Returns the shred key for the salts of a tenant's new exchanges; `None` if salts are stored
    /// whole.
    ///
    /// # Errors
    /// [`NoShredKey`] if the key is missing: no exchange of the tenant may be admitted.
    pub fn shred_key(&self, tenant: &str) -> Result<Option<&Arc<ShredKey>>, NoShredKey> {
        match &self.shred_keys {
            Some(keys) => keys.current_key(tenant).map(Some).ok_or(NoShredKey),
            None => Ok(None),
        }
    }

    /// Returns the plan of a tenant, which this configuration's authenticator must have returned.
    pub fn plan(&self, tenant: &Tenant) -> &TenantPlan {
        &self.plans[tenant.plan]
    }

    /// Returns the limits of all tenants.
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

    /// Returns the limits of a tenant of a shard; `None` if its plan does not exist.
    pub fn limits_of(&self, tenant: &ShardedTenant) -> Option<TenantLimits> {
        let plan = self.authenticator.plan(&tenant.plan)?;
        Some(TenantLimits {
            name: Arc::clone(&tenant.name),
            quotas: Arc::clone(&self.plans[plan].quotas),
        })
    }
}

/// Reads the shred keys of tenants and checks that each tenant of the configuration has one.
fn shred_keys(config: &Config) -> Result<Option<Arc<ShredKeys>>, Error> {
    let Some(directory) = &config.ledger.shred_keys_directory else {
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

/// Returns the part of the memory for bodies that the cache of scan results gets, in bytes.
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

/// Returns the maximum bytes of a stored body of a tenant or plan; `None` if its bodies are not
/// stored. `mode`: the setting of the tenant or plan.
fn max_payload_bytes(
    config: &Config,
    kind: &str,
    name: &str,
    mode: Option<PayloadMode>,
) -> Result<Option<usize>, Error> {
    let mode = mode.or(config.ledger.payloads.map(|payloads| payloads.mode));
    if mode != Some(PayloadMode::Stored) {
        return Ok(None);
    }
    let refuse = |why: &str| {
        Err(Error::Config(format!(
            "cannot store payloads for {kind} {name:?}: {why}"
        )))
    };
    let Some(payloads) = config.ledger.payloads else {
        return refuse("ledger.payloads is not configured");
    };
    if config.ledger.shred_keys_directory.is_none() {
        return refuse("stored payloads need shred keys, but no folder of shred keys is configured");
    }
    let bytes = payloads.max_bytes;
    if bytes > MAX_PAYLOAD_BYTES || bytes.saturating_mul(2) > payloads.budget_bytes {
        return refuse(
            "the limit of one body must be at most half of the memory for all bodies, and at most 64 MiB",
        );
    }
    Ok(Some(bytes))
}

/// Returns the indices of the named plans, which follow those of the tenants.
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
