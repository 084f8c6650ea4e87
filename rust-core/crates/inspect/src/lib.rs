//! Applies the rules of a policy to requests and responses.
//!
//! A request is inspected in one call ([`inspect_request`]) or in time slices
//! ([`RequestInspection`]). A response is inspected while it is relayed ([`ResponseInspector`]): an
//! event of a stream is released as soon as no rule can match its text any more. A rule therefore
//! sees text that was split across many events, and a client receives ordinary prose without delay.
//! A text that an event carries complete, such as a repetition of text that was streamed before, is
//! scanned separately and judged with that event. The same generated text has the same matches and
//! is redacted to the same text, whether the response is a body or a stream, and however the stream
//! is split. One case, which no provider produces, is an exception: if a stream interrupts a text
//! in the middle of a word with another text of the same choice, the word may be judged before it
//! is complete, and a redaction that comes too late denies the response.
#![forbid(unsafe_code)]

mod buffered_events;
mod cached_scan;
mod changes;
mod complete_texts;
mod counts;
mod denial;
mod explanation;
mod findings;
mod guard;
mod masks;
mod placeholders;
mod repeated_values;
mod request;
mod response;
mod runs;
mod scan_cache;
mod spans;
mod tags;
mod text_scan;
mod texts;
mod token_ends;

pub use cached_scan::{MIN_CACHED_RUN_BYTES, TenantScanCache};
pub use counts::ReplacementCounts;
pub use denial::Denial;
pub use explanation::{MessageVerdict, explain_request};
pub use guard::{CallGuard, GuardAction, GuardedTools};
pub use masks::Masks;
pub use placeholders::Placeholder;
pub use request::{InspectionOutcome, RequestInspection, RequestVerdict, ToolFlag, inspect_request};
pub use response::{ReadBuffers, ResponseInspector, ResponseKind, inspects_responses};
pub use runs::{Run, RunScan};
pub use scan_cache::{ScanCache, ScanCacheCounts};
pub use spans::Redaction;
