//! Changes of tenants without a new configuration.

use super::{Worker, lock};
use proofgate_base::Error;
use proofgate_exchange::gateway::ConfigChange;
use proofgate_observe::tenant_shards::{ShardFiles, ShardsReport};

use crate::reload::{self, Command};

impl Worker {
    /// Applies new contents of tenant shards as one change. Returns when the change is in service;
    /// before the start, immediately. A shard that cannot be read keeps its old contents and does
    /// not affect the others.
    ///
    /// # Errors
    /// [`Error::Config`] if the configuration has no shards; [`Error::CommandTimedOut`] if the data-plane
    /// thread is busy; nothing has changed then; [`Error::NotRunning`].
    pub fn set_tenant_shards(&self, files: &[ShardFiles<'_>]) -> Result<ShardsReport, Error> {
        // Held to the end, so that a change cannot overtake a configuration or another change.
        let _config = lock(&self.config);
        let shards = lock(&self.shards).clone();
        if !shards.has_configured_shards() {
            return Err(Error::Config("the configuration has no tenantShards".into()));
        }
        let (next, refused) = shards.with_files(files);
        let starts = lock(&self.blueprint).is_some();
        if !starts && next.digests() != shards.digests() {
            let change = ConfigChange {
                compiled_config: None,
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

    /// Returns the SHA-256 of the active configuration with its tenant shards, in hex, as records contain it.
    pub fn config_digest(&self) -> String {
        let digest = lock(&self.shards).digests().config;
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
