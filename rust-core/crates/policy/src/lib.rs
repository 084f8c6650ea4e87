//! Rules over the text of requests and responses.
//!
//! An [`Engine`] is compiled once from the built-in packs and the user's rules. It finds the [`Match`]es of its rules in a
//! text, at once ([`Engine::scan`]), in slices of time ([`Scan`]) or in pieces ([`StreamScan`]); a [`MessageJudgement`] adds those of one message up to a [`Decision`], and a [`Judgement`] those of an exchange,
//! by the [`Profile`] of the tenant. No I/O, no clock but for the [`BudgetExceeded`], and no allocation once the engine's [`Scratch`] has
//! grown. A rule that panics or hangs costs its evaluation, which ends with a [`EvaluationError`].
//!
//! What a rule matches is defined by `SEMANTICS.md` beside this crate's sources. How it is found: a text is folded once
//! (`fold`), one pass over the copy looks for the literals of all rules (`prefilter`), and only the rules that these or
//! another cheap sign wake (`wake`, `woken`) run their regex, and only where what follows the literal can belong to a match
//! (`anchor`, `window`, `search`).
#![forbid(unsafe_code)]

mod addresses;
mod allow;
mod anchor;
mod automaton;
mod begins;
mod budget;
mod checks;
mod config;
mod decode;
mod digits;
mod documentation;
mod engine;
mod english;
mod entities;
mod error;
mod fault;
mod fold;
mod fold_table;
mod ground;
mod hit;
mod hold;
mod judgement;
mod limit;
mod linear;
mod marks;
mod markup;
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
mod sieve;
mod signs;
mod spec;
mod starts;
mod stream;
mod token_tail;
mod undecided;
mod wake;
mod window;
mod woken;

pub use allow::Allow;
pub use budget::{Budget, thread_cpu_time};
pub use config::{Attachments, Mode, PolicyConfig, TenantPolicy};
pub use engine::Engine;
pub use error::PolicyError;
pub use fault::EvaluationError;
pub use judgement::{Decision, Judgement, MessageJudgement, WorstMessage};
pub use limit::Limit;
pub use linear::{FalsePositiveRate, linear_score};
pub use marks::{Mark, Marks};
pub use overrides::ActionOverride;
pub use packs::{Pack, pack_names, score_names};
pub use profile::Profile;
pub use rule::{RuleIndex, RuleInfo, is_kebab_case};
pub use scan::{Match, Scan, Step};
pub use scope::{Scope, ScopeSet};
pub use scratch::Scratch;
pub use spec::{Action, Direction, Examples, Extent, RuleSpec, Target, View};
pub use stream::StreamScan;
pub use token_tail::{TailEnd, TokenTail};
