//! Requests witness cosignatures for the aggregate log (c2sp.org/tlog-witness), and publishes
//! checkpoints that a quorum has cosigned.
//!
//! The caller owns the connections: it takes a [`WitnessRequest`], sends it, and passes back the
//! [`WitnessResponse`]. This module never waits for a network, and a poll waits in this module only
//! for a write of the state. All witnesses are asked to cosign one checkpoint, the target, so that
//! their cosignatures are under one text. The target changes to the newest checkpoint once each
//! witness has cosigned the target, or has failed and waits for a retry. An unavailable or lying
//! witness therefore does not delay the others.
//!
//! The state stores the last cosignature of each witness, and the witness's claims against this
//! log.

use crate::files::{read, write};
use crate::finding::{FindingCode, RaisedFindings};
use crate::published_log::PublishedLog;
use crate::{AuditorError, StateStorage};
use proofgate_ledger::{AddCheckpoint, Cosignature, SignedCheckpoint, TrustPolicy};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Name of the file with the witnesses' cosignatures and claims.
const COSIGNATURES_FILE: &str = "cosignatures";
/// Microseconds until a failed witness is asked again. Each failure doubles the delay, up to
/// `MAX_RETRY_DELAY`.
const MIN_RETRY_DELAY: u64 = 1_000_000;
const MAX_RETRY_DELAY: u64 = 300_000_000;
/// Microseconds after which the target no longer waits for a witness that was asked, for example
/// because a name server does not answer.
const SLOW_WITNESS_TIMEOUT: u64 = 10_000_000;
/// Seconds by which a witness's clock may be ahead.
const MAX_CLOCK_SKEW_SECONDS: u64 = 300;
/// The media type of the size in a 409 response.
const SIZE_TYPE: &str = "text/x.tlog.size";

/// A request to a witness.
#[derive(Clone, Debug)]
pub struct WitnessRequest {
    /// Index of the witness in the policy.
    pub witness: usize,
    /// The body of the request to `<url>/add-checkpoint`.
    pub body: String,
    old_size: u64,
    size: u64,
    text: String,
}

/// The outcome of a request to a witness.
#[derive(Clone, Copy, Debug)]
pub enum WitnessResponse<'a> {
    /// An HTTP response, with a complete body of limited size.
    Http {
        /// The status code.
        status: u16,
        /// The `Content-Type`; empty when there is none.
        media_type: &'a str,
        /// The body.
        body: &'a [u8],
    },
    /// The reason why there was no response: `unreachable`, `timeout`, `tls`, `redirect`,
    /// `too_large`, or `bad_answer`.
    Failed(&'a str),
}

/// The status of a witness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WitnessStatus {
    /// Name of the witness in the policy.
    pub name: String,
    /// Whether the witness is asked, because the policy has a URL for it.
    pub asked: bool,
    /// Number of entries under the newest checkpoint that the witness has cosigned for this
    /// auditor.
    pub size: u64,
    /// Time of that cosignature, in unix seconds by the witness's clock; 0 when there is none.
    pub time: u64,
    /// Result of the last request; empty before the first request.
    pub last: String,
    /// Number of requests by result.
    pub results: BTreeMap<&'static str, u64>,
}

/// A witness's claim against this log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WitnessClaim {
    /// The witness has cosigned this many entries, but the log is smaller.
    Ahead(u64),
    /// The witness has cosigned a different root for this many entries.
    Other(u64),
}

/// The stored state of a witness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct WitnessState {
    /// Verifying key of the witness.
    witness: String,
    /// Number of entries that the witness has cosigned last, according to its responses.
    known: u64,
    claim: Option<WitnessClaim>,
    /// The newest cosignature of the witness.
    cosigned: Option<StoredCosignature>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredCosignature {
    size: u64,
    /// The checkpoint's text.
    text: String,
    time: u64,
    /// The signature line.
    line: String,
}

struct WitnessRow {
    kept: WitnessState,
    /// Time at which the pending request was sent; `None` without a pending request.
    asking: Option<u64>,
    /// Number of conflicts since the last request that ended with another result.
    conflicts: u32,
    failures: u32,
    not_before: u64,
    last: &'static str,
    results: BTreeMap<&'static str, u64>,
}

#[derive(Clone)]
struct Target {
    size: u64,
    text: String,
    note: String,
}

