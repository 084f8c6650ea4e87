//! A file of notes is told apart into notes that can be read again one by one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_evidence::read_notes;
use std::path::Path;

fuzz_target!(|text: &str| {
    if let Ok(notes) = read_notes(Path::new("kept"), text, None) {
        assert!(!notes.is_empty());
    }
});
