//! The files of a shard of tenants are refused with the place of a line, or everything in them is found.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_auth::Shard;

fuzz_target!(|bytes: &[u8]| {
    let Some((number, rest)) = bytes.split_first() else {
        return;
    };
    let number = usize::from(number >> 3);
    // The first zero byte parts the two files: no line holds one.
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let (keys, tenants) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
    let lines = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
    match Shard::parse(number, keys, tenants) {
        Ok(shard) => {
            assert_eq!(shard.keys(), lines(keys));
            assert_eq!(shard.tenants().len(), lines(tenants));
            for tenant in shard.tenants() {
                assert!(shard.has(&tenant.name));
            }
        }
        Err(error) => assert!(error.line <= lines(keys).max(lines(tenants)) + 1),
    }
});
