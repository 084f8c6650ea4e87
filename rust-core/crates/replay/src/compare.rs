//! Compares a record with the verdict of the rules on the bodies that it commits to.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proofgate_inspect::ResponseKind;
use proofgate_ledger::record::{Admission, Completion, GuardVerdict, Outcome, PolicyNote, Rejection};
use proofgate_policy::Direction;
use proofgate_providers::Dialect;
use serde::Serialize;

use crate::configuration::{Configuration, ReplayError, ReplayPolicy, RuleSource};
use crate::direction_verdict::{DirectionVerdict, VerdictKind};
use crate::judge::{self, EvaluationBuffers, PANICKED, ResponseExtent, RuleResult};

/// The result of comparing the recorded verdict with the replayed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// The recorded verdict, with the same rules and the same score; for rules other than the recorded ones, the same
    /// decision for the same reasons.
    Same,
    /// A part of the evaluated text is missing, and the rest agrees. The reason states what was
    /// compared.
    Consistent,
    /// A different verdict.
    Differs,
    /// Nothing can be compared; the reason states why.
    NotReplayable,
}

/// One direction of an exchange, replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// The result of the comparison.
    pub result: Agreement,
    /// Why only a part, or nothing, was compared: a stable machine code; `None` for a complete
    /// comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The recorded verdict.
    pub recorded: DirectionVerdict,
    /// The verdict of the rules, if they reached one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<DirectionVerdict>,
}

impl Comparison {
    fn not_replayable(recorded: DirectionVerdict, reason: &'static str) -> Self {
        Self {
            result: Agreement::NotReplayable,
            reason: Some(reason),
            recorded,
            replayed: None,
        }
    }

    fn from_verdicts(recorded: DirectionVerdict, replayed: DirectionVerdict, basis: RuleSource) -> Self {
        let same = match basis {
            RuleSource::Recorded => recorded == replayed,
            RuleSource::Other => recorded.same_decision(&replayed),
        };
        Self {
            result: if same { Agreement::Same } else { Agreement::Differs },
            reason: None,
            recorded,
            replayed: Some(replayed),
        }
    }

    fn partial(
        recorded: DirectionVerdict,
        replayed: Option<DirectionVerdict>,
        agrees: bool,
        reason: &'static str,
    ) -> Self {
        Self {
            result: if agrees {
                Agreement::Consistent
            } else {
                Agreement::Differs
            },
            reason: Some(reason),
            recorded,
            replayed,
        }
    }
}

/// Replays exchanges with the rules of one configuration. For use by one thread.
pub struct Replayer {
    configuration: Configuration,
    basis: RuleSource,
    tools: EvaluationBuffers,
}

impl Replayer {
    /// Reads a configuration in its archived form; only `policy`, `tenants`, `plans` and `limits.bodyBytes` are used.
    ///
    /// # Errors
    /// [`ReplayError`] when this version cannot read its format, or its rules are refused.
    pub fn new(configuration: &[u8], basis: RuleSource) -> Result<Self, ReplayError> {
        Ok(Self {
            configuration: Configuration::parse(configuration, basis)?,
            basis,
            tools: EvaluationBuffers::default(),
        })
    }

    /// Replays a request that was admitted. `body` holds its bytes as received, if they are available.
    pub fn replay_admission(&mut self, admission: &Admission<'_>, body: Option<&[u8]>) -> Comparison {
        let recorded = DirectionVerdict::passed(admission.policy.as_ref());
        self.catch_panics(recorded, |replayer, recorded| {
            replayer.compare_request(&admission.tenant, &admission.endpoint, body, recorded)
        })
    }

    /// Replays a request that was refused; `None` when no policy refused it.
    pub fn replay_rejection(&mut self, rejection: &Rejection<'_>, body: Option<&[u8]>) -> Option<Comparison> {
        let recorded = DirectionVerdict::denied(rejection.policy.as_ref());
        let reason = match rejection.code.as_ref() {
            "policy_blocked" => None,
            "policy_redaction_impossible" => Some("form"),
            "policy_unavailable" => Some("other_policy"),
            "policy_budget" | "policy_panic" | "policy_internal" => Some("no_verdict_recorded"),
            _ => return None,
        };
        let known = rejection.tenant.as_deref().zip(rejection.endpoint.as_deref());
        Some(match (reason, known) {
            (Some(reason), _) => Comparison::not_replayable(recorded, reason),
            (None, None) => Comparison::not_replayable(recorded, "tenant_unknown"),
            (None, Some((tenant, endpoint))) => self.catch_panics(recorded, |replayer, recorded| {
                replayer.compare_request(tenant, endpoint, body, recorded)
            }),
        })
    }

