//! The functions that the module exports. No unsafe block is needed: addresses are returned, but never accepted.

use crate::{answer, queries};
use std::cell::RefCell;

#[derive(Default)]
struct CallState {
    arguments: Vec<Option<Vec<u8>>>,
    response: String,
}

thread_local! {
    static CALL_STATE: RefCell<CallState> = RefCell::default();
}

/// Allocates the next argument with this many bytes; returns the address to fill.
#[expect(unsafe_code, reason = "the name is part of the exported interface")]
#[unsafe(no_mangle)]
pub extern "C" fn argument(length: usize) -> *mut u8 {
    let mut bytes = vec![0; length];
    let place = bytes.as_mut_ptr();
    // The address stays valid when the vector is moved.
    CALL_STATE.with_borrow_mut(|asked| asked.arguments.push(Some(bytes)));
    place
}

/// Marks the next argument as absent.
#[expect(unsafe_code, reason = "the name is part of the exported interface")]
#[unsafe(no_mangle)]
pub extern "C" fn no_argument() {
    CALL_STATE.with_borrow_mut(|asked| asked.arguments.push(None));
}

/// Returns the address of the answer to the last question.
#[expect(unsafe_code, reason = "the name is part of the exported interface")]
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> *const u8 {
    CALL_STATE.with_borrow(|asked| asked.response.as_ptr())
}

fn run_question(question: queries::QueryHandler) -> usize {
    CALL_STATE.with_borrow_mut(|asked| {
        let arguments = std::mem::take(&mut asked.arguments);
        asked.response = answer::to_json_text(question(&arguments));
        asked.response.len()
    })
}

macro_rules! export {
    ($($name:ident),* $(,)?) => {$(
        #[doc = concat!("Answers [`queries::", stringify!($name), "`]; returns the length of the answer.")]
        #[expect(unsafe_code, reason = "the name is part of the exported interface")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> usize {
            run_question(queries::$name)
        }
    )*};
}

export!(checkpoint, record_proof, entry, consistency, receipt);
