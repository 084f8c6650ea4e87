//! The steps of a check, and their outcomes.

use crate::Refusal;
use serde::Serialize;

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StepOutcome {
    /// The check succeeded.
    Shown,
    /// The check failed.
    Refuted,
    /// The check was not made, because input is missing.
    Open,
}

/// A step of a check.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Step {
    /// Stable machine code of the step.
    step: &'static str,
    outcome: StepOutcome,
    /// A sentence for people. It may quote untrusted text.
    text: String,
    /// Stable machine code of the problem; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
}

/// The steps of one check, in order.
#[derive(Debug, Default)]
pub(crate) struct Steps(Vec<Step>);

impl Steps {
    /// Records the outcome of a step, and returns its value.
    pub(crate) fn record<T>(
        &mut self,
        step: &'static str,
        text: impl Into<String>,
        result: Result<T, impl Into<Refusal>>,
    ) -> Option<T> {
        let (outcome, code, text, value) = match result {
            Ok(value) => (StepOutcome::Shown, None, text.into(), Some(value)),
            Err(error) => {
                let refusal: Refusal = error.into();
                let text = format!("{}: {}", text.into(), refusal.message);
                (StepOutcome::Refuted, Some(refusal.code), text, None)
            }
        };
        self.0.push(Step {
            step,
            outcome,
            text,
            code,
        });
        value
    }

    /// Records a step that was not taken.
    pub(crate) fn record_skipped(&mut self, step: &'static str, text: impl Into<String>) {
        self.0.push(Step {
            step,
            outcome: StepOutcome::Open,
            text: text.into(),
            code: None,
        });
    }

    /// Returns whether no step was refuted.
    pub(crate) fn none_failed(&self) -> bool {
        self.0.iter().all(|step| step.outcome != StepOutcome::Refuted)
    }

    pub(crate) fn all(&self) -> &[Step] {
        &self.0
    }
}
