//! Requests that need no API key.

use proofgate_config::Cors;
use proofgate_exchange::endpoint::Route;
use proofgate_wire::{Method, RequestHead};

use crate::cors;

/// A request that is answered without a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UnauthenticatedRequest {
    /// A CORS preflight, which asks which requests a web page may send.
    Preflight,
    /// A probe of whether the gateway responds; the fields describe its method.
    Probe { options: bool, head_only: bool },
}

impl UnauthenticatedRequest {
    /// Returns the request without a key that a head describes; `None` if the request needs a key.
    pub(super) fn from_head(route: &Route, head: &RequestHead<'_>, cors: Option<&Cors>) -> Option<Self> {
        match route {
            _ if cors::is_preflight(head, cors) => Some(UnauthenticatedRequest::Preflight),
            Route::Probe => Some(UnauthenticatedRequest::Probe {
                options: head.method == Method::Options,
                head_only: head.method == Method::Head,
            }),
            _ => None,
        }
    }
}
