//! Compares the zero salts with the erasures that the retention job signed.

use super::hold_check::STATEMENT_BACKDATED;
use super::salt_check::SaltState;
use crate::erasures;
use crate::report::Verdict;
use crate::{EvidenceError, ReadStorage};
use proofgate_ledger::{Erasure, ErasureScope, VerifyingKey};
use std::collections::BTreeSet;
use std::path::Path;

/// Finding code: a salt is zero, and no erasure covers it.
const SALT_ERASED_UNEXPLAINED: &str = "salt_erased_unexplained";
/// Finding code: an erasure was signed, but some of its salts still exist.
const ERASURE_UNFINISHED: &str = "erasure_unfinished";
/// Finding code: an erasure is invalid, not signed by the retention key, for another log, or untrue.
const ERASURE_REFUSED: &str = "erasure_refused";

/// The fields of an admission that erasures refer to.
struct Admission {
    seq: u64,
    tenant: usize,
    ts: u64,
}

/// Finds the admission with this number in an ordered list.
fn find_admission(of: &[Admission], seq: u64) -> Vec<&Admission> {
    let found = of.binary_search_by_key(&seq, |one| one.seq);
    found.ok().and_then(|at| of.get(at)).into_iter().collect()
}

/// A check of a log's erasures. Until the log's size is known, it collects the admissions whose
/// salt is zero and the admissions that an erasure may cover.
pub(super) struct ErasureCheck {
    text: Result<String, String>,
    retention_key: VerifyingKey,
    tenants: Vec<String>,
    /// Admissions whose salt is zero, or whose key was destroyed.
    erased: Vec<Admission>,
    /// Numbers of the admissions whose key was destroyed.
    shredded: BTreeSet<u64>,
    present: Vec<Admission>,
}

impl ErasureCheck {
    /// Reads the erasures of a log.
    pub(super) fn open(
        storage: &dyn ReadStorage,
        dir: &Path,
        keeping: &VerifyingKey,
    ) -> Result<Self, EvidenceError> {
        let text = match erasures::read_text(storage, dir) {
            Ok(text) => Ok(text),
            Err(EvidenceError::Corruption { reason, .. }) => Err(reason),
            Err(error) => return Err(error),
        };
        Ok(Self {
            text,
            retention_key: keeping.clone(),
            tenants: Vec::new(),
            erased: Vec::new(),
            shredded: BTreeSet::new(),
            present: Vec::new(),
        })
    }

    /// Adds an admitted or denied request with the state of its salt.
    pub(super) fn add_request(&mut self, seq: u64, tenant: &str, ts: u64, salt: SaltState) {
        // If a log has no erasures, only zero salts matter.
        if salt != SaltState::Zero && self.text.as_ref().is_ok_and(String::is_empty) {
            return;
        }
        if salt == SaltState::Shredded {
            self.shredded.insert(seq);
        }
        let known = self.tenants.iter().position(|known| known == tenant);
        let tenant = known.unwrap_or_else(|| {
            self.tenants.push(tenant.to_owned());
            self.tenants.len() - 1
        });
        let admission = Admission { seq, tenant, ts };
        match salt {
            SaltState::Zero | SaltState::Shredded => self.erased.push(admission),
            SaltState::Present => self.present.push(admission),
        }
    }

    /// Returns the findings for the log.
    pub(super) fn findings(&self, origin: &str, size: u64) -> Vec<(&'static str, Verdict, String)> {
        let mut found = Vec::new();
        let mut refuse = |why: String| found.push((ERASURE_REFUSED, Verdict::Invalid, why));
        let text = self.text.as_deref().unwrap_or_else(|why| {
            refuse(why.clone());
            ""
        });
        let mut signed: Vec<Erasure> = Vec::new();
        for (at, note) in erasures::read(text, origin, size, &self.retention_key)
            .into_iter()
            .enumerate()
        {
            match note {
                Ok(erasure) => signed.push(erasure),
                Err(why) => refuse(format!("note {} is refused: {why}", at + 1)),
            }
        }
        let about = |erasure: &Erasure, admission: &Admission| {
            erasure.covers(admission.seq, &self.tenants[admission.tenant], admission.ts)
        };
        // If there are many erasures, most of them cover one admission each.
        let (ones, tenants): (Vec<_>, Vec<_>) = signed
            .iter()
            .partition(|erasure| matches!(erasure.scope, ErasureScope::Single(_)));
        let mut backdated = None;
        let mut explained = self.shredded.clone();
        let mut left = BTreeSet::new();
        let mut count = |erasure: &Erasure, done: Vec<&Admission>, undone: Vec<&Admission>| {
            let there = (done.len() + undone.len()) as u64;
            let later = done.iter().chain(&undone).find(|one| one.ts > erasure.time);
            backdated = backdated.or(later.map(|one| (one.seq, one.ts, erasure.time)));
            explained.extend(done.iter().map(|one| one.seq));
            left.extend(undone.iter().map(|one| one.seq));
            if there != erasure.exchanges {
                refuse(format!(
                    "an erasure says that it covers {} admissions, but it covers {there}",
                    erasure.exchanges
                ));
            }
        };
        for erasure in ones {
            let ErasureScope::Single(seq) = erasure.scope else {
                continue;
            };
            count(
                erasure,
                find_admission(&self.erased, seq),
                find_admission(&self.present, seq),
            );
        }
        for erasure in tenants {
            let done = self.erased.iter().filter(|one| about(erasure, one));
            let undone = self.present.iter().filter(|one| about(erasure, one));
            count(erasure, done.collect(), undone.collect());
        }
        if let Some((seq, ts, time)) = backdated {
            let message = format!(
                "an erasure is dated {time}, but record {seq}, which it covers, is dated {ts} (unix microseconds)"
            );
            found.push((STATEMENT_BACKDATED, Verdict::Invalid, message));
        }
        if !left.is_empty() {
            let message = format!(
                "{} salts that should have been erased still exist: run erase again to finish",
                left.len()
            );
            found.push((ERASURE_UNFINISHED, Verdict::Incomplete, message));
        }
        let erased = self.erased.iter().map(|one| one.seq);
        let unexplained: Vec<u64> = erased.filter(|seq| !explained.contains(seq)).collect();
        if let Some(first) = unexplained.first() {
            let message = format!(
                "{} salts (first: record {first}) are zero, but no signed erasure covers them: they were lost, or somebody else erased them",
                unexplained.len()
            );
            found.push((SALT_ERASED_UNEXPLAINED, Verdict::Incomplete, message));
        }
        found
    }
}
