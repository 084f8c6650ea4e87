//! The files of a shard of tenants are refused with the place of a line, or everything in them is found.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_auth::{Shard, Shards};

fuzz_target!(|bytes: &[u8]| {
    // The first zero byte parts the two files: no line holds one.
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (key_count, tenants) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
    let lines = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
    match Shard::parse(key_count, tenants) {
        Ok(shard) => {
            assert_eq!(shard.key_count() + shard.well_known_keys().len(), lines(key_count));
            assert_eq!(shard.tenants().len(), lines(tenants));
            let names: Vec<_> = shard.tenants().iter().map(|tenant| tenant.name.clone()).collect();
            let shards = Shards::default().with_shards([(0, shard)]);
            assert!(names.iter().all(|name| shards.has_tenant(name)));
        }
        Err(error) => assert!(error.line <= lines(key_count).max(lines(tenants)) + 1),
    }
});
