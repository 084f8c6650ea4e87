//! Panic reports that contain only the location. The message is left out because it may quote data:
//! a failing string slice, for example, prints the string, which may be a user's prompt.

use std::io::{self, Write};
use std::panic::{PanicHookInfo, set_hook};
use std::thread;

/// Installs a hook that reports panics of any thread to standard error, with their location only.
pub fn install_panic_hook() {
    set_hook(Box::new(|info| {
        // If the report cannot be written, the panic continues anyway.
        let _ = report(info, &mut io::stderr());
    }));
}

fn report(info: &PanicHookInfo<'_>, out: &mut impl Write) -> io::Result<()> {
    let thread = thread::current();
    let name = thread.name().unwrap_or("without a name");
    match info.location() {
        Some(place) => writeln!(out, "proofgate: thread {name} panicked at {place}"),
        None => writeln!(out, "proofgate: thread {name} panicked"),
    }
}

#[cfg(test)]
mod tests {
    use super::report;
    use std::panic::{catch_unwind, set_hook, take_hook};
    use std::sync::{Arc, Mutex};
    use std::thread;

    #[test]
    fn a_panic_is_told_by_its_place_and_not_by_the_text_that_it_was_about() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let former = Arc::new(take_hook());
        set_hook(Box::new({
            let (told, former, own) = (Arc::clone(&told), Arc::clone(&former), thread::current().id());
            move |info| match told.lock() {
                // A panic of another test that runs in parallel is reported as usual.
                Ok(mut told) if thread::current().id() == own => drop(report(info, &mut *told)),
                _ => former(info),
            }
        }));
        let text = String::from("caf\u{e9}, said the prompt");
        let sliced = catch_unwind(|| text[..4].len());
        set_hook(Box::new(move |info| former(info)));
        let told = String::from_utf8(told.lock().unwrap().clone()).unwrap();
        assert!(sliced.is_err());
        assert!(told.contains("panic_hook.rs:"), "{told}");
        assert!(!told.contains("caf") && !told.contains("prompt"), "{told}");
    }
}
