//! The retention job's state: its identity and the holds. The holds are stored nowhere else, so an
//! unreadable state blocks every deletion.

use crate::RetentionError;
use crate::anchors::{Anchors, anchored_releases};
use crate::hold::{Hold, HoldRelease, HoldScope};
use proofgate_evidence::ReadStorage;
use proofgate_ledger::{Justification, MAX_REASON_BYTES, SigningKey, VerifyingKey};
use proofgate_state::StateStorage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Name of the file with the state's identity; written last.
const IDENTITY_FILE: &str = "retention";
const HOLDS_FILE: &str = "holds";
const VERSION: u32 = 1;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Identity {
    v: u32,
    /// The ledger's verifying key.
    ledger: String,
    /// The retention key.
    retention_key: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Holds {
    v: u32,
    holds: Vec<Hold>,
}

/// The state of the retention job of one ledger.
pub struct RetentionState {
    state: Arc<dyn StateStorage>,
    identity: Identity,
    holds: Holds,
    /// The statements in the auditor's log; `None` when anchoring is not required.
    anchors: Option<Anchors>,
    /// Numbers of holds whose release is not anchored: they are still active.
    unanchored: BTreeSet<u64>,
}

impl std::fmt::Debug for RetentionState {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RetentionState")
            .field("identity", &self.identity)
            .field("holds", &self.holds)
            .finish_non_exhaustive()
    }
}

impl RetentionState {
    /// Creates an empty state for a ledger and the key that will sign deletions.
    ///
    /// # Errors
    /// [`RetentionError::InvalidKey`] when either key could sign under the other's names;
    /// [`RetentionError::StateExists`]; [`RetentionError::State`].
    pub fn create(
        state: Arc<dyn StateStorage>,
        ledger: &VerifyingKey,
        keeping: &VerifyingKey,
    ) -> Result<Self, RetentionError> {
        require_independent(ledger, keeping)?;
        // An interrupted first start leaves an empty list. Any other list is in use.
        let held = match read(&*state, HOLDS_FILE)? {
            Some(bytes) => !decode::<Holds>(HOLDS_FILE, &bytes)?.holds.is_empty(),
            None => false,
        };
        if held || read(&*state, IDENTITY_FILE)?.is_some() {
            return Err(RetentionError::StateExists);
        }
        let retention = Self {
            state,
            identity: Identity {
                v: VERSION,
                ledger: ledger.to_text(),
                retention_key: keeping.to_text(),
            },
            holds: Holds {
                v: VERSION,
                holds: Vec::new(),
            },
            anchors: None,
            unanchored: BTreeSet::new(),
        };
        retention.save(&retention.holds)?;
        write(&*retention.state, IDENTITY_FILE, &retention.identity)?;
        Ok(retention)
    }

    /// Opens an existing state.
    ///
    /// # Errors
    /// [`RetentionError::NoState`] when it does not exist; [`RetentionError::StateCorrupt`] when a part of it is missing
    /// or invalid; [`RetentionError::State`].
    pub fn open(state: Arc<dyn StateStorage>) -> Result<Self, RetentionError> {
        let Some(identity) = read(&*state, IDENTITY_FILE)? else {
            return Err(RetentionError::NoState);
        };
        let identity: Identity = decode(IDENTITY_FILE, &identity)?;
        let Some(holds) = read(&*state, HOLDS_FILE)? else {
            return Err(RetentionError::corrupt(HOLDS_FILE, "it is missing"));
        };
        let holds: Holds = decode(HOLDS_FILE, &holds)?;
        if (identity.v, holds.v) != (VERSION, VERSION) {
            return Err(RetentionError::corrupt(
                IDENTITY_FILE,
                "it has an unsupported version",
            ));
        }
        let numbered = holds.holds.iter().zip(1..).all(|(hold, id)| hold.id == id);
        if !numbered {
            return Err(RetentionError::corrupt(
                HOLDS_FILE,
                "the numbers of the holds are not 1, 2, 3, …",
            ));
        }
        Ok(Self {
            state,
            identity,
            holds,
            anchors: None,
            unanchored: BTreeSet::new(),
        })
    }

    /// Refuses the state of another ledger or of another retention job. A successor of the key that created the state
    /// belongs to the same retention job.
    ///
    /// # Errors
    /// [`RetentionError::StateCorrupt`]; [`RetentionError::InvalidKey`].
    pub fn check_identity(&self, ledger: &VerifyingKey, signing: &SigningKey) -> Result<(), RetentionError> {
        let keeping = signing.verifying_key();
        require_independent(ledger, &keeping)?;
        let is_of = |key: &VerifyingKey, line: &VerifyingKey| {
            key.name() == line.name() && line.position_of(key).is_some()
        };
        let known = |text: &str| {
            VerifyingKey::from_text(text).map_err(|error| RetentionError::corrupt(IDENTITY_FILE, error))
        };
        if is_of(&known(&self.identity.ledger)?, ledger)
            && is_of(&known(&self.identity.retention_key)?, &keeping)
        {
            return Ok(());
        }
        Err(RetentionError::corrupt(
            IDENTITY_FILE,
            format!(
                "it belongs to the retention key {} of the ledger {}",
                self.identity.retention_key, self.identity.ledger
            ),
        ))
    }

    /// Returns all holds, oldest first, released ones included.
    #[must_use]
    pub fn holds(&self) -> &[Hold] {
        &self.holds.holds
    }

    /// Returns the active holds, including those whose release is not anchored yet.
    pub fn active_holds(&self) -> impl Iterator<Item = &Hold> {
        let holds = self.holds.holds.iter();
        holds.filter(|hold| hold.is_active() || self.unanchored.contains(&hold.id))
    }

