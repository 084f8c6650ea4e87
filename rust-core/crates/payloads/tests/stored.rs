//! Tests that stored bodies open to the original bytes for a reader who has the keys, and never to
//! other bytes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

mod support;

use proofgate_evidence::payloads::{HEADER_LEN, PAYLOAD_INDEX_FILE, PAYLOADS_FILE, PayloadHeader};
use proofgate_evidence::salts::SALTS_FILE;
use proofgate_evidence::{Verdict, fsck};
use proofgate_ledger::ShredKey;
use proofgate_ledger::record::PayloadOutcome;
use proofgate_payloads::{BodySlot, PayloadField, PayloadKey, check, is_punched, open_exchange, punch};
use proofgate_wal::simulated::SimulatedDisk;
use proptest::prelude::*;
use std::path::Path;
use support::{REQUEST, RESPONSE, Worker, keys, keys_of, one_exchange, read, told, vkey};

#[test]
fn what_was_said_is_read_back_byte_for_byte() {
    let (worker, seq) = one_exchange();
    let (exchanges, errors) = read(&worker.disk, keys());
    assert!(errors.is_empty());
    let [exchange] = &exchanges[..] else {
        panic!("{} exchanges", exchanges.len())
    };
    assert_eq!(told(&exchange.request), Ok(REQUEST));
    assert_eq!(told(&exchange.response), Ok(RESPONSE));
    let id = format!("request-{seq}");
    let shown = open_exchange(&worker.disk, Path::new("/3"), &vkey(), &keys(), &id).unwrap();
    assert_eq!(told(shown.body(PayloadField::Request)), Ok(REQUEST));
    assert_eq!(told(shown.body(PayloadField::Response)), Ok(RESPONSE));
}

#[test]
fn nothing_of_what_was_said_is_on_the_disk() {
    let (worker, _) = one_exchange();
    for path in worker.disk.files() {
        let bytes = worker.disk.read(&path).unwrap();
        for said in [REQUEST, RESPONSE] {
            assert!(!bytes.windows(8).any(|window| window == &said[..8]), "{path:?}");
        }
    }
}

#[test]
fn without_its_key_or_its_half_of_the_salt_nothing_opens() {
    let (worker, seq) = one_exchange();
    let (exchanges, _) = read(&worker.disk, keys_of(&[[8; 32]]));
    assert_eq!(told(&exchanges[0].request), Err("shred_key_missing"));
    worker.disk.corrupt(&worker.dir.join(SALTS_FILE), |bytes| {
        bytes[seq as usize * 32..][..32].fill(0);
    });
    let (exchanges, _) = read(&worker.disk, keys());
    assert_eq!(told(&exchanges[0].request), Err("salt_erased"));
    assert_eq!(told(&exchanges[0].response), Err("salt_erased"));
}

#[test]
fn what_is_punched_out_is_gone_and_its_neighbours_stay() {
    let mut worker = Worker::begin(&SimulatedDisk::new()).unwrap();
    let gone = worker.exchange(REQUEST, RESPONSE);
    worker.exchange(b"another", b"one");
    worker.sign().unwrap();
    let sealed = worker.disk.read(&worker.dir.join(PAYLOADS_FILE)).unwrap();
    assert!(!is_punched(&worker.disk, &worker.dir, &[gone]).unwrap());
    for _ in 0..2 {
        punch(&worker.disk, &worker.dir, &[gone, gone + 1000]).unwrap();
    }
    assert!(is_punched(&worker.disk, &worker.dir, &[gone]).unwrap());
    let left = worker.disk.read(&worker.dir.join(PAYLOADS_FILE)).unwrap();
    assert_eq!(left[HEADER_LEN..][..REQUEST.len()], [0; REQUEST.len()]);
    assert_eq!(left.len(), sealed.len());
    let (exchanges, _) = read(&worker.disk, keys());
    assert_eq!(told(&exchanges[0].request), Err("payload_missing"));
    assert_eq!(told(&exchanges[1].request), Ok(&b"another"[..]));
    assert_eq!(told(&exchanges[1].response), Ok(&b"one"[..]));
}

