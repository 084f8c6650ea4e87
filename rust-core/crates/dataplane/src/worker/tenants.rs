//! Tenants that come and go without another configuration.

use super::{Worker, lock};
use proofgate_base::Error;
use proofgate_exchange::gateway::ConfigChange;
use proofgate_observe::tenant_shards::{ShardFiles, ShardsReport};

use crate::reload::{self, Command};

impl Worker {
    /// Takes other content of some shards of tenants into service, all of it as one change; returns when it is in
    /// service, before the start at once. A shard that cannot be read stays as it was and costs no other.
    ///
    /// # Errors
    /// [`Error::Config`] when the configuration has no shards; [`Error::Busy`], when nothing has changed;
    /// [`Error::NotRunning`].
    pub fn set_tenant_shards(&self, files: &[ShardFiles<'_>]) -> Result<ShardsReport, Error> {
        // Held to the end: a change must not overtake a configuration, nor another change.
        let _config = lock(&self.config);
        let shards = lock(&self.shards).clone();
        if !shards.has_configured_shards() {
            return Err(Error::Config("the configuration has no tenantShards".into()));
        }
        let (next, refused) = shards.with_files(files);
        let starts = lock(&self.blueprint).is_some();
        if !starts && next.digests() != shards.digests() {
            let change = ConfigChange {
                blueprint: None,
                shards: next.active_shards().clone(),
                digests: next.digests(),
            };
            reload::send_command(&self.running()?.commands, |done| {
                Command::Apply(Box::new(change), done)
            })?;
        }
        let report = next.report(refused);
        *lock(&self.shards) = next;
        Ok(report)
    }

    /// SHA-256 of the configuration in force, with its shards of tenants, in hex: what stands in records.
    pub fn config_digest(&self) -> String {
        let digest = lock(&self.shards).digests().config;
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