    /// Requires anchoring from now on: nothing is removed or destroyed, and no hold counts as released, before its
    /// statement is among `anchors`, the statements in the auditor's log.
    ///
    /// # Errors
    /// [`RetentionError::Wal`] when the statements of the ledger at a path cannot be read.
    pub fn require_anchors(
        &mut self,
        anchors: Anchors,
        storage: &dyn ReadStorage,
        path: &Path,
        (key, keeping): (&VerifyingKey, &VerifyingKey),
    ) -> Result<(), RetentionError> {
        let released = anchored_releases(storage, path, (key, keeping), &anchors)?;
        let over = self.holds.holds.iter().filter(|hold| !hold.is_active());
        self.unanchored = over
            .map(|hold| hold.id)
            .filter(|id| !released.contains(id))
            .collect();
        self.anchors = Some(anchors);
        Ok(())
    }

    pub(crate) fn anchors(&self) -> Option<&Anchors> {
        self.anchors.as_ref()
    }

    /// Adds a hold, which is on the disk when this returns. `name` is the name in a plan. `now` is in unix microseconds.
    ///
    /// # Errors
    /// [`RetentionError::InvalidRequest`], also when an active hold has this name; [`RetentionError::State`].
    pub fn add_hold(
        &mut self,
        name: Option<&str>,
        scope: HoldScope,
        why: &Justification,
        now: u64,
    ) -> Result<Hold, RetentionError> {
        check_justification(why)?;
        let texts = [name, scope.tenant.as_deref(), scope.exchange.as_deref()];
        for text in texts.into_iter().flatten() {
            require_single_line(text)?;
        }
        if scope
            .since
            .zip(scope.until)
            .is_some_and(|(since, until)| since > until)
        {
            return Err(RetentionError::InvalidRequest(
                "--since is later than --until".to_owned(),
            ));
        }
        if let Some(name) = name
            && self
                .holds
                .holds
                .iter()
                .any(|hold| hold.is_active() && hold.name.as_deref() == Some(name))
        {
            return Err(RetentionError::InvalidRequest(format!(
                "an active hold is already named {name}"
            )));
        }
        let hold = Hold {
            id: self.holds.holds.len() as u64 + 1,
            name: name.map(str::to_owned),
            scope,
            author: Some(why.author.clone()),
            reason: why.reason.clone(),
            ticket: why.ticket.clone(),
            added: now,
            released: None,
        };
        let mut holds = self.holds.holds.clone();
        holds.push(hold.clone());
        self.replace(holds)?;
        Ok(hold)
    }

    /// Releases a hold.
    ///
    /// # Errors
    /// [`RetentionError::NoSuchHold`]; [`RetentionError::InvalidRequest`], also for a time before the hold was placed;
    /// [`RetentionError::State`].
    pub fn release_hold(&mut self, id: u64, why: &Justification, now: u64) -> Result<Hold, RetentionError> {
        check_justification(why)?;
        let mut holds = self.holds.holds.clone();
        let hold = holds
            .iter_mut()
            .find(|hold| hold.id == id && hold.is_active())
            .ok_or(RetentionError::NoSuchHold(id))?;
        if now < hold.added {
            return Err(RetentionError::InvalidRequest(format!(
                "hold {id} was placed in the future according to this clock: a clock was or is wrong"
            )));
        }
        hold.released = Some(HoldRelease {
            at: now,
            author: Some(why.author.clone()),
            reason: why.reason.clone(),
            ticket: why.ticket.clone(),
        });
        let hold = hold.clone();
        self.replace(holds)?;
        Ok(hold)
    }

    fn replace(&mut self, holds: Vec<Hold>) -> Result<(), RetentionError> {
        let holds = Holds { v: VERSION, holds };
        self.save(&holds)?;
        self.holds = holds;
        Ok(())
    }

    fn save(&self, holds: &Holds) -> Result<(), RetentionError> {
        write(&*self.state, HOLDS_FILE, holds)
    }
}

/// Requires that neither key can sign under the other's names.
fn require_independent(ledger: &VerifyingKey, keeping: &VerifyingKey) -> Result<(), RetentionError> {
    match ledger.is_independent_of(keeping) {
        true => Ok(()),
        false => Err(RetentionError::InvalidKey(format!(
            "the retention key is named {}, and the ledger's key is named {}: create a separate key for the retention job. Its name must differ from the name of the ledger's key, and must be neither above nor below that name",
            keeping.name(),
            ledger.name()
        ))),
    }
}

/// Refuses an author, a reason or a ticket that is not a single line.
pub(crate) fn check_justification(why: &Justification) -> Result<(), RetentionError> {
    why.check()
        .map_err(|error| RetentionError::InvalidRequest(error.to_string()))
}

fn require_single_line(text: &str) -> Result<(), RetentionError> {
    if text.is_empty() || text.len() > MAX_REASON_BYTES || text.chars().any(char::is_control) {
        return Err(RetentionError::InvalidRequest(format!(
            "a name, a tenant and an exchange must each be one line of 1 to {MAX_REASON_BYTES} bytes"
        )));
    }
    Ok(())
}

fn read(state: &dyn StateStorage, name: &str) -> Result<Option<Vec<u8>>, RetentionError> {
    state.read(name).map_err(RetentionError::state("read", name))
}

fn write<T: Serialize>(state: &dyn StateStorage, name: &str, value: &T) -> Result<(), RetentionError> {
    let bytes = serde_json::to_vec(value).map_err(|error| RetentionError::corrupt(name, error))?;
    state
        .write(name, &bytes)
        .map_err(RetentionError::state("write", name))
}

fn decode<'b, T: Deserialize<'b>>(name: &str, bytes: &'b [u8]) -> Result<T, RetentionError> {
    serde_json::from_slice(bytes).map_err(|error| RetentionError::corrupt(name, error))
}