#[test]
fn the_index_of_one_exchange_does_not_lead_to_the_bodies_of_another() {
    let mut worker = Worker::begin(&SimulatedDisk::new()).unwrap();
    let (one, other) = (
        worker.exchange(REQUEST, RESPONSE),
        worker.exchange(b"another", b"one"),
    );
    worker.sign().unwrap();
    worker
        .disk
        .corrupt(&worker.dir.join(PAYLOAD_INDEX_FILE), |bytes| {
            let entry: [u8; 16] = bytes[one as usize * 16..][..16].try_into().unwrap();
            bytes[other as usize * 16..][..16].copy_from_slice(&entry);
        });
    let (exchanges, _) = read(&worker.disk, keys());
    assert_eq!(told(&exchanges[0].request), Ok(REQUEST));
    assert_eq!(told(&exchanges[1].request), Err("ledger_corrupt"));
    // `punch` for the other exchange does not change this exchange.
    punch(&worker.disk, &worker.dir, &[other]).unwrap();
    assert_eq!(told(&read(&worker.disk, keys()).0[0].request), Ok(REQUEST));
}

#[test]
fn a_body_that_the_record_does_not_commit_to_is_not_handed_out() {
    let mut worker = Worker::begin(&SimulatedDisk::new()).unwrap();
    let open = worker.admit(REQUEST).unwrap();
    worker
        .store(&open, PayloadField::Request, b"what was never asked")
        .unwrap();
    worker
        .complete(
            &open,
            RESPONSE,
            (PayloadOutcome::Stored, PayloadOutcome::Interrupted),
        )
        .unwrap();
    worker.sign().unwrap();
    let (exchanges, _) = read(&worker.disk, keys());
    assert_eq!(told(&exchanges[0].request), Err("payload_mismatch"));
    assert_eq!(told(&exchanges[0].response), Err("payload_not_stored"));
}

#[test]
fn a_request_without_an_end_is_read_and_its_response_is_not_claimed() {
    let mut worker = Worker::begin(&SimulatedDisk::new()).unwrap();
    let open = worker.admit(REQUEST).unwrap();
    worker.store(&open, PayloadField::Request, REQUEST).unwrap();
    worker.store(&open, PayloadField::Response, RESPONSE).unwrap();
    worker.sign().unwrap();
    let (exchanges, errors) = read(&worker.disk, keys());
    assert!(errors.is_empty() && exchanges[0].end.is_none());
    assert_eq!(told(&exchanges[0].request), Ok(REQUEST));
    assert_eq!(told(&exchanges[0].response), Err("payload_not_stored"));
}

