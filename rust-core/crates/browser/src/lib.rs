//! The ledger's verifier for a browser: the same code as the command line's, asked through four exported functions and
//! one for each question.
//!
//! Who asks hands over the arguments, byte strings in the order of the question, and then calls the question:
//!
//! ```text
//! argument(length) -> address     room for the next argument, to be filled at once
//! no_argument()                   the next argument is left out
//! <question>() -> length          takes the arguments and answers, in UTF-8 JSON
//! answer() -> address             where the answer stands until the next question
//! ```
//!
//! An answer has `ok`; a question that cannot be answered has `ok` false and `error`, with a stable `code` and a sentence.
//! A panic ends the instance by a trap, which the caller has to take for a refusal. Nothing is kept between two questions.
//!
//! No I/O happens here, and nothing random or of the time is read: the module imports nothing.

mod abi;
mod answer;
mod encoding;
pub mod questions;
mod receipt;
mod step;

pub use answer::Refusal;
