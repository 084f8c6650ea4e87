//! Who may ask a provider for what it keeps.

use proofgate_base::rejection::Rejection;
use proofgate_inspect::needs_response;
use proofgate_policy::Mode;
use proofgate_providers::Stored;
use proofgate_upstream::routes::Model;
use proofgate_upstream::terms::Plan;
use proofgate_wire::RequestFraming;

/// Whether a tenant with this plan may ask `object_provider`, the provider of its objects.
///
/// # Errors
/// Why not.
pub(super) fn check(
    asked: Stored,
    object_provider: Option<&Model>,
    plan: &Plan,
    framing: RequestFraming,
) -> Result<(), Rejection> {
    if object_provider.is_none() {
        return Err(Rejection::OBJECTS_NOT_CONFIGURED);
    }
    if asked == Stored::BatchCreation && plan.quotas.counts_use() {
        return Err(Rejection::BATCHES_NOT_LIMITED);
    }
    // What a batch answers is in such a file, and no rule reads files.
    let is_unread = matches!(asked, Stored::FileContent | Stored::BatchCreation);
    if is_unread && plan.profile.mode() == Mode::Enforce && needs_response(&plan.profile) {
        return Err(Rejection::CONTENT_NOT_INSPECTED);
    }
    if !asked.has_body() && !matches!(framing, RequestFraming::Empty | RequestFraming::Length(0)) {
        return Err(Rejection::UNEXPECTED_BODY);
    }
    Ok(())
}