struct CosigningState {
    rows: Vec<WitnessRow>,
    target: Option<Target>,
    /// Whether a quorum may have cosigned a checkpoint that is not published yet.
    unpublished: bool,
}

/// A coordinator of the requests to the witnesses of a policy.
pub struct CosigningCoordinator {
    state: Arc<dyn StateStorage>,
    published: Arc<PublishedLog>,
    policy: Arc<TrustPolicy>,
    inner: Mutex<CosigningState>,
}

impl CosigningCoordinator {
    /// Opens the stored state. The state of witnesses that the policy no longer names is dropped.
    ///
    /// # Errors
    /// [`AuditorError::State`], [`AuditorError::StateCorrupt`].
    pub(crate) fn open(
        state: Arc<dyn StateStorage>,
        published: Arc<PublishedLog>,
        policy: Arc<TrustPolicy>,
    ) -> Result<Self, AuditorError> {
        let corrupt = |reason: String| AuditorError::corrupt(COSIGNATURES_FILE, reason);
        let all: Vec<WitnessState> = match read(&*state, COSIGNATURES_FILE)? {
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|error| corrupt(error.to_string()))?,
            None => Vec::new(),
        };
        let mut rows = Vec::new();
        for witness in policy.witnesses() {
            let vkey = witness.key.to_text();
            let kept = all.iter().find(|kept| kept.witness == vkey).cloned();
            if let Some(cosigned) = kept.as_ref().and_then(|kept| kept.cosigned.as_ref()) {
                Cosignature::from_response(&cosigned.text, &cosigned.line, &witness.key)
                    .map_err(|error| corrupt(error.to_string()))?;
            }
            rows.push(WitnessRow {
                kept: kept.unwrap_or(WitnessState {
                    witness: vkey,
                    known: 0,
                    claim: None,
                    cosigned: None,
                }),
                asking: None,
                conflicts: 0,
                failures: 0,
                not_before: 0,
                last: "",
                results: BTreeMap::new(),
            });
        }
        Ok(Self {
            state,
            published,
            policy,
            inner: Mutex::new(CosigningState {
                rows,
                target: None,
                unpublished: true,
            }),
        })
    }

    fn held(&self) -> MutexGuard<'_, CosigningState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next request to the witness with this index in the policy; `None` when no
    /// cosignature is needed or the witness's retry is not due. The caller must pass the outcome to
    /// [`Self::handle_response`]. `now` is in microseconds of a monotonic clock.
    ///
    /// # Errors
    /// [`AuditorError::State`], [`AuditorError::StateCorrupt`].
    pub fn next_request(&self, witness: usize, now: u64) -> Result<Option<WitnessRequest>, AuditorError> {
        let mut held = self.held();
        self.select_target(&mut held, now)?;
        if held.unpublished {
            self.publish(&mut held)?;
        }
        let asked = self.policy.witnesses().get(witness);
        let (Some(target), true) = (
            held.target.clone(),
            asked.is_some_and(|asked| asked.url.is_some()),
        ) else {
            return Ok(None);
        };
        let Some(row) = held.rows.get_mut(witness) else {
            return Ok(None);
        };
        if target.size == 0 || row.asking.is_some() || row.has_cosigned(&target) || now < row.not_before {
            return Ok(None);
        }
        let old = row.kept.known.min(target.size);
        let asked = AddCheckpoint {
            old_size: old,
            proof: self.published.proof_for_witness(old, target.size)?,
            note: &target.note,
        };
        let body = asked.encode();
        row.asking = Some(now);
        Ok(Some(WitnessRequest {
            witness,
            body,
            old_size: old,
            size: target.size,
            text: target.text,
        }))
    }

    /// Handles the outcome of a request and returns its result, as in [`WitnessStatus::last`]. `now` is as in
    /// [`Self::next_request`], `seconds` is in unix seconds.
    ///
    /// # Errors
    /// [`AuditorError::State`]. The response is then lost, and the witness is asked again.
    pub fn handle_response(
        &self,
        question: &WitnessRequest,
        answer: WitnessResponse<'_>,
        now: u64,
        seconds: u64,
    ) -> Result<&'static str, AuditorError> {
        let signed = self.published.signed_checkpoint().0;
        let (policy, mut held) = (Arc::clone(&self.policy), self.held());
        let held = &mut *held;
        let (Some(row), Some(witness)) = (
            held.rows.get_mut(question.witness),
            policy.witnesses().get(question.witness),
        ) else {
            return Ok("");
        };
        row.asking = None;
        let before = row.kept.clone();
        let result = match answer {
            WitnessResponse::Failed(why) => failure_label(why),
            WitnessResponse::Http {
                status: 200, body, ..
            } => {
                let text = std::str::from_utf8(body).ok();
                let cosignature =
                    text.map(|body| Cosignature::from_response(&question.text, body, &witness.key));
                match cosignature {
                    Some(Ok(cosignature))
                        if cosignature.time <= seconds.saturating_add(MAX_CLOCK_SKEW_SECONDS) =>
                    {
                        row.kept = WitnessState {
                            known: question.size,
                            claim: None,
                            cosigned: Some(StoredCosignature {
                                size: question.size,
                                text: question.text.clone(),
                                time: cosignature.time,
                                line: cosignature.line,
                            }),
                            witness: before.witness.clone(),
                        };
                        "cosigned"
                    }
                    _ => "bad_cosignature",
                }
            }
            WitnessResponse::Http {
                status: 409,
                media_type,
                body,
            } => row.handle_conflict(question, parse_conflict_size(media_type, body), signed),
            WitnessResponse::Http { status: 422, .. } if question.old_size > 0 => {
                row.kept.claim = Some(WitnessClaim::Other(question.old_size));
                "fork"
            }
            WitnessResponse::Http { status: 404, .. } => "unknown_log",
            WitnessResponse::Http { status: 403, .. } => "unknown_key",
            WitnessResponse::Http { .. } => "refused",
        };
        if result == "conflict" && row.kept.known > question.size {
            // The witness has cosigned a newer checkpoint, but that cosignature was lost.
            held.target = None;
        }
        let changed = row.kept != before;
        let ended = match changed.then(|| self.save(&held.rows)) {
            Some(Err(error)) => Err(error),
            _ => Ok(result),
        };
        let row = &mut held.rows[question.witness];
        if ended.is_err() {
            row.kept = before;
        }
        row.finish(ended.as_ref().map_or("state", |result| result), now);
        if ended.as_ref().is_ok_and(|result| *result == "cosigned") {
            held.unpublished = true;
            self.publish(held)?;
        }
        ended
    }

    /// Returns the status of the witnesses, in the order of the policy.
    #[must_use]
    pub fn witness_statuses(&self) -> Vec<WitnessStatus> {
        let held = self.held();
        let witnesses = self.policy.witnesses().iter().zip(&held.rows);
        witnesses
            .map(|(witness, row)| WitnessStatus {
                name: witness.name.clone(),
                asked: witness.url.is_some(),
                size: row.kept.cosigned.as_ref().map_or(0, |cosigned| cosigned.size),
                time: row.kept.cosigned.as_ref().map_or(0, |cosigned| cosigned.time),
                last: row.last.to_owned(),
                results: row.results.clone(),
            })
            .collect()
    }

    /// Returns the origin of the aggregate log.
    pub(crate) fn origin(&self) -> String {
        let (_, note) = self.published.signed_checkpoint();
        note.lines().next().unwrap_or_default().to_owned()
    }

    /// Raises the witnesses' claims against this log.
    pub(crate) fn raise_claims(&self, raised: &mut RaisedFindings) {
        let (origin, (signed, _)) = (self.origin(), self.published.signed_checkpoint());
        let held = self.held();
        for (witness, row) in self.policy.witnesses().iter().zip(&held.rows) {
            let name = &witness.name;
            match row.kept.claim {
                None => {}
                Some(WitnessClaim::Ahead(size)) => raised.raise(
                    FindingCode::AggregateRollback,
                    &origin,
                    "",
                    format!(
                        "the witness {name} says that it has cosigned {size} entries, but the auditor's state has only {signed}: the state was rolled back, or another auditor signs with the same key"
                    ),
                ),
                Some(WitnessClaim::Other(size)) => raised.raise(
                    FindingCode::AggregateFork,
                    &origin,
                    "",
                    format!(
                        "the witness {name} says that the {size} entries that it has cosigned differ from those in the auditor's state: the state was rolled back, or another auditor signs with the same key"
                    ),
                ),
            }
        }
    }

    /// Selects the checkpoint that all witnesses are asked to cosign.
    fn select_target(&self, held: &mut CosigningState, now: u64) -> Result<(), AuditorError> {
        let (size, note) = self.published.signed_checkpoint();
        if let Some(target) = &held.target {
            let waits = |(row, url): (&WitnessRow, &Option<String>)| {
                let waits = match row.asking {
                    Some(since) => now.saturating_sub(since) < SLOW_WITNESS_TIMEOUT,
                    None => !row.has_cosigned(target) && now >= row.not_before,
                };
                url.is_some() && waits
            };
            let urls = self.policy.witnesses().iter().map(|witness| &witness.url);
            if target.size == size || target.size > 0 && held.rows.iter().zip(urls).any(waits) {
                return Ok(());
            }
        }
        let text = SignedCheckpoint::parse(&note)?.text().to_owned();
        held.target = Some(Target { size, text, note });
        Ok(())
    }

    /// Publishes the target with its cosignatures if they form a quorum.
    fn publish(&self, held: &mut CosigningState) -> Result<(), AuditorError> {
        let Some(target) = &held.target else {
            return Ok(());
        };
        let has = |place: usize| held.rows.get(place).is_some_and(|row| row.has_cosigned(target));
        let mut note = target.note.clone();
        let lines = held.rows.iter().filter(|row| row.has_cosigned(target));
        for line in lines.filter_map(|row| row.kept.cosigned.as_ref()) {
            note.push_str(&line.line);
        }
        if self.policy.is_quorum(&has) && note.len() > target.note.len() {
            self.published.publish(target.size, note)?;
        }
        held.unpublished = false;
        Ok(())
    }

    fn save(&self, rows: &[WitnessRow]) -> Result<(), AuditorError> {
        let all: Vec<&WitnessState> = rows.iter().map(|row| &row.kept).collect();
        let bytes = serde_json::to_vec(&all)
            .map_err(|error| AuditorError::corrupt(COSIGNATURES_FILE, error.to_string()))?;
        write(&*self.state, COSIGNATURES_FILE, &bytes)
    }
}

