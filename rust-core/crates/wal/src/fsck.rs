//! `fsck`: reads everything under a path and says what is wrong, where, and how bad it is. It changes nothing.
//!
//! CRCs find accidents, the tree finds tampering: records are checked against their checksums and chain, the tree file
//! and the signed checkpoint against the records, and every incarnation against what its successor recorded of it.
//! A log that is being written can be checked too; its newest batch may then look torn.

mod scan;

use crate::layout::{Shard, shards};
use crate::{Storage, WalError};
use proofgate_ledger::VerifyingKey;
use scan::{Claim, Opened, scan};
use serde::Serialize;
use std::path::Path;
use ulid::Ulid;

/// How bad it is; the worst finding decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything is there and was checked.
    Ok,
    /// What is there is right, and something could not be checked or ended early.
    Incomplete,
    /// The log is well formed and contradicts a head that was signed or recorded.
    Diverged,
    /// Stored bytes are damaged, or a signature or record is refused.
    Invalid,
}

impl Verdict {
    /// The process exit code: 0, 10, 30 or 40.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Incomplete => 10,
            Self::Diverged => 30,
            Self::Invalid => 40,
        }
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The file or directory.
    pub file: String,
    /// Byte offset of the frame, node or byte concerned.
    pub offset: u64,
    /// How bad it is.
    pub verdict: Verdict,
    /// What is wrong, in a sentence.
    pub message: String,
}

/// What is known of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointState {
    /// There is none yet.
    Missing,
    /// It matches the records; without a key its signature was not checked.
    Unverified,
    /// It matches the records and is signed.
    Verified,
    /// It is refused, or contradicts the records.
    Bad,
}

/// What is known of a tree file. Only a wrong or missing one matters: it can be rebuilt from the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeState {
    /// It is not there.
    Missing,
    /// All its nodes are right and some are not there yet.
    Short,
    /// It holds every node.
    Complete,
    /// It holds every node, and more behind them.
    Long,
    /// A node is wrong.
    Bad,
}

/// What was found of one incarnation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IncarnationReport {
    /// Its directory.
    pub dir: String,
    /// Its ULID.
    pub incarnation: String,
    /// Its origin, as its `open` record states it.
    pub origin: Option<String>,
    /// Segments.
    pub segments: u64,
    /// Records that are part of the log.
    pub records: u64,
    /// Bytes of those records.
    pub bytes: u64,
    /// Root over them, base64; null when records before the end are lost.
    pub root: Option<String>,
    /// Whether the last record is a seal.
    pub sealed: bool,
    /// The checkpoint.
    pub checkpoint: CheckpointState,
    /// Records it covers.
    pub checkpoint_size: u64,
    /// The tree file.
    pub tree: TreeState,
    /// Whether the log was cut at a torn tail.
    pub torn: bool,
    /// Everything that was found, in the order of the log.
    pub findings: Vec<Finding>,
}

/// What was found under a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The worst of all findings.
    pub verdict: Verdict,
    /// Exit code of the verdict.
    pub exit_code: u8,
    /// Records in all.
    pub records: u64,
    /// Each incarnation, by shard and age.
    pub incarnations: Vec<IncarnationReport>,
}

/// Checks a gateway's directory, a shard's or one incarnation's. Without `key`, signatures are not checked, which makes
/// the verdict incomplete at best.
///
/// # Errors
/// [`WalError::NotALog`] or [`WalError::Io`]: what could be read is reported, what could not is an error.
pub fn fsck(storage: &dyn Storage, path: &Path, key: Option<&VerifyingKey>) -> Result<Report, WalError> {
    let mut incarnations = Vec::new();
    for shard in shards(storage, path)? {
        check_shard(storage, &shard, key, &mut incarnations)?;
    }
    let verdict = incarnations
        .iter()
        .flat_map(|report| &report.findings)
        .map(|finding| finding.verdict)
        .max();
    let verdict = verdict.unwrap_or(Verdict::Ok);
    let records = incarnations.iter().map(|report| report.records).sum();
    Ok(Report {
        verdict,
        exit_code: verdict.exit_code(),
        records,
        incarnations,
    })
}

fn check_shard(
    storage: &dyn Storage,
    shard: &Shard,
    key: Option<&VerifyingKey>,
    reports: &mut Vec<IncarnationReport>,
) -> Result<(), WalError> {
    let mut opened = Vec::new();
    for incarnation in &shard.incarnations {
        opened.push(scan::opened(
            storage,
            &shard.dir.join(incarnation.to_string()),
            *incarnation,
        )?);
    }
    // Incarnations without a record left nothing to cover and are nobody's predecessor.
    let newest = opened.iter().rposition(Option::is_some);
    let first = reports.len();
    let mut claims_of = Vec::new();
    for (number, incarnation) in shard.incarnations.iter().enumerate() {
        let claims = claims_on(*incarnation, &shard.incarnations, &opened);
        let dir = shard.dir.join(incarnation.to_string());
        reports.push(scan(storage, &dir, *incarnation, key, &claims)?);
        let named = opened[number].as_ref().and_then(|open| open.predecessor.as_ref());
        let report = &mut reports[first + number];
        let mut incomplete = |message| {
            report.findings.push(Finding {
                file: report.dir.clone(),
                offset: 0,
                verdict: Verdict::Incomplete,
                message,
            });
        };
        if let Some(claim) = named.filter(|claim| !shard.incarnations.contains(&claim.incarnation)) {
            // A check of one incarnation alone cannot tell.
            if shard.incarnations.len() > 1 {
                incomplete(format!("its predecessor {} is not there", claim.incarnation));
            }
        }
        if claims.len() > 1 {
            incomplete(format!(
                "{} incarnations name it as their predecessor",
                claims.len()
            ));
        }
        if claims.is_empty() && opened[number].is_some() && newest.is_some_and(|newest| number < newest) {
            incomplete("no later incarnation names it as its predecessor".to_owned());
        }
        claims_of.push(claims);
    }
    for (number, claims) in claims_of.iter().enumerate() {
        let covered = claims
            .iter()
            .filter(|claim| {
                reports[first..].iter().any(|by| {
                    by.incarnation == claim.by.to_string()
                        && by.checkpoint == CheckpointState::Verified
                        && by.checkpoint_size > 0
                })
            })
            .map(|claim| claim.size)
            .max();
        let report = &mut reports[first + number];
        let signed = if report.checkpoint == CheckpointState::Bad {
            0
        } else {
            report.checkpoint_size
        };
        let covered = covered.unwrap_or(0).max(signed);
        if covered < report.records {
            report.findings.push(Finding {
                file: report.dir.clone(),
                offset: 0,
                verdict: Verdict::Incomplete,
                message: format!(
                    "records {covered} to {} are under no checkpoint",
                    report.records - 1
                ),
            });
        }
    }
    Ok(())
}

/// What later incarnations recorded of this one.
fn claims_on(incarnation: Ulid, all: &[Ulid], opened: &[Option<Opened>]) -> Vec<Claim> {
    all.iter()
        .zip(opened)
        .filter_map(|(by, open)| Some((by, open.as_ref()?.predecessor.as_ref()?)))
        .filter(|(_, predecessor)| predecessor.incarnation == incarnation)
        .map(|(by, predecessor)| Claim {
            by: *by,
            size: predecessor.size,
            root: predecessor.root,
            sealed: predecessor.sealed,
        })
        .collect()
}
