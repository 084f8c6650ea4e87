//! Policy rules over the text of requests and responses.
//!
//! An [`Engine`] is compiled once from the built-in packs and the user's rules. It finds the
//! [`Match`]es of its rules in a whole text ([`Engine::scan`]), in time slices ([`Scan`]) or in a
//! stream ([`StreamScan`]). A [`MessageJudgement`] turns the matches of one message into a
//! [`Decision`], and a [`Judgement`] the matches of an exchange, under the tenant's [`Profile`].
//! The crate does no I/O and reads no clock except to detect [`EvaluationError::BudgetExceeded`].
//! It does not allocate once the engine's [`Scratch`] has grown. A rule that panics or hangs ends
//! only its own evaluation, with an [`EvaluationError`].
//!
//! `SEMANTICS.md` beside this crate's sources defines what a rule matches. The search works in
//! steps: the text is folded once (`fold`); one pass over the copy looks for the literals of all
//! rules (`prefilter`); these and other cheap triggers select the rules to try (`trigger`,
//! `hit_search`); and those rules run their regex only where the bytes after the literal can belong
//! to a match (`anchor`, `window`, `search`).
#![forbid(unsafe_code)]

mod action_limit;
mod addresses;
mod allow_list;
mod anchor;
mod automaton;
mod budget;
mod character_triggers;
mod checks;
mod config;
mod decode;
mod digit_prefilter;
mod digits;
mod documentation;
mod engine;
mod english;
mod entities;
mod error;
mod fault;
mod fold;
mod fold_table;
mod hit;
mod hit_search;
mod hold;
mod judgement;
mod linear;
mod marks;
mod markup;
mod match_range;
mod needle;
mod needle_search;
mod open_token;
mod overrides;
mod packs;
mod pattern;
#[cfg(feature = "testing")]
pub mod prefilter;
#[cfg(not(feature = "testing"))]
mod prefilter;
mod private_key;
mod profile;
mod progress;
mod random;
mod rule;
mod rule_set;
mod scan;
mod scope;
mod scratch;
mod search;
mod shapes;
mod spec;
mod start_bytes;
mod start_patterns;
mod stream;
mod token_tail;
mod trigger;
mod undecided;
mod window;

pub use action_limit::ActionLimit;
pub use allow_list::PolicyAllowList;
pub use budget::{Budget, thread_cpu_time};
pub use config::{Attachments, Mode, PolicyConfig, TenantPolicy};
pub use engine::Engine;
pub use error::PolicyError;
pub use fault::EvaluationError;
pub use judgement::{Decision, Judgement, MessageJudgement, WorstMessage};
pub use linear::{FalsePositiveRate, linear_score};
pub use marks::{Mark, Marks};
pub use overrides::ActionOverride;
pub use packs::{Pack, pattern_pack_names, score_pack_names};
pub use profile::Profile;
pub use rule::{RuleIndex, RuleInfo, is_kebab_case};
pub use scan::{Match, Scan, Step};
pub use scope::{Scope, ScopeSet};
pub use scratch::Scratch;
pub use spec::{Action, Direction, Examples, Extent, RuleSpec, Target, View};
pub use stream::StreamScan;
pub use token_tail::{TailEnd, TokenTail};
