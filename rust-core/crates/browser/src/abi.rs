//! The names that the module exports. There is no unsafe block: addresses are handed out, and none is taken.

use crate::{answer, questions};
use std::cell::RefCell;

#[derive(Default)]
struct Asked {
    arguments: Vec<Option<Vec<u8>>>,
    answer: String,
}

thread_local! {
    static ASKED: RefCell<Asked> = RefCell::default();
}

/// Room for the next argument, of this many bytes.
#[expect(unsafe_code, reason = "an exported name")]
#[unsafe(no_mangle)]
pub extern "C" fn argument(length: usize) -> *mut u8 {
    let mut bytes = vec![0; length];
    let place = bytes.as_mut_ptr();
    // What the vector holds stays where it is when the vector is moved.
    ASKED.with_borrow_mut(|asked| asked.arguments.push(Some(bytes)));
    place
}

/// The next argument is left out.
#[expect(unsafe_code, reason = "an exported name")]
#[unsafe(no_mangle)]
pub extern "C" fn no_argument() {
    ASKED.with_borrow_mut(|asked| asked.arguments.push(None));
}

/// Where the answer to the last question stands.
#[expect(unsafe_code, reason = "an exported name")]
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> *const u8 {
    ASKED.with_borrow(|asked| asked.answer.as_ptr())
}

fn ask(question: questions::Question) -> usize {
    ASKED.with_borrow_mut(|asked| {
        let arguments = std::mem::take(&mut asked.arguments);
        asked.answer = answer::text(question(&arguments));
        asked.answer.len()
    })
}

macro_rules! export {
    ($($name:ident),* $(,)?) => {$(
        #[doc = concat!("Answers [`questions::", stringify!($name), "`]; returns the length of the answer.")]
        #[expect(unsafe_code, reason = "an exported name")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> usize {
            ask(questions::$name)
        }
    )*};
}

export!(checkpoint, record_proof, entry, consistency, receipt);
