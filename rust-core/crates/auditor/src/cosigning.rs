//! Asking witnesses to cosign the aggregate log (c2sp.org/tlog-witness), and publishing what a quorum of them has cosigned.
//!
//! Whoever has a connection takes a [`WitnessRequest`], asks, and brings the [`WitnessResponse`]; nothing here waits for a network, and a
//! poll waits for nothing here but a write of the state. All witnesses are asked for one checkpoint, the target, so that their cosignatures come
//! together under one text. The target moves on to the newest once each has cosigned it, or has failed and waits for its
//! next turn: one that is down or lies holds up nobody else.
//!
//! What each witness has cosigned last, and what it has said against this log, is kept in the state.

use crate::files::{read, write};
use crate::finding::{FindingCode, RaisedFindings};
use crate::published::PublishedLog;
use crate::{AuditorError, StateStorage};
use proofgate_ledger::{AddCheckpoint, Cosignature, SignedCheckpoint, TrustPolicy};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the witnesses have cosigned and said.
const COSIGNATURES_FILE: &str = "cosignatures";
/// Microseconds until a witness that failed is asked again, doubled with each failure up to the second.
const MIN_RETRY_DELAY: u64 = 1_000_000;
const MAX_RETRY_DELAY: u64 = 300_000_000;
/// Microseconds after which one that is being asked is not waited for by the others: a name server may not answer.
const SLOW_WITNESS_TIMEOUT: u64 = 10_000_000;
/// Seconds that a witness's clock may be ahead.
const MAX_CLOCK_SKEW_SECONDS: u64 = 300;
/// The media type of the size in a 409.
const SIZE_TYPE: &str = "text/x.tlog.size";

/// What to ask a witness.
#[derive(Clone, Debug)]
pub struct WitnessRequest {
    /// Its place in the policy.
    pub witness: usize,
    /// The body of the request to `<url>/add-checkpoint`.
    pub body: String,
    old_size: u64,
    size: u64,
    text: String,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub enum WitnessResponse<'a> {
    /// An answer of HTTP, whose body is bounded and whole.
    Http {
        /// Its status.
        status: u16,
        /// Its `Content-Type`; empty when it has none.
        media_type: &'a str,
        /// Its body.
        body: &'a [u8],
    },
    /// There was none: `unreachable`, `timeout`, `tls`, `redirect`, `too_large`, or `bad_answer`.
    None(&'a str),
}

/// How a witness stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WitnessStatus {
    /// Its name in the policy.
    pub name: String,
    /// Whether the policy says where it is, so that it is asked.
    pub asked: bool,
    /// Entries of the newest checkpoint that it has cosigned for this auditor.
    pub size: u64,
    /// When it did, in unix seconds by its clock; 0 when it never has.
    pub time: u64,
    /// How its last request ended; empty before the first.
    pub last: String,
    /// How many requests ended in which way.
    pub results: BTreeMap<&'static str, u64>,
}

/// What a witness says against this log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WitnessClaim {
    /// It has cosigned this many entries, and there are fewer.
    Ahead(u64),
    /// It has cosigned this many entries with another root.
    Other(u64),
}

/// What is kept of a witness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct WitnessState {
    /// Its verifying key.
    witness: String,
    /// Entries that it has cosigned last, as far as it has said.
    known: u64,
    claim: Option<WitnessClaim>,
    /// Its newest cosignature.
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
    /// Since when it is being asked.
    asking: Option<u64>,
    /// Conflicts since a request ended otherwise.
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
    /// A quorum has cosigned, and that could not be written.
    unpublished: bool,
}

/// Asks the witnesses of a policy.
pub struct CosigningCoordinator {
    state: Arc<dyn StateStorage>,
    published: Arc<PublishedLog>,
    policy: Arc<TrustPolicy>,
    inner: Mutex<CosigningState>,
}

impl CosigningCoordinator {
    /// Goes on with what the state holds. Of witnesses that the policy does not name any more nothing is kept.
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

    /// What to ask a witness now, by its place in the policy; `None` when there is nothing to ask or it is not its turn.
    /// Whoever takes a question brings its answer. `now` is in microseconds of a clock that never goes back.
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

    /// Takes the answer to a question and returns how it ended, as [`WitnessStatus::last`] tells it. `now` as in
    /// [`Self::next_request`], `seconds` in unix seconds.
    ///
    /// # Errors
    /// [`AuditorError::State`]: what was answered is lost, and asked for again.
    pub fn handle_response(
        &self,
        question: &WitnessRequest,
        answer: WitnessResponse<'_>,
        now: u64,
        seconds: u64,
    ) -> Result<&'static str, AuditorError> {
        let signed = self.published.signed().0;
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
            WitnessResponse::None(why) => failure_label(why),
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
            // It has cosigned a newer one, whose cosignature was lost.
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

    /// How the witnesses stand, in the order of the policy.
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

    /// The origin of the aggregate log.
    pub(crate) fn origin(&self) -> String {
        let (_, note) = self.published.signed();
        note.lines().next().unwrap_or_default().to_owned()
    }

    /// Says what witnesses say against this log.
    pub(crate) fn raise_claims(&self, raised: &mut RaisedFindings) {
        let (origin, (signed, _)) = (self.origin(), self.published.signed());
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
                        "the witness {name} says that it has cosigned {size} entries, but there are only {signed} here: the state was rolled back, or the key also signs elsewhere"
                    ),
                ),
                Some(WitnessClaim::Other(size)) => raised.raise(
                    FindingCode::AggregateFork,
                    &origin,
                    "",
                    format!(
                        "the witness {name} says that the {size} entries that it has cosigned differ from those here: the state was rolled back, or the key also signs elsewhere"
                    ),
                ),
            }
        }
    }

    /// Chooses what all are asked for.
    fn select_target(&self, held: &mut CosigningState, now: u64) -> Result<(), AuditorError> {
        let (size, note) = self.published.signed();
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

    /// Publishes the target with its cosignatures, if they are a quorum.
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

    /// What a 409 says, of a witness that has cosigned so many entries while so many are signed here.
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
            // It is where it was said to be, and yet they do not agree.
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
            // It has told where it stands, and is asked from there at once; not again and again.
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

/// The size that a witness tells in a 409.
fn parse_conflict_size(media_type: &str, body: &[u8]) -> Option<u64> {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case(SIZE_TYPE) {
        return None;
    }
    let text = std::str::from_utf8(body).ok()?.strip_suffix('\n')?;
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

/// A reason that there was no answer, as metrics name it.
fn failure_label(why: &str) -> &'static str {
    const KNOWN: [&str; 5] = ["timeout", "tls", "redirect", "too_large", "bad_answer"];
    KNOWN
        .into_iter()
        .find(|known| *known == why)
        .unwrap_or("unreachable")
}
