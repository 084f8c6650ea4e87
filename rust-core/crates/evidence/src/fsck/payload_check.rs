//! Checks the stored bodies that completions state.

use crate::layout::parse_incarnation;
use crate::payloads::{PAYLOADS_FILE, PayloadField, PayloadFiles};
use crate::report::Verdict;
use crate::{EvidenceError, ReadStorage, read_stored_salt};
use proofgate_ledger::record::{Completion, PayloadOutcome};
use std::path::{Path, PathBuf};

/// Finding code: a completion states that a body is stored, but it is missing.
const PAYLOAD_MISSING: &str = "payload_missing";
/// Finding code: the index points to something other than the body's frame.
const PAYLOAD_DAMAGED: &str = "payload_damaged";

/// Problems of one kind with the bodies of one log.
#[derive(Default)]
struct Problems {
    count: u64,
    /// The file and the reason of the first problem.
    first: Option<(PathBuf, String)>,
    /// Whether a checkpoint covers one of the records that state such a body.
    covered: bool,
}

/// A check of the stored bodies that the completions of one log state.
pub(super) struct PayloadCheck<'s> {
    storage: &'s dyn ReadStorage,
    dir: PathBuf,
    /// The payload files of the log that was used last, because most completions use the same log.
    files: Option<(PathBuf, Option<PayloadFiles>)>,
    missing: Problems,
    damaged: Problems,
}

impl<'s> PayloadCheck<'s> {
    pub(super) fn new(storage: &'s dyn ReadStorage, dir: &Path) -> Self {
        Self {
            storage,
            dir: dir.to_owned(),
            files: None,
            missing: Problems::default(),
            damaged: Problems::default(),
        }
    }

    /// Checks the bodies that a completion states are stored.
    pub(super) fn check_completion(
        &mut self,
        completion: &Completion<'_>,
        covered: bool,
    ) -> Result<(), EvidenceError> {
        let Some(kept) = completion.payloads else {
            return Ok(());
        };
        let dir = match &completion.incarnation {
            None => Some(self.dir.clone()),
            Some(named) => parse_incarnation(named)
                .zip(self.dir.parent())
                .map(|(named, shard)| shard.join(named.to_string())),
        };
        let Some(dir) = dir else { return Ok(()) };
        for (field, kept) in [
            (PayloadField::Request, kept.request),
            (PayloadField::Response, kept.response),
        ] {
            if kept == PayloadOutcome::Stored {
                self.check_body(&dir, completion.admission, field, covered)?;
            }
        }
        Ok(())
    }

    fn check_body(
        &mut self,
        dir: &Path,
        seq: u64,
        field: PayloadField,
        covered: bool,
    ) -> Result<(), EvidenceError> {
        let files = match &self.files {
            Some((open, files)) if open == dir && files.is_some() => files,
            _ => {
                let files = PayloadFiles::open(self.storage, dir)?;
                &self.files.insert((dir.to_owned(), files)).1
            }
        };
        let placed = match files {
            Some(files) => files.locate(seq, field),
            None => Ok(None),
        };
        let (wrong, why) = match placed {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => (
                &mut self.missing,
                format!("the {} of record {seq} is missing", field.as_str()),
            ),
            Err(EvidenceError::Corruption { reason, .. }) => (&mut self.damaged, reason),
            Err(error) => return Err(error),
        };
        // After an erasure or a removal, the body no longer exists.
        if !matches!(read_stored_salt(self.storage, dir, seq), Ok(Some(_))) {
            return Ok(());
        }
        wrong.count += 1;
        wrong.covered |= covered;
        wrong.first.get_or_insert((dir.join(PAYLOADS_FILE), why));
        Ok(())
    }

    /// Returns the findings: file, code, verdict and message.
    pub(super) fn into_findings(self) -> Vec<(PathBuf, &'static str, Verdict, String)> {
        let said = [
            (
                PAYLOAD_MISSING,
                self.missing,
                "that completions list as stored are missing",
            ),
            (
                PAYLOAD_DAMAGED,
                self.damaged,
                "are not at the positions that the index states",
            ),
        ];
        let told = said.into_iter().filter_map(|(code, wrong, what)| {
            let (file, first) = wrong.first?;
            // A stored body is synced before a checkpoint covers the record that states it.
            let verdict = match wrong.covered {
                true => Verdict::Invalid,
                false => Verdict::Incomplete,
            };
            let message = format!("{} bodies {what}; the first: {first}", wrong.count);
            Some((file, code, verdict, message))
        });
        told.collect()
    }
}
