//! The data plane's side of an external policy.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proofgate_base::Error;
use serde::{Deserialize, Deserializer};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::breaker::Breaker;
use super::counters::Counters;
use super::queue::{PolicyItem, PolicyQueue, PolicyRequest};
use super::verdict::{PolicyFailure, Verdict};

/// Maximum number of requests that can wait for one policy.
pub const QUEUE_CAPACITY: usize = 1024;

/// The configuration of a policy.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExternalPolicyConfig {
    pub name: String,
    /// The revision of its evaluator, which changes with every part of the evaluator.
    pub revision: String,
    /// Maximum time that a request waits for its verdict, in milliseconds.
    #[serde(rename = "deadlineMilliseconds")]
    pub deadline_ms: u64,
    pub on_failure: OnFailure,
}

/// The handling of a request whose policy returned no verdict.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum OnFailure {
    Deny,
    Allow,
}

/// A policy in service.
pub struct ExternalPolicy {
    pub config: ExternalPolicyConfig,
    pub breaker: Breaker,
    pub counters: Counters,
    sender: Sender<PolicyItem>,
    /// The receiving end of the queue; `None` after an evaluator has taken it. Before that,
    /// requests wait in the queue.
    receiver: Mutex<Option<Receiver<PolicyItem>>>,
}

impl ExternalPolicy {
    fn new(config: ExternalPolicyConfig) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
        ExternalPolicy {
            config,
            breaker: Breaker::new(),
            counters: Counters::default(),
            sender,
            receiver: Mutex::new(Some(receiver)),
        }
    }

    /// Returns the number of requests in its queue.
    pub fn queued_requests(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }

    /// Waits for the verdict on a request, at most until the policy's deadline.
    pub async fn evaluate(&self, request: PolicyRequest) -> Result<Verdict, PolicyFailure> {
        let begun = Instant::now();
        let Some(leave) = self.breaker.try_acquire() else {
            return Err(self.counters.record_failure(PolicyFailure::BreakerOpen));
        };
        let (verdict, answer) = oneshot::channel();
        let sent = self.sender.try_send(PolicyItem { request, verdict });
        let outcome = match sent {
            Ok(()) => match timeout(Duration::from_millis(self.config.deadline_ms), answer).await {
                Ok(Ok(verdict)) => verdict.validated(),
                Ok(Err(_)) => Err(PolicyFailure::Dead),
                Err(_) => Err(PolicyFailure::Deadline),
            },
            Err(TrySendError::Full(_)) => Err(PolicyFailure::QueueFull),
            Err(TrySendError::Closed(_)) => Err(PolicyFailure::Dead),
        };
        match &outcome {
            Ok(_) => leave.record_success(),
            Err(failure) if failure.affects_policy_health() => leave.record_failure(),
            Err(_) => {}
        }
        self.counters.record_outcome(&outcome, begun.elapsed());
        outcome
    }
}

/// The policies of one configuration.
#[derive(Clone, Default)]
pub struct ExternalPolicies(Vec<Arc<ExternalPolicy>>);

impl ExternalPolicies {
    /// Replaces each policy by the one of `before` with the same configuration, together with the requests that wait
    /// for it.
    pub fn reuse_from(&mut self, before: &ExternalPolicies) {
        for hook in &mut self.0 {
            if let Some(same) = before.0.iter().find(|other| other.config == hook.config) {
                *hook = Arc::clone(same);
            }
        }
    }

    /// Returns the policies with these names, in the same order.
    ///
    /// # Errors
    /// [`Error::Config`] if a name has no policy.
    pub fn find_by_names(
        &self,
        kind: &str,
        of: &str,
        names: &[String],
    ) -> Result<Box<[Arc<ExternalPolicy>]>, Error> {
        let find = |name: &String| {
            let hook = self.0.iter().find(|hook| hook.config.name == *name);
            hook.cloned().ok_or_else(|| {
                Error::Config(format!(
                    "{kind} {of:?} refers to policy {name:?}, which does not exist"
                ))
            })
        };
        names.iter().map(find).collect()
    }

    /// Returns the evaluator's end of a policy's queue.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no such policy, or its queue was already taken.
    pub fn open_queue(&self, name: &str) -> Result<PolicyQueue, Error> {
        let hook = self.0.iter().find(|hook| hook.config.name == name);
        let hook = hook.ok_or_else(|| Error::Config(format!("there is no policy {name:?}")))?;
        let receiver = hook
            .receiver
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let taken = || Error::Config(format!("the queue of policy {name:?} is already in use"));
        receiver.map(PolicyQueue::new).ok_or_else(taken)
    }
}

impl Deref for ExternalPolicies {
    type Target = [Arc<ExternalPolicy>];

    fn deref(&self) -> &[Arc<ExternalPolicy>] {
        &self.0
    }
}

impl<'de> Deserialize<'de> for ExternalPolicies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let configs = Vec::<ExternalPolicyConfig>::deserialize(deserializer)?;
        Ok(ExternalPolicies(
            configs
                .into_iter()
                .map(|config| Arc::new(ExternalPolicy::new(config)))
                .collect(),
        ))
    }
}

#[cfg(test)]
#[path = "external_policy_tests.rs"]
mod tests;
