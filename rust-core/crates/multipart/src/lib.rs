//! Strict sans-IO `multipart/form-data` (RFC 7578, with the boundaries of RFC 2046 section 5.1).
//!
//! Whoever checks a form and passes its bytes on must read it as its receiver does, and receivers differ: in what they take
//! for a boundary, in which headers of a part they obey, in how a name is quoted. This crate reads forms that all of them
//! read the same way, and refuses the rest; it never repairs.
//!
//! 1. The verdict does not depend on how the bytes were split into reads.
//! 2. A [`MultipartError`] is final.
//! 3. Contents pass as they come: of a part nothing is kept but its head.
//!
//! [`Boundary::from_content_type`] reads the `Content-Type`; a [`FormReader`] reads the body.
#![forbid(unsafe_code)]

mod boundary;
mod error;
mod part;
mod reader;

pub use boundary::Boundary;
pub use error::MultipartError;
pub use part::Part;
pub use reader::{FormEvent, FormReader, MAX_HEAD_BYTES, MAX_PARTS, Step};
