//! What needs no key to be answered.

use proofgate_config::Cors;
use proofgate_exchange::endpoint::Route;
use proofgate_wire::{Method, RequestHead};

use crate::cors;

/// What is asked without a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UnauthenticatedRequest {
    /// For a web page, what the page may send.
    Preflight,
    /// Whether anything answers: by this method.
    Probe { options: bool, head_only: bool },
}

impl UnauthenticatedRequest {
    /// What a request with this head asks that needs no key, if it does.
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
