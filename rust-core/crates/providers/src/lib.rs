//! Rewrites requests for an upstream, and reads requests and responses.
//!
//! A body is forwarded unchanged, except for the value of `model` when the manifest maps it to another upstream name,
//! for the option that makes a stream report its usage, and for text that rules redact. The text that rules scan is
//! read here: [`BodyText`] from a request, [`GeneratedText`] from a response, [`EventReader`] from a streamed one.
//! Each text keeps its location, so that a [`Rewriter`] changes nothing else.
//!
//! Amazon Bedrock requires signed requests ([`sigv4`]) and streams its responses in frames ([`event_stream`]), which
//! are read as events ([`FrameDecoder`]).
#![forbid(unsafe_code)]

mod attachment;
mod bad_request;
mod batch;
mod beginning;
mod beside;
mod beta_features;
mod body_kind;
mod body_text;
mod call;
mod call_fields;
mod called_tools;
mod candidate_ends;
mod client_ids;
mod dialect;
pub mod event_stream;
mod events;
mod field_names;
mod frame_events;
mod frame_writer;
mod generated;
mod growth;
mod hosted_tools;
mod json_edits;
mod json_walk;
mod kept_item;
mod members;
mod passages;
mod prompt_size;
mod refused_key;
mod scopes;
mod segment;
mod service_tier;
mod set_fields;
pub mod sigv4;
mod splice;
mod stored;
mod stream_events;
mod stream_finish;
mod too_long;
mod upstream;
mod upstream_body;
mod usage;

pub use attachment::AttachmentPolicy;
pub use bad_request::{BadRequest, Field};
pub use batch::{InvalidBatch, batch_endpoint, line_endpoint};
pub use beginning::{ResponseStart, ResponseStartReader};
pub use beta_features::{is_beta_feature, remove_feature_fields};
pub use body_kind::{BYTE_ORDER_MARK, BodyKind};
pub use body_text::{BodyText, MAX_STRINGS};
pub use call::ParsedRequest;
pub use called_tools::{CalledTool, CalledTools};
pub use candidate_ends::CandidateProgress;
pub use client_ids::ClientIds;
pub use dialect::{Dialect, Family};
pub use events::{EventReader, EventTooLarge, StreamEvent};
pub use frame_events::{EXCEPTION_PREFIX, FrameDecoder};
pub use frame_writer::FrameWriter;
pub use generated::{GeneratedText, Part, PartEncoding, Shape};
pub use growth::GrowthCheck;
pub use hosted_tools::{CallLimit, HostedTool, Tools};
pub use json_edits::{Edit, JsonEditTracker, TextReplacement, UniqueKeyNames, edits_within_json};
pub use passages::{MessageLocation, Passage};
pub use refused_key::is_key_rejection;
pub use segment::SegmentKind as StringKind;
pub use service_tier::{RequestedTier, ServiceTier};
pub use set_fields::SetFields;
pub use splice::{OffsetMapper, Rewriter, StringLocation};
pub use stored::{StorageOperation, is_object_id};
pub use stream_events::{EventBoundaries, EventMeaning, event_parts, is_usage_only};
pub use stream_finish::FinishTracker;
pub use too_long::is_prompt_too_long;
pub use upstream::{BaseUrl, BaseUrlError, CONTENT_TYPE, ProviderKey, RequestTemplate};
pub use upstream_body::UpstreamBody;
pub use usage::{Usage, UsageReader};