#[test]
fn records_that_do_not_lead_to_what_was_signed_lead_to_no_bodies() {
    let (mut worker, _) = one_exchange();
    let path = worker
        .disk
        .files()
        .into_iter()
        .find(|path| path.extension().is_some_and(|it| it == "seg"));
    worker.exchange(b"later", b"said");
    worker.writer.flush().unwrap();
    // Records after the checkpoint are not read yet.
    assert_eq!(read(&worker.disk, keys()).0.len(), 1);
    worker.disk.corrupt(&path.unwrap(), |bytes| {
        let at = bytes
            .windows(9)
            .position(|window| window == b"request-1")
            .unwrap();
        bytes[at] ^= 1;
    });
    let (exchanges, errors) = read(&worker.disk, keys());
    assert!(exchanges.is_empty());
    assert_eq!(errors, ["records_contradict_checkpoint"]);
    assert!(open_exchange(&worker.disk, Path::new("/3"), &vkey(), &keys(), "request-1").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_sealed_opens_in_its_place_alone(
        body in prop::collection::vec(any::<u8>(), 0..300),
        flip in any::<prop::sample::Index>(),
        seq in any::<u64>(),
    ) {
        let key = PayloadKey::new(&ShredKey::new([1; 32]), &[2; 32]);
        let place = BodySlot { origin: "a/0/b", seq, field: PayloadField::Request };
        let mut sealed = body.clone();
        key.seal(&place, &mut sealed).unwrap();
        prop_assert_eq!(key.open(&place, sealed.clone()).unwrap(), body);
        let elsewhere = [
            BodySlot { field: PayloadField::Response, ..place },
            BodySlot { seq: seq ^ 1, ..place },
            BodySlot { origin: "a/0/c", ..place },
        ];
        for place in elsewhere {
            prop_assert!(key.open(&place, sealed.clone()).is_err());
        }
        let other = PayloadKey::new(&ShredKey::new([1; 32]), &[3; 32]);
        prop_assert!(other.open(&place, sealed.clone()).is_err());
        let at = flip.index(sealed.len());
        prop_assert!(key.open(&place, sealed[..at].to_vec()).is_err());
        sealed[at] ^= 1;
        prop_assert!(key.open(&place, sealed).is_err());
    }

    #[test]
    fn a_header_is_read_back_and_no_other_bytes_are_one(
        seq in any::<u64>(),
        bytes in 16u32..1 << 20,
        bit in 0usize..HEADER_LEN * 8,
        noise in any::<[u8; HEADER_LEN]>(),
    ) {
        let header = PayloadHeader { seq, field: PayloadField::Response, sealed_len: bytes };
        let mut encoded = header.encode();
        prop_assert_eq!(PayloadHeader::decode(&encoded), Ok(header));
        encoded[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(PayloadHeader::decode(&encoded).is_err());
        prop_assert!(PayloadHeader::decode(&noise).is_err());
    }

    #[test]
    fn whatever_becomes_of_the_files_only_what_was_said_comes_out(
        damaged in prop::sample::select(vec![PAYLOADS_FILE, PAYLOAD_INDEX_FILE, SALTS_FILE]),
        at in any::<prop::sample::Index>(),
        bit in 0u8..8,
        cut in any::<bool>(),
    ) {
        let (worker, _) = one_exchange();
        worker.disk.corrupt(&worker.dir.join(damaged), |bytes| {
            let at = at.index(bytes.len());
            if cut {
                bytes.truncate(at);
            } else {
                bytes[at] ^= 1 << bit;
            }
        });
        let (exchanges, _) = read(&worker.disk, keys());
        for exchange in exchanges {
            prop_assert!(told(&exchange.request).is_err() || told(&exchange.request) == Ok(REQUEST));
            prop_assert!(told(&exchange.response).is_err() || told(&exchange.response) == Ok(RESPONSE));
        }
    }
}

#[test]
fn fsck_finds_what_completions_claim_and_is_not_there_and_what_does_not_open() {
    let codes = |disk: &SimulatedDisk| {
        let key = vkey();
        let mut report = fsck(disk, Path::new("/3"), Some(&key), &[]).unwrap();
        report.add_findings(check(disk, Path::new("/3"), &key, keys()).unwrap());
        let of_logs = report.incarnations.iter().flat_map(|log| &log.findings);
        let found: Vec<_> = of_logs
            .chain(&report.findings)
            .filter(|finding| finding.code.is_some_and(|code| code.starts_with("payload")))
            .map(|finding| (finding.code.unwrap(), finding.verdict))
            .collect();
        (found, report.verdict)
    };
    let (worker, seq) = one_exchange();
    assert_eq!(codes(&worker.disk).0, []);
    let damaged = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let disk = worker.disk.snapshot();
        disk.corrupt(&worker.dir.join(name), |bytes| change(bytes));
        codes(&disk)
    };
    let at = seq as usize * 16;
    let (found, verdict) = damaged(PAYLOAD_INDEX_FILE, &|bytes| bytes[at..at + 16].fill(0));
    assert_eq!(
        (&found[..], verdict),
        (&[("payload_missing", Verdict::Invalid)][..], Verdict::Invalid)
    );
    let (found, _) = damaged(PAYLOAD_INDEX_FILE, &|bytes| bytes[at + 5] = 1);
    assert_eq!(found, [("payload_damaged", Verdict::Invalid)]);
    let (found, _) = damaged(PAYLOADS_FILE, &|bytes| bytes[HEADER_LEN] ^= 1);
    assert_eq!(found, [("payload_refused", Verdict::Invalid)]);
}
