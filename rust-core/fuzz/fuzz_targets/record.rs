//! A record that is read is written and read again as the same record.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_ledger::record::{Record, parse};

fuzz_target!(|bytes: &[u8]| {
    let Ok(record) = parse(bytes) else { return };
    if matches!(record, Record::Unknown(_)) {
        return;
    }
    let mut again = Vec::new();
    // An encoding may be longer than what was read: defaults that were left out, escapes that were not needed.
    if record.encode_into(&mut again).is_ok() {
        assert_eq!(parse(&again).as_ref(), Ok(&record));
    }
});
