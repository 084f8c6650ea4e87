//! A trust policy is read or refused, and one that is read is met by all of its witnesses.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_ledger::TrustPolicy;

fuzz_target!(|file: &[u8]| {
    if let Ok(policy) = TrustPolicy::parse(file) {
        assert!(policy.is_quorum(&|_| true));
    }
});
