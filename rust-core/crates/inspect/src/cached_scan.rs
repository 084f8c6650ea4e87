//! The scan of a run that may be cached.

use std::time::Duration;

use proofgate_policy::{Budget, Engine, EvaluationError, Match, Profile, Scope, Scratch, Step};

use crate::runs::RunScan;
use crate::scan_cache::{RunKey, ScanCache};
use crate::tags::{HashProgress, Tag, TextHasher};

/// Minimum bytes of a cached run: scanning a shorter run is about as fast as a lookup.
pub const MIN_CACHED_RUN_BYTES: usize = 32;

/// The access of one tenant to the scan cache, for every step of an inspection of its requests.
pub struct TenantScanCache<'k> {
    /// The cache of all tenants.
    pub cache: &'k mut ScanCache,
    /// The tenant of the request. Entries are separate, so that response times reveal nothing about other tenants' texts.
    pub tenant: &'k str,
}

/// The successive scans of the runs of one request.
#[derive(Debug, Default)]
pub(crate) struct CachedScan {
    scan: RunScan,
    text_hasher: TextHasher,
    /// The key of the run, once its text is hashed.
    key: Option<RunKey>,
    /// The hashes of the scan conditions, indexed by scope; computed on first use.
    conditions: [Option<Tag>; Scope::ALL.len()],
}

impl CachedScan {
    /// Like [`RunScan::step`]; a cached run is not scanned.
    #[allow(
        clippy::too_many_arguments,
        reason = "every scan needs all of these arguments"
    )]
    pub(crate) fn step(
        &mut self,
        recall: Option<&mut TenantScanCache<'_>>,
        engine: &Engine,
        profile: &Profile,
        scope: Scope,
        text: &str,
        slice: Duration,
        budget: &mut Budget,
        scratch: &mut Scratch,
    ) -> Result<Step, EvaluationError> {
        let is_worth = text.len() >= MIN_CACHED_RUN_BYTES && !profile.is_idle_in(scope);
        let Some(recall) = recall.filter(|_| is_worth) else {
            return (self.scan).step(engine, profile, scope, text, slice, budget, scratch);
        };
        if self.key.is_none() {
            match self.compute_key(recall, profile, scope, text) {
                Some(HashProgress::Pending) => return Ok(Step::Pending),
                Some(HashProgress::Done(key)) => {
                    if self.load_cached(recall.cache, &key, text.len()) {
                        return Ok(Step::Done);
                    }
                    self.key = Some(key);
                }
                None => {}
            }
        }
        let step = (self.scan).step(engine, profile, scope, text, slice, budget, scratch)?;
        if step == Step::Done
            && let Some(key) = self.key
        {
            recall.cache.insert(key, recall.tenant, self.scan.matches());
        }
        Ok(step)
    }

    /// Returns the matches found in the run so far, with offsets from its beginning, in no particular order.
    pub(crate) fn matches(&self) -> &[Match] {
        self.scan.matches()
    }

    /// Resets the scan for the next run of the same request.
    pub(crate) fn restart(&mut self) {
        self.scan.restart();
        self.text_hasher.restart();
        self.key = None;
    }

    /// Returns the memory in use besides the text, in bytes.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.scan.capacity()
    }

    /// Continues computing the key of a run; `None` if the run gets no key.
    fn compute_key(
        &mut self,
        recall: &mut TenantScanCache<'_>,
        profile: &Profile,
        scope: Scope,
        text: &str,
    ) -> Option<HashProgress<RunKey>> {
        let text = match self.text_hasher.step(recall.cache.tagger()?, text.as_bytes())? {
            HashProgress::Pending => return Some(HashProgress::Pending),
            HashProgress::Done(tag) => tag,
        };
        let conditions = match self.conditions[scope as usize] {
            Some(conditions) => conditions,
            None => recall.cache.conditions_tag(profile, scope, recall.tenant)?,
        };
        self.conditions[scope as usize] = Some(conditions);
        Some(HashProgress::Done(RunKey { conditions, text }))
    }

    /// Loads the matches of a run if it is cached.
    fn load_cached(&mut self, known: &mut ScanCache, key: &RunKey, length: usize) -> bool {
        let (length, found) = (length as u64, known.find(key));
        let is_known = found.is_some();
        if let Some(matches) = found {
            self.scan.set_matches(matches);
            known.counts.hits += 1;
            known.counts.hit_bytes += length;
        } else {
            known.counts.misses += 1;
            known.counts.miss_bytes += length;
        }
        is_known
    }
}
