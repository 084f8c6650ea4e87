//! Statements beside the shards: of holds, and of shred keys that were destroyed. Each is told once.

use crate::AuditorError;
use crate::entry::Entry;
use crate::files::{read, write};
use crate::finding::{Code, Raised};
use crate::log::Catalogue;
use crate::reach::is_away;
use crate::statement::{Statement, StatementKind, judge};
use crate::view::View;
use proofgate_evidence::EvidenceError;
use proofgate_evidence::hold_statements::{self, HOLD_STATEMENTS};
use proofgate_evidence::key_destructions::{self, KEY_DESTRUCTIONS};
use proofgate_evidence::note_files::{digest, name_of, names, read_text};
use proofgate_ledger::{HoldChange, HoldStatement, KeyDestruction, VerifyingKey};
use proofgate_state::StateStorage;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Files that were told, as `<folder>/<name>`.
const TOLD: &str = "statements";
/// When what was looked for last.
const VISITED: &str = "visited";
/// New files that are read in one look.
const MOST_AT_ONCE: usize = 256;
const FOLDERS: [(&str, usize); 2] = [
    (HOLD_STATEMENTS, hold_statements::MAX_FILES),
    (KEY_DESTRUCTIONS, key_destructions::MAX_FILES),
];

/// Times in unix microseconds; 0 for never.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Visited {
    /// When statements beside the shards were looked for last.
    ledger: u64,
    /// The same of the erasures of each shard: of its log that was looked at least lately.
    shards: BTreeMap<String, u64>,
}

/// What is known of the statements beside the shards.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    told: BTreeSet<String>,
    /// `told` is not in the state yet.
    unsaved: bool,
    visited: Visited,
    /// Files that are no statements, and why.
    refused: BTreeMap<String, String>,
    /// What waits to be told, with its file.
    waiting: Vec<(String, Statement)>,
}

impl Statements {
    /// Goes on with what the state says.
    pub(crate) fn open(state: &dyn StateStorage) -> Result<Self, AuditorError> {
        Ok(Self {
            told: load(state, TOLD)?,
            visited: load(state, VISITED)?,
            ..Self::default()
        })
    }

    /// When the erasures of a shard were looked for last.
    pub(crate) fn visited(&self, shard: &str) -> u64 {
        self.visited.shards.get(shard).copied().unwrap_or(0)
    }

    /// Takes an entry that the state may not know.
    pub(crate) fn replay(&mut self, statement: &Statement) {
        self.unsaved |= self.told.insert(file_of(statement));
    }

    /// Looks for statements beside the shards of the ledger at a path.
    pub(crate) fn look(&mut self, view: &View<'_>, ledger: &Path, raised: &mut Raised) {
        let Some(keeping) = view.keeping else { return };
        match self.try_look(view, ledger, keeping, raised) {
            Ok(()) => {}
            Err(error) if is_away(&error) => raised.unsettled(view.key.name()),
            Err(error) => raised.raise(Code::Unreadable, view.key.name(), "", error.to_string()),
        }
    }

    fn try_look(
        &mut self,
        view: &View<'_>,
        ledger: &Path,
        keeping: &VerifyingKey,
        raised: &mut Raised,
    ) -> Result<(), EvidenceError> {
        let mut there = BTreeSet::new();
        for (folder, most) in FOLDERS {
            let listed = names(view.storage, &ledger.join(folder), most)?;
            there.extend(listed.into_iter().map(|name| format!("{folder}/{name}")));
        }
        let origin = view.key.name();
        if let Some(gone) = self.told.difference(&there).next() {
            let message = format!("{gone} is missing, although it is in the aggregate log");
            raised.raise(Code::StatementMissing, origin, "", message);
        }
        self.refused.retain(|file, _| there.contains(file));
        // One that was refused is looked at again, by turns of one.
        let again = self.refused.keys().next().cloned();
        let known = |file: &&String| {
            self.told.contains(*file)
                || self.waiting.iter().any(|(waiting, _)| waiting == *file)
                || self.refused.contains_key(*file)
        };
        let mut new: Vec<String> = there.iter().filter(|file| !known(file)).cloned().collect();
        let all = new.len() <= MOST_AT_ONCE;
        new.truncate(MOST_AT_ONCE);
        for file in again.into_iter().chain(new) {
            let text = read_text(view.storage, &ledger.join(&file))?;
            match text.and_then(|note| believe(view, keeping, &file, &note)) {
                Ok((statement, flaw)) => {
                    self.refused.remove(&file);
                    let flaw = flaw.map(|why| (Code::StatementBackdated, why));
                    let flaw = flaw.or_else(|| judge(statement.signed, None, self.visited.ledger, view.now));
                    if let Some((code, message)) = flaw {
                        raised.raise_now(code, origin, "", format!("{file}: {message}"));
                    }
                    self.waiting.push((file, statement));
                }
                Err(why) => {
                    self.refused.insert(file, why);
                }
            }
        }
        if let Some((file, why)) = self.refused.iter().next() {
            raised.raise(Code::StatementRefused, origin, "", format!("{file}: {why}"));
        }
        if all {
            self.visited.ledger = view.now;
        }
        Ok(())
    }

