//! The scan of a run that may be known already.

use std::time::Duration;

use proofgate_policy::{Budget, Engine, Fault, Match, Profile, Scope, Scratch, Step};

use crate::known::{Key, KnownRuns};
use crate::runs::RunScan;
use crate::tags::{Tag, Tagged, Tagging};

/// A shorter run is scanned about as fast as it is looked up.
pub const SHORTEST_KNOWN: usize = 32;

/// The runs of one tenant that are known; for every step of an inspection of its.
pub struct Recall<'k> {
    /// Those of all tenants.
    pub known: &'k mut KnownRuns,
    /// Whose request it is: nobody learns from the time that an answer takes what others have sent.
    pub tenant: &'k str,
}

/// The scans of the runs of one request, one after the other.
#[derive(Debug, Default)]
pub(crate) struct RecalledScan {
    scan: RunScan,
    tagging: Tagging,
    /// Of the run, once its text is hashed.
    key: Option<Key>,
    /// By scopes as numbers, once they are needed.
    conditions: [Option<Tag>; Scope::ALL.len()],
}

impl RecalledScan {
    /// As [`RunScan::step`]; a run that is known is not scanned.
    #[allow(clippy::too_many_arguments, reason = "what every scan is given")]
    pub(crate) fn step(
        &mut self,
        recall: Option<&mut Recall<'_>>,
        engine: &Engine,
        profile: &Profile,
        scope: Scope,
        text: &str,
        slice: Duration,
        budget: &mut Budget,
        scratch: &mut Scratch,
    ) -> Result<Step, Fault> {
        let is_worth = text.len() >= SHORTEST_KNOWN && !profile.is_idle_in(scope);
        let Some(recall) = recall.filter(|_| is_worth) else {
            return (self.scan).step(engine, profile, scope, text, slice, budget, scratch);
        };
        if self.key.is_none() {
            match self.tag(recall, profile, scope, text) {
                Some(Tagged::Pending) => return Ok(Step::Pending),
                Some(Tagged::Done(key)) => {
                    if self.is_known(recall.known, &key, text.len()) {
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
            recall.known.keep(key, recall.tenant, self.scan.matches());
        }
        Ok(step)
    }

    /// What was found in the run so far, with offsets from its beginning, in no order.
    pub(crate) fn matches(&self) -> &[Match] {
        self.scan.matches()
    }

    /// Forgets the run, for the next one of the same request.
    pub(crate) fn restart(&mut self) {
        self.scan.restart();
        self.tagging.restart();
        self.key = None;
    }

    /// Bytes of memory that it takes beside the text.
    pub(crate) fn capacity(&self) -> usize {
        self.scan.capacity()
    }

    /// Goes on with the key of a run; `None` if there will be none.
    fn tag(
        &mut self,
        recall: &mut Recall<'_>,
        profile: &Profile,
        scope: Scope,
        text: &str,
    ) -> Option<Tagged<Key>> {
        let text = match self.tagging.step(recall.known.tagger()?, text.as_bytes())? {
            Tagged::Pending => return Some(Tagged::Pending),
            Tagged::Done(tag) => tag,
        };
        let conditions = match self.conditions[scope as usize] {
            Some(conditions) => conditions,
            None => recall.known.conditions(profile, scope, recall.tenant)?,
        };
        self.conditions[scope as usize] = Some(conditions);
        Some(Tagged::Done(Key { conditions, text }))
    }

    /// Takes over what was found in a run if it is known.
    fn is_known(&mut self, known: &mut KnownRuns, key: &Key, length: usize) -> bool {
        let (length, found) = (length as u64, known.find(key));
        let is_known = found.is_some();
        if let Some(matches) = found {
            self.scan.take_over(matches);
            known.counts.hits += 1;
            known.counts.hit_bytes += length;
        } else {
            known.counts.misses += 1;
            known.counts.miss_bytes += length;
        }
        is_known
    }
}
