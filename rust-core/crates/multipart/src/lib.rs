//! Strict sans-IO `multipart/form-data` (RFC 7578, with the boundaries of RFC 2046 section 5.1).
//!
//! A proxy that checks a form and forwards its bytes must parse it as the receiver does. Receivers
//! differ in the boundaries that they accept, in the headers of a part that they use, and in the
//! quoting of names. This crate accepts only forms that all receivers parse alike and refuses the
//! rest; it never repairs.
//!
//! 1. The result does not depend on how the bytes were split into reads.
//! 2. A [`MultipartError`] is final.
//! 3. Content is streamed: only the headers of a part are buffered.
//!
//! [`Boundary::from_content_type`] parses the `Content-Type`; a [`FormReader`] parses the body.
#![forbid(unsafe_code)]

mod boundary;
mod error;
mod part;
mod reader;

pub use boundary::Boundary;
pub use error::MultipartError;
pub use part::Part;
pub use reader::{FormEvent, FormReader, MAX_HEAD_BYTES, MAX_PARTS, Step};