    /// Replays an answer. `body` holds what its client received, if it is available.
    pub fn replay_completion(
        &mut self,
        admission: &Admission<'_>,
        completion: &Completion<'_>,
        body: Option<&[u8]>,
    ) -> Comparison {
        let recorded = DirectionVerdict::for_response(completion.policy.as_ref(), completion.outcome);
        self.catch_panics(recorded, |replayer, recorded| {
            replayer.compare_response(admission, completion, body, recorded)
        })
    }

    /// Confines a panic to its exchange: the next one is replayed with new buffers.
    fn catch_panics(
        &mut self,
        recorded: DirectionVerdict,
        replay: impl FnOnce(&mut Self, DirectionVerdict) -> Comparison,
    ) -> Comparison {
        let kept = recorded.clone();
        let replayed = catch_unwind(AssertUnwindSafe(|| replay(self, recorded)));
        replayed.unwrap_or_else(|_| {
            self.tools = EvaluationBuffers::default();
            Comparison::not_replayable(kept, PANICKED)
        })
    }

    fn compare_request(
        &mut self,
        tenant: &str,
        endpoint: &str,
        body: Option<&[u8]>,
        recorded: DirectionVerdict,
    ) -> Comparison {
        let Some(terms) = self.configuration.replay_policy(tenant) else {
            return Comparison::not_replayable(recorded, "tenant_unknown");
        };
        let others = match self.basis {
            RuleSource::Recorded => terms.has_external_policies || recorded.has_external_policies(),
            RuleSource::Other => recorded.has_external_policies(),
        };
        let dialect = match Dialect::from_path(endpoint) {
            None => return Comparison::not_replayable(recorded, "endpoint"),
            Some(dialect) if dialect.has_form() => return Comparison::not_replayable(recorded, "form"),
            Some(dialect) => dialect,
        };
        let Some(body) = body else {
            return self.compare_without_body(terms, Direction::Request, recorded);
        };
        if recorded.has_no_verdict() {
            return Comparison::not_replayable(recorded, "no_verdict_recorded");
        }
        match judge::evaluate_request(&self.configuration, terms, dialect, body, &mut self.tools) {
            RuleResult::NoVerdict(code, _) => Comparison::not_replayable(recorded, code),
            RuleResult::Verdict(_) if others && self.basis == RuleSource::Other => {
                Comparison::not_replayable(recorded, "other_policy")
            }
            // External policies are asked only about what the rules allow.
            RuleResult::Verdict(seen)
                if others && (recorded.has_external_policies() || seen.verdict < VerdictKind::Block) =>
            {
                let agrees =
                    seen.verdict < VerdictKind::Block && seen.matches_apart_from_external_policies(&recorded);
                Comparison::partial(recorded, Some(seen), agrees, "other_policy")
            }
            RuleResult::Verdict(seen) => Comparison::from_verdicts(recorded, seen, self.basis),
        }
    }

    /// Compares a denial without its body: checks whether the recorded rules can deny, with the recorded score.
    fn compare_without_body(
        &self,
        terms: &ReplayPolicy,
        direction: Direction,
        recorded: DirectionVerdict,
    ) -> Comparison {
        if recorded.verdict != VerdictKind::Block || self.basis == RuleSource::Other {
            return Comparison::not_replayable(recorded, "not_stored");
        }
        match self.configuration.can_deny(terms, direction, &recorded) {
            None => Comparison::not_replayable(recorded, "not_stored"),
            Some(denies) => Comparison::partial(recorded, None, denies, "rules_and_score"),
        }
    }