    /// The entries that are to be told, about the ledger of this name.
    pub(crate) fn entries(&self, ledger: &str, now: u64) -> Vec<Entry> {
        let waiting = self.waiting.iter();
        waiting
            .map(|(_, statement)| statement.clone().entry(ledger, 0, now))
            .collect()
    }

    /// What waited was appended.
    pub(crate) fn told(&mut self) {
        for (file, _) in self.waiting.drain(..) {
            self.unsaved |= self.told.insert(file);
        }
    }

    /// Writes what changed; on the beat, also when what was looked at last.
    pub(crate) fn save(
        &mut self,
        state: &dyn StateStorage,
        catalogue: &Catalogue,
        beat: bool,
    ) -> Result<(), AuditorError> {
        if self.unsaved {
            store(state, TOLD, &self.told)?;
            self.unsaved = false;
        }
        if !beat {
            return Ok(());
        }
        self.visited.shards = catalogue
            .iter()
            .map(|(shard, logs)| {
                let looked_at = logs
                    .values()
                    .filter(|log| log.row.head.is_some() && log.row.removed.is_none());
                let visited = looked_at.map(|log| log.erasures.visited).min();
                (shard.clone(), visited.unwrap_or(0))
            })
            .collect();
        store(state, VISITED, &self.visited)
    }
}

fn load<T: Default + DeserializeOwned>(state: &dyn StateStorage, name: &str) -> Result<T, AuditorError> {
    let corrupt = |error: serde_json::Error| AuditorError::corrupt(name, error.to_string());
    let bytes = read(state, name)?;
    bytes.map_or_else(
        || Ok(T::default()),
        |bytes| serde_json::from_slice(&bytes).map_err(corrupt),
    )
}

fn store<T: Serialize>(state: &dyn StateStorage, name: &str, value: &T) -> Result<(), AuditorError> {
    let bytes = serde_json::to_vec(value);
    write(
        state,
        name,
        &bytes.map_err(|error| AuditorError::corrupt(name, error.to_string()))?,
    )
}

fn file_of(statement: &Statement) -> String {
    let folder = match statement.kind {
        StatementKind::KeyDestruction => KEY_DESTRUCTIONS,
        _ => HOLD_STATEMENTS,
    };
    format!("{folder}/{}", name_of(&statement.sha256))
}

/// Reads a statement, and what is wrong with its times taken alone; or says why it is none.
fn believe(
    view: &View<'_>,
    keeping: &VerifyingKey,
    file: &str,
    note: &str,
) -> Result<(Statement, Option<String>), String> {
    let refused = |error: proofgate_ledger::LedgerError| error.to_string();
    let statement = Statement {
        kind: StatementKind::Hold,
        sha256: digest(note),
        signed: 0,
        hold: None,
        admission: None,
        key: None,
    };
    let (ledger, statement, flaw) = if file.starts_with(KEY_DESTRUCTIONS) {
        let read = KeyDestruction::verify(note, keeping).map_err(refused)?;
        let statement = Statement {
            kind: StatementKind::KeyDestruction,
            signed: read.time,
            key: Some(read.key.to_string()),
            ..statement
        };
        (read.ledger, statement, None)
    } else {
        let read = HoldStatement::verify(note, keeping).map_err(refused)?;
        let kind = match read.change {
            HoldChange::Placed { .. } => StatementKind::Hold,
            HoldChange::Released { .. } => StatementKind::Release,
        };
        let flaw = read.is_backdated().then(|| {
            let text = "its times are impossible: the hold was released before it was placed, or the statement is older than the hold or its release";
            text.to_owned()
        });
        let statement = Statement {
            kind,
            signed: read.stated,
            hold: Some(read.hold),
            ..statement
        };
        (read.ledger, statement, flaw)
    };
    if ledger != view.key.name() {
        return Err(format!("it is about another ledger, {ledger}"));
    }
    match file_of(&statement) == file {
        true => Ok((statement, flaw)),
        false => Err("its name is the digest of another statement".to_owned()),
    }
}
