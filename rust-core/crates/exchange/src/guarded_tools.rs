//! Guarded tools of a plan. If a request contains tool text that reads like instructions, the model
//! may not call these tools, or only with an approval.

use std::collections::HashSet;
use std::sync::Arc;

use proofgate_base::approvals::{Approval, ApprovalIssuer, ApprovalSubject};
use proofgate_base::rejection::Rejection;
use proofgate_config::FlagAction;
use proofgate_inspect::{CallGuard, GuardAction, GuardedTools, ToolFlag};
use proofgate_ledger::record::{FlaggedToolText, GuardVerdict, GuardedCall};
use proofgate_policy::Mode;
use proofgate_providers::{BodyText, MessageLocation};
use proofgate_upstream::tool_policy::ToolPolicy;
use sha2::{Digest, Sha256};

/// Bytes of flagged texts that are hashed before other tasks run.
const SLICE_BYTES: usize = 256 * 1024;

/// Returns the record's note of flagged tool texts; `None` if there are none.
pub fn flagged_tool_note(flags: &[ToolFlag]) -> Option<FlaggedToolText<'static>> {
    let first = flags.first()?;
    let is_named = !first.location.field.is_empty();
    Some(FlaggedToolText {
        scope: first.scope.as_str().into(),
        message: is_named.then(|| first.location.to_string().into()),
        count: u32::try_from(flags.len()).unwrap_or(u32::MAX),
    })
}

/// The context of a guarded request.
pub struct GuardContext<'g> {
    pub tenant: &'g str,
    pub mode: Mode,
    pub approvals: &'g [Approval],
    /// The current time, in Unix seconds.
    pub now: u64,
}

/// The guard against calls of guarded tools in one exchange.
#[derive(Debug)]
pub(crate) struct ToolGuard {
    tools: Arc<GuardedTools>,
    on_flag: FlagAction,
    action: GuardAction,
    /// The first flagged text.
    flag: ToolFlag,
    /// For each entry of `tools`, the approval of its calls, and whether the request contains that
    /// approval.
    approvals: Vec<(Approval, bool)>,
}

impl ToolGuard {
    /// Creates the guard of a request; `None` if no tool text is flagged.
    pub async fn for_request(
        policy: &ToolPolicy,
        flags: &[ToolFlag],
        text: &BodyText,
        guarded: GuardContext<'_>,
        approvals: &ApprovalIssuer,
    ) -> Option<Self> {
        let flag = *flags.first()?;
        let given = match policy.on_flag {
            FlagAction::Refuse => Vec::new(),
            FlagAction::RequireApproval => {
                let texts = flagged_texts_digest(flags, text).await;
                let given = policy.tools.entries().map(|tool| {
                    let tenant = guarded.tenant;
                    let about = ApprovalSubject {
                        tenant,
                        tool,
                        texts_digest: &texts,
                    };
                    let mut carried = guarded.approvals.iter();
                    let carried = carried.find(|one| approvals.is_valid(one, &about, guarded.now));
                    match carried {
                        Some(approval) => (*approval, true),
                        None => (approvals.issue(&about, guarded.now), false),
                    }
                });
                given.collect()
            }
        };
        Some(Self {
            tools: Arc::clone(&policy.tools),
            on_flag: policy.on_flag,
            action: match guarded.mode {
                Mode::Enforce => GuardAction::Deny,
                Mode::DryRun => GuardAction::Observe,
            },
            flag,
            approvals: given,
        })
    }

    /// Returns the guard that looks for calls in the response.
    pub fn call_guard(&self) -> CallGuard {
        let entries = self.approvals.iter().enumerate();
        let approved = entries
            .filter(|(_, (_, is_carried))| *is_carried)
            .map(|(entry, _)| entry);
        CallGuard::new(Arc::clone(&self.tools), approved, self.action)
    }

    /// Returns the rejection of a response that calls the tools of an entry.
    pub fn rejection(&self, entry: usize) -> Rejection {
        let tool = self.tools.entries().nth(entry).unwrap_or_default();
        let approval = self.approvals.get(entry).map(|(approval, _)| approval);
        Rejection::guarded_call(tool, (self.flag.location, self.flag.scope), approval)
    }

    /// Returns the record's note of guarded calls; `None` if there were no such calls.
    pub fn note(&self, calls: &CallGuard) -> Option<GuardedCall<'static>> {
        let (entry, verdict) = match (calls.guarded_call(), calls.approved_call()) {
            (Some(entry), _) => {
                let verdict = match (self.action, self.on_flag) {
                    (GuardAction::Observe, _) => GuardVerdict::Observed,
                    (GuardAction::Deny, FlagAction::Refuse) => GuardVerdict::Refused,
                    (GuardAction::Deny, FlagAction::RequireApproval) => GuardVerdict::ApprovalRequired,
                };
                (entry, verdict)
            }
            (None, Some(entry)) => (entry, GuardVerdict::Approved),
            (None, None) => return None,
        };
        let approval = self.approvals.get(entry).map(|(approval, _)| approval);
        let approval = approval.filter(|_| verdict != GuardVerdict::Observed);
        Some(GuardedCall {
            tool: self.tools.entries().nth(entry)?.to_owned().into(),
            verdict,
            approval: approval.map(|approval| approval.record_id().into()),
        })
    }

    /// Whether calls are held back until they are complete.
    pub(crate) fn denies(&self) -> bool {
        self.action == GuardAction::Deny
    }
}

/// Computes the digest of the flagged texts in order. A repeated text counts only once.
async fn flagged_texts_digest(flags: &[ToolFlag], text: &BodyText) -> [u8; 32] {
    let mut texts: Vec<Sha256> = flags.iter().map(|_| Sha256::new()).collect();
    let mut at_once = 0;
    for passage in text.passages() {
        // Flags are in the order of their messages.
        let Ok(of) = flags.binary_search_by_key(&passage.message, |flag| flag.message) else {
            continue;
        };
        for piece in text.text().as_bytes()[passage.range].chunks(SLICE_BYTES) {
            at_once += piece.len();
            if at_once > SLICE_BYTES {
                at_once = 0;
                tokio::task::yield_now().await;
            }
            texts[of].update(piece);
        }
    }
    let mut seen = HashSet::new();
    let mut all = Sha256::new();
    for text in texts {
        let digest: [u8; 32] = text.finalize().into();
        if seen.insert(digest) {
            all.update(digest);
        }
    }
    all.finalize().into()
}

/// Returns the header value with the first few flagged tool texts, as a list of RFC 9651.
pub(crate) fn flagged_header(flags: &[ToolFlag]) -> String {
    const MAX_FLAGS: usize = 4;
    let named = flags.iter().take(MAX_FLAGS).map(|flag| {
        let word = flag.scope.as_str().replace('_', "-");
        match flag.location {
            MessageLocation { field: "", .. } => word,
            place => format!("{word};at=\"{place}\""),
        }
    });
    named.collect::<Vec<_>>().join(", ")
}
