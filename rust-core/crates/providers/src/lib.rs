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
mod beta_features;
mod body_field_overrides;
mod body_kind;
mod body_text;
mod candidate_progress;
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
mod json_tokenizer;
mod key_rejection;
mod members;
mod parsed_request;
mod passages;
mod prompt_size;
mod prompt_too_long;
mod request_fields;
mod response_start;
mod scopes;
mod segment;
mod service_tier;
mod sibling_hint;
pub mod sigv4;
mod splice;
mod storage_operation;
mod stored_item;
mod stream_events;
mod stream_finish;
mod tool_calls;
mod upstream;
mod upstream_body;
mod usage;

pub use attachment::AttachmentPolicy;
pub use bad_request::{BadRequest, Field};
pub use batch::{InvalidBatch, batch_endpoint, line_endpoint};
pub use beta_features::{is_beta_feature, remove_feature_fields};
pub use body_field_overrides::BodyFieldOverrides;
pub use body_kind::{BYTE_ORDER_MARK, BodyKind};
pub use body_text::{BodyText, MAX_STRINGS};
pub use candidate_progress::CandidateProgress;
pub use client_ids::ClientIds;
pub use dialect::{Dialect, Family};
pub use events::{EventReader, EventTooLarge, StreamEvent};
pub use frame_events::{EXCEPTION_PREFIX, FrameDecoder};
pub use frame_writer::FrameWriter;
pub use generated::{DocumentKind, GeneratedText, Part, PartEncoding};
pub use growth::GrowthCheck;
pub use hosted_tools::{CallLimit, HostedTool, Tools};
pub use json_edits::{Edit, JsonEditTracker, TextReplacement, UniqueKeyNames, edits_within_json};
pub use key_rejection::is_key_rejection;
pub use parsed_request::ParsedRequest;
pub use passages::{MessageLocation, Passage};
pub use prompt_too_long::is_prompt_too_long;
pub use response_start::{ResponseStart, ResponseStartReader};
pub use segment::SegmentKind as StringKind;
pub use service_tier::{RequestedTier, ServiceTier};
pub use splice::{OffsetMapper, Rewriter, StringLocation};
pub use storage_operation::{StorageOperation, is_object_id};
pub use stream_events::{EventBoundaries, EventMeaning, event_parts, is_usage_only};
pub use stream_finish::FinishTracker;
pub use tool_calls::{ToolCall, ToolCalls};
pub use upstream::{BaseUrl, BaseUrlError, CONTENT_TYPE, ProviderKey, RequestTemplate};
pub use upstream_body::UpstreamBody;
pub use usage::{Usage, UsageReader};
