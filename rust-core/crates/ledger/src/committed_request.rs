//! The request that a record commits to.

use crate::Hash;
use crate::record::{Commitment, Record, SaltId, ShredKeyId};

/// A request with a commitment to its body, either admitted or denied. Its salt is stored beside the log under the
/// number of this record, and its stored body is sealed with that salt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommittedRequest<'r> {
    /// Number of the record.
    pub seq: u64,
    /// Time of the record, in unix microseconds.
    pub ts: u64,
    /// Request id.
    pub id: &'r str,
    /// Tenant.
    pub tenant: &'r str,
    /// Commitment to the request body.
    pub request: Hash,
    /// Id of the salt; absent if the record does not name the salt.
    pub salt: Option<SaltId>,
    /// The shred key that the salt needs, if any.
    pub shred_key: Option<ShredKeyId>,
}

impl Record<'_> {
    /// Returns the request to which an admission or a refusal commits; `None` for records of other
    /// kinds, and for refusals without a commitment.
    #[must_use]
    pub fn committed_request(&self) -> Option<CommittedRequest<'_>> {
        match self {
            Self::Admission(admission) => Some(CommittedRequest {
                seq: admission.seq,
                ts: admission.ts,
                id: &admission.id,
                tenant: &admission.tenant,
                request: admission.request,
                salt: admission.salt,
                shred_key: admission.shred_key,
            }),
            Self::Rejection(rejection) => {
                let (Some(Commitment(request)), Some(tenant)) = (rejection.request, &rejection.tenant) else {
                    return None;
                };
                Some(CommittedRequest {
                    seq: rejection.seq,
                    ts: rejection.ts,
                    id: &rejection.id,
                    tenant,
                    request,
                    salt: rejection.salt,
                    shred_key: rejection.shred_key,
                })
            }
            _ => None,
        }
    }
}
