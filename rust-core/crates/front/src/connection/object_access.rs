//! Access control for objects that a provider stores.

use proofgate_base::rejection::Rejection;
use proofgate_inspect::inspects_responses;
use proofgate_policy::Mode;
use proofgate_providers::StorageOperation;
use proofgate_upstream::routes::Model;
use proofgate_upstream::settings::TenantPlan;
use proofgate_wire::RequestFraming;

/// Checks whether a tenant with this plan may make a request to `object_provider`, the provider of its objects.
///
/// # Errors
/// The reason why the request is not allowed.
pub(super) fn check_access(
    asked: StorageOperation,
    object_provider: Option<&Model>,
    plan: &TenantPlan,
    framing: RequestFraming,
) -> Result<(), Rejection> {
    if object_provider.is_none() {
        return Err(Rejection::OBJECTS_NOT_CONFIGURED);
    }
    if asked == StorageOperation::BatchCreation && plan.quotas.counts_usage() {
        return Err(Rejection::BATCHES_NOT_LIMITED);
    }
    // Such a file contains the responses of a batch, and rules do not inspect files.
    let is_unread = matches!(
        asked,
        StorageOperation::FileContent | StorageOperation::BatchCreation
    );
    if is_unread && plan.profile.mode() == Mode::Enforce && inspects_responses(&plan.profile) {
        return Err(Rejection::CONTENT_NOT_INSPECTED);
    }
    if !asked.has_body() && !matches!(framing, RequestFraming::Empty | RequestFraming::Length(0)) {
        return Err(Rejection::UNEXPECTED_BODY);
    }
    Ok(())
}
