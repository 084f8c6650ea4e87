//! The ledger's verifier for a browser: the same code as in the command line, behind three exported functions and one
//! function for each question.
//!
//! The caller passes the arguments, byte strings in the order of the question, and then calls the question:
//!
//! ```text
//! argument(length) -> address     room for the next argument, to be filled at once
//! no_argument()                   the next argument is left out
//! <question>() -> length          takes the arguments and answers, in UTF-8 JSON
//! answer() -> address             where the answer stands until the next question
//! ```
//!
//! An answer has `ok`. For a question that cannot be answered, `ok` is false and `error` has a stable `code` and a
//! sentence. A panic ends the instance by a trap, which the caller must treat as a refusal. The
//! module has no state between two questions.
//!
//! There is no I/O, and no randomness or clock is read: the module imports nothing.

mod abi;
mod answer;
mod encoding;
pub mod queries;
mod receipt;
mod step;

pub use answer::Refusal;