    fn compare_response(
        &mut self,
        admission: &Admission<'_>,
        completion: &Completion<'_>,
        body: Option<&[u8]>,
        recorded: DirectionVerdict,
    ) -> Comparison {
        let Some(terms) = self.configuration.replay_policy(&admission.tenant) else {
            return Comparison::not_replayable(recorded, "tenant_unknown");
        };
        let Some(dialect) = Dialect::from_path(&admission.endpoint) else {
            return Comparison::not_replayable(recorded, "endpoint");
        };
        if admission
            .policy
            .as_ref()
            .is_some_and(|note| may_be_masked(note, &self.configuration, terms))
        {
            // Text that was masked in the request is restored in the answer, but the rules saw the
            // masks.
            return Comparison::not_replayable(recorded, "other_policy");
        }
        let is_flagged = admission
            .policy
            .as_ref()
            .is_some_and(|note| note.from_tool.is_some());
        if recorded.guarded_call.is_some() && self.basis == RuleSource::Other {
            return Comparison::not_replayable(recorded, "guarded_call");
        }
        let refused = recorded
            .guarded_call
            .as_ref()
            .filter(|_| recorded.is_guarded_call_denial());
        let refuses = refused.map(|call| is_flagged && terms.refuses_as_recorded(call));
        let Some(body) = body else {
            return match refuses {
                Some(refuses) => Comparison::partial(recorded, None, refuses, "guarded_call"),
                None => self.compare_without_body(terms, Direction::Response, recorded),
            };
        };
        let Some(kind) = judge::response_kind(dialect, body) else {
            return Comparison::not_replayable(recorded, "not_text");
        };
        let is_guarded = is_flagged && self.basis == RuleSource::Recorded;
        let said = recorded.guarded_call.as_ref().map(|call| call.verdict);
        let guard = match is_guarded {
            true => judge::call_guard(terms, said == Some(GuardVerdict::Approved)),
            false => None,
        };
        let (stored, extent) = match (completion.outcome, kind) {
            (Outcome::Complete, _) => (body, ResponseExtent::Full),
            // A unary answer is sent only after it was evaluated: what the client received is the gateway's own response.
            (_, ResponseKind::Unary) => (&[][..], ResponseExtent::Partial),
            (Outcome::ClientDisconnect, ResponseKind::Events) => (body, ResponseExtent::Partial),
            (_, ResponseKind::Events) => (judge::without_last_event(body), ResponseExtent::Partial),
        };
        let form = (dialect, kind);
        let seen = judge::evaluate_response(
            &self.configuration,
            (terms, &terms.profile),
            guard,
            form,
            stored,
            extent,
            &mut self.tools,
        );
        let reason = match completion.outcome {
            Outcome::Complete if recorded.verdict == VerdictKind::Redact => Some("redacted_answer"),
            Outcome::Complete => None,
            Outcome::PolicyBlocked if refuses.is_some() => Some("guarded_call"),
            Outcome::PolicyBlocked => Some("blocked_answer"),
            _ => Some("cut_short"),
        };
        if stored.is_empty() && reason == Some("cut_short") {
            return Comparison::not_replayable(recorded, "cut_short");
        }
        match (seen, reason) {
            (RuleResult::Verdict(seen), None) => Comparison::from_verdicts(recorded, seen, self.basis),
            // The findings before the rules gave up are recorded as if they were complete.
            (RuleResult::NoVerdict(_, seen), None)
                if seen == recorded && self.basis == RuleSource::Recorded =>
            {
                Comparison::from_verdicts(recorded, seen, self.basis)
            }
            (RuleResult::NoVerdict(code, _), _) => Comparison::not_replayable(recorded, code),
            (RuleResult::Verdict(seen), Some(reason)) if self.basis == RuleSource::Other => {
                match seen.verdict {
                    // The missing part cannot make the verdict milder.
                    VerdictKind::Block if recorded.verdict != VerdictKind::Block => {
                        Comparison::from_verdicts(recorded, seen, self.basis)
                    }
                    _ => Comparison::not_replayable(recorded, reason),
                }
            }
            (RuleResult::Verdict(seen), Some(reason)) => {
                let denied = completion.outcome == Outcome::PolicyBlocked;
                let follows = match self.configuration.can_deny(terms, Direction::Response, &recorded) {
                    _ if !denied => true,
                    _ if refuses.is_some() => refuses == Some(true),
                    // An answer that could not be read is not denied by a rule.
                    _ if recorded.rules.is_empty() => {
                        return Comparison::not_replayable(recorded, "no_verdict_recorded");
                    }
                    denies => denies.unwrap_or(true),
                };
                let agrees = (seen.verdict < VerdictKind::Redact && seen.is_subset_of(&recorded))
                    || (reason == "redacted_answer"
                        && matches_redacted_response(
                            &self.configuration,
                            terms,
                            form,
                            stored,
                            &recorded,
                            &mut self.tools,
                        ));
                Comparison::partial(recorded, Some(seen), follows && agrees, reason)
            }
        }
    }
}

/// Returns whether the rest of a redacted answer agrees with the record. A removed match may have outweighed others,
/// which then raise the score of the rest.
fn matches_redacted_response(
    configuration: &Configuration,
    terms: &ReplayPolicy,
    form: (Dialect, ResponseKind),
    body: &[u8],
    recorded: &DirectionVerdict,
    tools: &mut EvaluationBuffers,
) -> bool {
    let rules = (terms, &terms.profile_without_scores);
    let seen = judge::evaluate_response(
        configuration,
        rules,
        None,
        form,
        body,
        ResponseExtent::Full,
        tools,
    );
    let RuleResult::Verdict(seen) = seen else {
        return false;
    };
    let least = configuration.min_score(terms, &seen, recorded);
    seen.verdict < VerdictKind::Redact
        && seen.names_subset_of(recorded)
        && least.is_some_and(|least| least <= recorded.score)
}

/// Returns whether a part of a request may have been masked, by the rules or by an external policy. An external policy is
/// named in the record whatever it replaces.
fn may_be_masked(note: &PolicyNote<'_>, configuration: &Configuration, terms: &ReplayPolicy) -> bool {
    let mut named = note.rules.iter();
    let masks = named.any(|rule| rule.contains('/') || configuration.is_masking_rule(terms, rule));
    let may_mask = || terms.has_external_policies || configuration.has_masking_rule(terms);
    note.redacted && (masks || (note.unnamed > 0 && may_mask()))
}