impl WitnessRow {
    fn has_cosigned(&self, target: &Target) -> bool {
        let cosigned = self.kept.cosigned.as_ref();
        cosigned.is_some_and(|cosigned| cosigned.text == target.text)
    }

    /// Handles a 409 response with the size that the witness reports. `signed` is the size that
    /// this auditor has signed.
    fn handle_conflict(&mut self, question: &WitnessRequest, size: Option<u64>, signed: u64) -> &'static str {
        match size {
            Some(size) if size > signed => {
                self.kept.known = size;
                self.kept.claim = Some(WitnessClaim::Ahead(size));
                "rollback"
            }
            Some(size) if size != question.old_size => {
                self.kept.known = size;
                "conflict"
            }
            // The witness has the requested old size, but does not accept the checkpoint.
            Some(_) | None if question.old_size == question.size => {
                self.kept.claim = Some(WitnessClaim::Other(question.old_size));
                "fork"
            }
            _ => "bad_answer",
        }
    }

    fn finish(&mut self, result: &'static str, now: u64) {
        *self.results.entry(result).or_default() += 1;
        self.last = result;
        match result {
            "cosigned" => (self.failures, self.conflicts) = (0, 0),
            // The witness has reported its size. It is immediately asked again with this size, but
            // only once.
            "conflict" if self.conflicts == 0 => self.conflicts = 1,
            _ => {
                self.conflicts = 0;
                let delay = MIN_RETRY_DELAY << self.failures.min(16);
                self.failures = self.failures.saturating_add(1);
                self.not_before = now.saturating_add(delay.min(MAX_RETRY_DELAY));
            }
        }
    }
}

/// Parses the size in a 409 response.
fn parse_conflict_size(media_type: &str, body: &[u8]) -> Option<u64> {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case(SIZE_TYPE) {
        return None;
    }
    let text = std::str::from_utf8(body).ok()?.strip_suffix('\n')?;
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

/// Returns the metrics label for the reason why there was no response.
fn failure_label(why: &str) -> &'static str {
    const KNOWN: [&str; 5] = ["timeout", "tls", "redirect", "too_large", "bad_answer"];
    KNOWN
        .into_iter()
        .find(|known| *known == why)
        .unwrap_or("unreachable")
}
