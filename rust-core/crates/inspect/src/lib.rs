//! Applies the rules of a policy to requests and answers.
//!
//! A request is inspected at once ([`inspect_request`]), or in slices of time ([`RequestInspection`]). An answer is inspected as it passes ([`ResponseInspector`]): an
//! event of a stream leaves when no rule can touch its text any more, so that a rule sees text that was cut into many
//! events, and a client sees ordinary prose without delay. What an event brings at once, such as the repetition of a text
//! that was streamed before, is a text of its own and judged with that event. Whether an answer comes whole or as a stream, and however
//! that is cut, the same generated text has the same matches and is redacted to the same text. One thing that no provider
//! does is an exception: if a stream leaves a text of a choice in the middle of a word for another one and comes back to it,
//! the word may be judged before it is complete, and a redaction that comes too late denies the answer.
#![forbid(unsafe_code)]

mod changes;
mod counts;
mod denial;
mod explanation;
mod findings;
mod guard;
mod held;
mod known;
mod marked;
mod masks;
mod placeholders;
mod recall;
mod request;
mod response;
mod runs;
mod same_values;
mod singles;
mod spans;
mod tags;
mod texts;
mod token_ends;

pub use counts::ReplacementCounts;
pub use denial::Denial;
pub use explanation::{MessageVerdict, explain_request};
pub use guard::{CallGuard, GuardAction, GuardedTools};
pub use known::{ScanCache, ScanCacheCounts};
pub use masks::Masks;
pub use placeholders::Placeholder;
pub use recall::{MIN_CACHED_RUN_BYTES, TenantScanCache};
pub use request::{InspectionOutcome, RequestInspection, RequestVerdict, ToolFlag, inspect_request};
pub use response::{ReadBuffers, ResponseInspector, ResponseKind, inspects_responses};
pub use runs::{Run, RunScan};
pub use spans::Redaction;
