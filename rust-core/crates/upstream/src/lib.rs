//! Providers: the routes, terms and prices of a model, how a request is prepared, and the connections to upstreams.
//!
//! [`catalog`] contains the configuration in service; [`attempt`] sends one request to one
//! provider.
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    clippy::new_without_default,
    reason = "internal crate: the names of the items describe them"
)]

pub mod access_token;
pub mod attempt;
pub mod azure_path;
mod capabilities;
pub mod catalog;
pub mod claude_body;
pub mod claude_path;
pub mod client_tls;
pub mod delivery;
pub mod demand;
pub mod failure;
pub mod google_path;
pub mod models;
pub mod offered_tools;
mod path_style;
pub mod price_list;
pub mod pricing;
mod refusals;
pub mod routes;
pub mod settings;
pub mod signer;
pub mod stored_path;
pub mod tool_policy;
pub mod translation;
pub mod upstream;
mod wildcard;
