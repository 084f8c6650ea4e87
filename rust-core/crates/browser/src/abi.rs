//! The names that the module exports. There is no unsafe block: addresses are handed out, and none is taken.

use crate::{answer, questions};
use std::cell::RefCell;

#[derive(Default)]
struct CallState {
    arguments: Vec<Option<Vec<u8>>>,
    response: String,
}

thread_local! {
    static CALL_STATE: RefCell<CallState> = RefCell::default();
}

/// Room for the next argument, of this many bytes.
#[expect(unsafe_code, reason = "an exported name")]
#[unsafe(no_mangle)]
pub extern "C" fn argument(length: usize) -> *mut u8 {
    let mut bytes = vec![0; length];
    let place = bytes.as_mut_ptr();
    // What the vector holds stays where it is when the vector is moved.
    CALL_STATE.with_borrow_mut(|asked| asked.arguments.push(Some(bytes)));
    place
}

/// The next argument is left out.
#[expect(unsafe_code, reason = "an exported name")]
#[unsafe(no_mangle)]
pub extern "C" fn no_argument() {
    CALL_STATE.with_borrow_mut(|asked| asked.arguments.push(None));
}

/// Where the answer to the last question stands.
#[expect(unsafe_code, reason = "an exported name")]
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> *const u8 {
    CALL_STATE.with_borrow(|asked| asked.response.as_ptr())
}

fn run_question(question: questions::Question) -> usize {
    CALL_STATE.with_borrow_mut(|asked| {
        let arguments = std::mem::take(&mut asked.arguments);
        asked.response = answer::to_json_text(question(&arguments));
        asked.response.len()
    })
}

macro_rules! export {
    ($($name:ident),* $(,)?) => {$(
        #[doc = concat!("Answers [`questions::", stringify!($name), "`]; returns the length of the answer.")]
        #[expect(unsafe_code, reason = "an exported name")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> usize {
            run_question(questions::$name)
        }
    )*};
}

export!(checkpoint, record_proof, entry, consistency, receipt);
