//! The stored form of every kind of record.

use proofgate_ledger::LedgerError;
use proofgate_ledger::commitment::{BodyHasher, SaltedCommitter, commit, reveal, salt_id};
use proofgate_ledger::record::{
    Abort, Admission, AnalysedFeature, AnalysedResponse, AnalysedWindow, Analysis, Attempt, Attribution,
    Commitment, Completion, Config, ConfigId, EndUserId, Gap, MAX_RECORD_BYTES, Open, Outcome,
    PayloadOutcome, Payloads, PendingBody, PolicyNote, Predecessor, ReceivedBody, Record, Rejection, SaltId,
    Seal, SendOutcome, SettingsDigest, ShredKeyId, Takeover, TraceId, Usage, parse,
};

/// A whole record, as `serde_json` writes it.
#[derive(serde::Serialize)]
struct Reference<'a, T> {
    v: u8,
    kind: &'static str,
    #[serde(flatten)]
    body: &'a T,
}

proptest::proptest! {
    #[test]
    fn a_record_is_written_as_serde_json_writes_it(
        texts in proptest::collection::vec(proptest::prelude::any::<String>(), 4),
        number in proptest::prelude::any::<u64>(),
        reserved in proptest::prelude::any::<Option<u64>>(),
        noted in proptest::prelude::any::<bool>(),
    ) {
        let text = |index: usize| std::borrow::Cow::Borrowed(texts[index].as_str());
        let admission = Admission {
            seq: number,
            ts: 2,
            id: text(0),
            tenant: text(1),
            tenant_seq: number / 2,
            key: "0123abcd".into(),
            model: text(2),
            provider: "openai".into(),
            upstream_model: text(3),
            endpoint: "/v1/chat/completions".into(),
            stream: noted,
            coming: None,
            bytes: number / 3,
            request: [7; 32],
            salt: noted.then_some(SaltId([0x5a; 8])),
            shred_key: noted.then_some(ShredKeyId([0xc3; 8])),
            reserved,
            reserved_nanodollars: None,
            shared_plan: None,
            policy: noted.then(|| PolicyNote {
                score: 30,
                rules: vec![text(1), text(2)],
                unnamed: u32::from(number % 2 == 0),
                redacted: true,
                would_block: false,
                ..PolicyNote::default()
            }),
            dropped: if noted { vec![text(3), text(0)] } else { Vec::new() },
            dropped_unnamed: u32::from(noted),
            attribution: noted.then(|| Attribution {
                session: Some(text(0)),
                end_user: Some(EndUserId([0x1d; 16])),
                end_user_name: reserved.is_some().then(|| text(3)),
                agent: Some(text(1)),
                parent_agent: reserved.is_some().then(|| text(2)),
                trace_id: reserved.is_some().then_some(TraceId([0x77; 16])),
            }),
            client_address: noted.then(|| text(2)),
            key_name: noted.then(|| text(0)),
            config: ConfigId([0xab; 8]),
        };
        let mut written = Vec::new();
        admission.encode_into(&mut written).unwrap();
        let reference = Reference { v: 1, kind: "admission", body: &admission };
        proptest::prop_assert_eq!(String::from_utf8(written).unwrap(), serde_json::to_string(&reference).unwrap());
    }
}

fn kinds() -> Vec<(Record<'static>, &'static str)> {
    let incarnation = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    vec![
        (
            Record::Open(Open {
                seq: 0,
                ts: 1,
                ledger: "demo".into(),
                shard: 3,
                incarnation: incarnation.into(),
                version: "0.1.0".into(),
                config: [0xab; 32],
                settings: None,
                key: None,
                predecessor: Some(Predecessor {
                    incarnation: incarnation.into(),
                    size: 7,
                    root: [0; 32],
                    sealed: false,
                    running: false,
                    lost: 0,
                    missing: None,
                }),
            }),
            r#"{"v":1,"kind":"open","seq":0,"ts":1,"ledger":"demo","shard":3,"incarnation":"01ARZ3NDEKTSV4RRFFQ69G5FAV","version":"0.1.0","config":"abababababababababababababababababababababababababababababababab","predecessor":{"incarnation":"01ARZ3NDEKTSV4RRFFQ69G5FAV","size":7,"root":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","sealed":false}}"#,
        ),
        (
            Record::Admission(Admission {
                seq: 1,
                ts: 2,
                id: "r1".into(),
                tenant: "acme".into(),
                tenant_seq: 1,
                key: "0123abcd".into(),
                model: "gpt-4o-mini".into(),
                provider: "openai".into(),
                upstream_model: "gpt-4o-mini-2024".into(),
                endpoint: "chat.completions".into(),
                stream: true,
                coming: None,
                bytes: 512,
                request: [0; 32],
                salt: Some(SaltId([0x5a; 8])),
                shred_key: Some(ShredKeyId([0xc3; 8])),
                reserved: Some(77),
                reserved_nanodollars: None,
                shared_plan: Some("gold".into()),
                policy: Some(PolicyNote {
                    unnamed: 0,
                    score: 30,
                    rules: vec!["pii-email".into()],
                    redacted: true,
                    would_block: false,
                    ..PolicyNote::default()
                }),
                dropped: vec!["seed".into(), "logit_bias".into()],
                dropped_unnamed: 0,
                attribution: Some(Attribution {
                    session: Some("s-1".into()),
                    end_user: Some(EndUserId([0x1d; 16])),
                    end_user_name: Some("alice\n".into()),
                    agent: Some("a-2".into()),
                    parent_agent: Some("a-1".into()),
                    trace_id: Some(TraceId([0x77; 16])),
                }),
                client_address: Some("2001:db8::7".into()),
                key_name: Some("ci".into()),
                config: ConfigId([0xab; 8]),
            }),
            r#"{"v":1,"kind":"admission","seq":1,"ts":2,"id":"r1","tenant":"acme","tenant_seq":1,"key":"0123abcd","key_name":"ci","model":"gpt-4o-mini","provider":"openai","upstream_model":"gpt-4o-mini-2024","endpoint":"chat.completions","stream":true,"bytes":512,"request":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","salt":"5a5a5a5a5a5a5a5a","shred_key":"c3c3c3c3c3c3c3c3","reserved":77,"shared_plan":"gold","policy":{"score":30,"rules":["pii-email"],"redacted":true,"would_block":false},"dropped":["seed","logit_bias"],"attribution":{"session":"s-1","end_user":"1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d","end_user_name":"alice\n","agent":"a-2","parent_agent":"a-1","trace_id":"77777777777777777777777777777777"},"client_address":"2001:db8::7","config":"abababababababab"}"#,
        ),
        (
            Record::Completion(Completion {
                seq: 2,
                ts: 3,
                id: "r1".into(),
                admission: 1,
                incarnation: None,
                status: 200,
                upstream_status: Some(200),
                attempts: 1,
                outcome: Outcome::ClientDisconnect,
                received: None,
                bytes: 99,
                response: [0; 32],
                payloads: Some(Payloads {
                    request: PayloadOutcome::Stored,
                    response: PayloadOutcome::TooLarge,
                }),
                usage: Some(Usage {
                    prompt_tokens: 4,
                    completion_tokens: 5,
                    ..Usage::default()
                }),
                charged: Some(9),
                cost_nanodollars: None,
                duration_us: 6,
                policy: None,
                config: ConfigId([0xab; 8]),
            }),
            r#"{"v":1,"kind":"completion","seq":2,"ts":3,"id":"r1","admission":1,"status":200,"upstream_status":200,"outcome":"client_disconnect","bytes":99,"response":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","payloads":{"request":"stored","response":"too_large"},"usage":{"prompt_tokens":4,"completion_tokens":5},"charged":9,"duration_us":6,"config":"abababababababab"}"#,
        ),
        (
            Record::Admission(Admission {
                seq: 1,
                ts: 2,
                id: "r1".into(),
                tenant: "acme".into(),
                tenant_seq: 1,
                key: "0123abcd".into(),
                model: "whisper-1".into(),
                provider: "openai".into(),
                upstream_model: "whisper-1".into(),
                endpoint: "/v1/audio/transcriptions".into(),
                stream: false,
                coming: Some(PendingBody {
                    declared: Some(5_242_880),
                }),
                bytes: 512,
                request: [0; 32],
                salt: None,
                shred_key: None,
                reserved: None,
                reserved_nanodollars: None,
                shared_plan: None,
                policy: None,
                dropped: Vec::new(),
                dropped_unnamed: 0,
                attribution: None,
                client_address: None,
                key_name: None,
                config: ConfigId([0xab; 8]),
            }),
            r#"{"v":1,"kind":"admission","seq":1,"ts":2,"id":"r1","tenant":"acme","tenant_seq":1,"key":"0123abcd","model":"whisper-1","provider":"openai","upstream_model":"whisper-1","endpoint":"/v1/audio/transcriptions","stream":false,"coming":{"declared":5242880},"bytes":512,"request":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","reserved":null,"config":"abababababababab"}"#,
        ),
        (
            Record::Completion(Completion {
                seq: 2,
                ts: 3,
                id: "r1".into(),
                admission: 1,
                incarnation: None,
                status: 499,
                upstream_status: None,
                attempts: 1,
                outcome: Outcome::ClientDisconnect,
                received: Some(ReceivedBody {
                    bytes: 4096,
                    request: [0; 32],
                    whole: false,
                }),
                bytes: 0,
                response: [0; 32],
                payloads: None,
                usage: None,
                charged: None,
                cost_nanodollars: None,
                duration_us: 6,
                policy: None,
                config: ConfigId([0xab; 8]),
            }),
            r#"{"v":1,"kind":"completion","seq":2,"ts":3,"id":"r1","admission":1,"status":499,"upstream_status":null,"outcome":"client_disconnect","received":{"bytes":4096,"request":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","whole":false},"bytes":0,"response":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","usage":null,"charged":null,"duration_us":6,"config":"abababababababab"}"#,
        ),
        (
            Record::Rejection(Rejection {
                seq: 3,
                ts: 4,
                id: "r2".into(),
                tenant: None,
                counted: None,
                shared_plan: None,
                status: 401,
                code: "invalid_api_key".into(),
                endpoint: None,
                bytes: 0,
                policy: None,
                config: ConfigId([0xab; 8]),
                ..Rejection::default()
            }),
            r#"{"v":1,"kind":"rejection","seq":3,"ts":4,"id":"r2","tenant":null,"status":401,"code":"invalid_api_key","endpoint":null,"bytes":0,"config":"abababababababab"}"#,
        ),
        (
            Record::Rejection(Rejection {
                seq: 3,
                ts: 4,
                id: "r2".into(),
                tenant: Some("acme".into()),
                tenant_seq: Some(2),
                key: Some("0123abcd".into()),
                counted: Some("0123abcd".into()),
                shared_plan: None,
                status: 403,
                code: "policy_blocked".into(),
                model: Some("gpt-4o-mini".into()),
                endpoint: Some("/v1/chat/completions".into()),
                bytes: 512,
                request: Some(Commitment([0; 32])),
                salt: Some(SaltId([0x5a; 8])),
                shred_key: Some(ShredKeyId([0xc3; 8])),
                payload: Some(PayloadOutcome::Queued),
                policy: Some(PolicyNote {
                    score: 100,
                    rules: vec!["codename".into()],
                    ..PolicyNote::default()
                }),
                attribution: Some(Attribution {
                    session: Some("s-1".into()),
                    ..Attribution::default()
                }),
                client_address: Some("192.0.2.7".into()),
                key_name: Some("ci".into()),
                config: ConfigId([0xab; 8]),
            }),
            r#"{"v":1,"kind":"rejection","seq":3,"ts":4,"id":"r2","tenant":"acme","tenant_seq":2,"key":"0123abcd","counted":"0123abcd","key_name":"ci","status":403,"code":"policy_blocked","model":"gpt-4o-mini","endpoint":"/v1/chat/completions","bytes":512,"request":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","salt":"5a5a5a5a5a5a5a5a","shred_key":"c3c3c3c3c3c3c3c3","payload":"queued","policy":{"score":100,"rules":["codename"],"redacted":false,"would_block":false},"attribution":{"session":"s-1"},"client_address":"192.0.2.7","config":"abababababababab"}"#,
        ),
        (
            Record::Abort(Abort {
                seq: 4,
                ts: 5,
                id: "r0".into(),
                incarnation: incarnation.into(),
                admission: 9,
                config: ConfigId([0xab; 8]),
            }),
            r#"{"v":1,"kind":"aborted","seq":4,"ts":5,"id":"r0","incarnation":"01ARZ3NDEKTSV4RRFFQ69G5FAV","admission":9,"config":"abababababababab"}"#,
        ),
        (
            Record::Gap(Gap {
                seq: 5,
                ts: 6,
                first_ts: 4,
                last_ts: 5,
                count: 2,
                reason: "full".into(),
                code: "unauthorized".into(),
                tenant: None,
                config: ConfigId([0xab; 8]),
            }),
            r#"{"v":1,"kind":"gap","seq":5,"ts":6,"first_ts":4,"last_ts":5,"count":2,"reason":"full","code":"unauthorized","config":"abababababababab"}"#,
        ),
        (
            Record::Config(Config {
                seq: 6,
                ts: 7,
                reason: "reload".into(),
                config: [0xcd; 32],
                settings: Some(SettingsDigest([0x5a; 32])),
                previous: ConfigId([0xab; 8]),
            }),
            r#"{"v":1,"kind":"config","seq":6,"ts":7,"reason":"reload","config":"cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd","settings":"5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a","previous":"abababababababab"}"#,
        ),
        (
            Record::Analysis(Analysis {
                seq: 6,
                ts: 7,
                exchange: "r1".into(),
                admission: 1,
                incarnation: None,
                tenant: "acme".into(),
                model: "gpt-4o-mini".into(),
                findings: vec!["entropy".into()],
                answer: None,
                window: Some(AnalysedWindow {
                    number: 2,
                    answers: 200,
                    with_entropy: 180,
                    entropy_millibits: Some(612),
                    length_millitokens: None,
                    repetition_permille: Some(12),
                    refusal_permille: 5,
                    cut_permille: 0,
                    tests: vec![AnalysedFeature {
                        feature: "entropy".into(),
                        values: 180,
                        distance_ppm: 310_000,
                        p_ppb: 17,
                        differs: true,
                    }],
                }),
                config: ConfigId([0xab; 8]),
            }),
            r#"{"v":1,"kind":"analysis","seq":6,"ts":7,"exchange":"r1","admission":1,"tenant":"acme","model":"gpt-4o-mini","findings":["entropy"],"window":{"number":2,"answers":200,"with_entropy":180,"entropy_millibits":612,"repetition_permille":12,"refusal_permille":5,"cut_permille":0,"tests":[{"feature":"entropy","values":180,"distance_ppm":310000,"p_ppb":17,"differs":true}]},"config":"abababababababab"}"#,
        ),
        (
            Record::Analysis(Analysis {
                seq: 6,
                ts: 7,
                exchange: "r0".into(),
                admission: 9,
                incarnation: Some(incarnation.into()),
                tenant: "acme".into(),
                model: "gpt-4o-mini".into(),
                findings: vec!["repetitive".into(), "loop".into()],
                answer: Some(AnalysedResponse {
                    entropy_millibits: None,
                    repetition_permille: 950,
                    stretch_permille: 900,
                    partly: true,
                }),
                window: None,
                config: ConfigId([0xab; 8]),
            }),
            r#"{"v":1,"kind":"analysis","seq":6,"ts":7,"exchange":"r0","admission":9,"incarnation":"01ARZ3NDEKTSV4RRFFQ69G5FAV","tenant":"acme","model":"gpt-4o-mini","findings":["repetitive","loop"],"answer":{"repetition_permille":950,"stretch_permille":900,"partly":true},"config":"abababababababab"}"#,
        ),
        (
            Record::Seal(Seal {
                seq: 6,
                ts: 7,
                reason: "drained".into(),
                records: 6,
                successor: None,
                config: ConfigId([0xab; 8]),
            }),
            r#"{"v":1,"kind":"seal","seq":6,"ts":7,"reason":"drained","records":6,"config":"abababababababab"}"#,
        ),
        (
            Record::Open(Open {
                seq: 0,
                ts: 1,
                ledger: "demo".into(),
                shard: 3,
                incarnation: incarnation.into(),
                version: "0.1.0".into(),
                config: [0xab; 32],
                settings: None,
                key: Some("demo+00000000+key".into()),
                predecessor: Some(Predecessor {
                    incarnation: incarnation.into(),
                    size: 7,
                    root: [0; 32],
                    sealed: false,
                    running: true,
                    lost: 3,
                    missing: Some(incarnation.into()),
                }),
            }),
            r#"{"v":1,"kind":"open","seq":0,"ts":1,"ledger":"demo","shard":3,"incarnation":"01ARZ3NDEKTSV4RRFFQ69G5FAV","version":"0.1.0","config":"abababababababababababababababababababababababababababababababab","key":"demo+00000000+key","predecessor":{"incarnation":"01ARZ3NDEKTSV4RRFFQ69G5FAV","size":7,"root":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","sealed":false,"running":true,"lost":3,"missing":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}}"#,
        ),
        (
            Record::Completion(Completion {
                seq: 2,
                ts: 3,
                id: "r1".into(),
                admission: 1,
                incarnation: Some(incarnation.into()),
                status: 200,
                upstream_status: None,
                attempts: 1,
                outcome: Outcome::Complete,
                received: None,
                bytes: 99,
                response: [0; 32],
                payloads: None,
                usage: None,
                charged: None,
                cost_nanodollars: None,
                duration_us: 6,
                policy: None,
                config: ConfigId([0xab; 8]),
            }),
            r#"{"v":1,"kind":"completion","seq":2,"ts":3,"id":"r1","admission":1,"incarnation":"01ARZ3NDEKTSV4RRFFQ69G5FAV","status":200,"upstream_status":null,"outcome":"complete","bytes":99,"response":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","usage":null,"charged":null,"duration_us":6,"config":"abababababababab"}"#,
        ),
        (
            Record::Attempt(Attempt {
                seq: 2,
                ts: 3,
                id: "r1".into(),
                admission: 1,
                incarnation: None,
                attempt: 2,
                provider: "second".into(),
                upstream_model: "m".into(),
                failure: "upstream_declined".into(),
                failed_status: Some(429),
                failed_sent: SendOutcome::Answered,
                dropped: Vec::new(),
                dropped_unnamed: 0,
                config: ConfigId([0xab; 8]),
            }),
            r#"{"v":1,"kind":"attempt","seq":2,"ts":3,"id":"r1","admission":1,"attempt":2,"provider":"second","upstream_model":"m","failure":"upstream_declined","failed_status":429,"failed_sent":"answered","config":"abababababababab"}"#,
        ),
        (
            Record::Takeover(Takeover {
                seq: 7,
                ts: 8,
                incarnation: incarnation.into(),
                size: 90,
                root: [0; 32],
                config: ConfigId([0xab; 8]),
            }),
            r#"{"v":1,"kind":"takeover","seq":7,"ts":8,"incarnation":"01ARZ3NDEKTSV4RRFFQ69G5FAV","size":90,"root":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","config":"abababababababab"}"#,
        ),
        (
            Record::Seal(Seal {
                seq: 6,
                ts: 7,
                reason: "rotated".into(),
                records: 6,
                successor: Some(incarnation.into()),
                config: ConfigId([0xab; 8]),
            }),
            r#"{"v":1,"kind":"seal","seq":6,"ts":7,"reason":"rotated","records":6,"successor":"01ARZ3NDEKTSV4RRFFQ69G5FAV","config":"abababababababab"}"#,
        ),
    ]
}

#[test]
fn every_kind_has_one_stored_form_and_comes_back_from_it() {
    for (record, text) in kinds() {
        let mut out = b"before".to_vec();
        record.encode_into(&mut out).unwrap();
        assert_eq!(std::str::from_utf8(&out[6..]).unwrap(), text);
        assert_eq!(parse(text.as_bytes()).unwrap(), record);
        assert_eq!(parse(text.as_bytes()).unwrap().kind(), record.kind());
    }
}

#[test]
fn the_record_of_a_denied_request_opens_to_its_bytes() {
    let salt = [9; 32];
    let denied = Record::Rejection(Rejection {
        tenant: Some("acme".into()),
        request: Some(Commitment(commit(&salt, "request", b"hello"))),
        salt: Some(salt_id(&salt)),
        ..Rejection::default()
    });
    assert_eq!(reveal(&denied, &salt, b"hello"), Ok("request"));
    assert_eq!(
        reveal(&denied, &salt, b"hullo"),
        Err(LedgerError::CommitmentMismatch("request"))
    );
    let refused = Record::Rejection(Rejection::default());
    assert_eq!(reveal(&refused, &salt, b"hello"), Err(LedgerError::NoCommitment));
}

#[test]
fn fields_of_a_later_version_are_tolerated() {
    let text = r#"{"v":1,"kind":"seal","seq":6,"new":{"a":[1,{"b":null}]},"ts":7,"reason":"drained","records":6,"config":"0000000000000000"}"#;
    assert_eq!(parse(text.as_bytes()).unwrap().seq(), 6);
}

#[test]
fn a_record_of_a_later_kind_is_read_for_its_place_and_time() {
    let text = r#"{"v":1,"kind":"key_hold_2","seq":6,"ts":7,"new":{"a":[1]}}"#;
    let record = parse(text.as_bytes()).unwrap();
    assert_eq!((record.kind(), record.seq(), record.ts()), ("key_hold_2", 6, 7));
    assert_eq!(record.id(), None);
    let refused = record.encode_into(&mut Vec::new());
    assert_eq!(refused, Err(LedgerError::InvalidRecordKind("key_hold_2".into())));
}

#[test]
fn escapes_and_any_unicode_survive() {
    let seal = Seal {
        seq: 0,
        ts: 0,
        reason: "\"\\\n\u{0}\u{1f980}".into(),
        records: 0,
        successor: None,
        config: ConfigId::default(),
    };
    let mut out = Vec::new();
    seal.encode_into(&mut out).unwrap();
    assert_eq!(parse(&out).unwrap(), Record::Seal(seal));
}

#[test]
fn what_is_not_exactly_one_known_record_is_refused() {
    for text in [
        "",
        "null",
        "[]",
        "7",
        "{}",
        r#"{"v":1,"kind":"seal"}"#,
        r#"{"v":2,"kind":"seal","seq":6,"ts":7,"reason":"drained","records":6}"#,
        r#"{"v":1,"kind":"Seal","seq":6,"ts":7,"reason":"drained","records":6}"#,
        r#"{"v":1,"kind":"analysis","seq":6}"#,
        r#"{"v":1,"kind":"analysis","ts":7}"#,
        r#"{"v":1,"kind":"analysis","seq":"6","ts":7}"#,
        r#"{"v":1,"kind":"analysis","seq":6,"ts":7,"x":{"y":1,"y":1}}"#,
        r#"{"v":1,"kind":"","seq":6,"ts":7}"#,
        r#"{"v":1,"kind":"an analysis","seq":6,"ts":7}"#,
        r#"{"v":1,"kind":"a23456789012345678901234567890123","seq":6,"ts":7}"#,
        r#"{"v":1,"kind":"seal","seq":6,"ts":7,"reason":"drained","records":6} {}"#,
        r#"{"v":1,"kind":"seal","seq":6,"ts":7,"reason":"drained","records":6"#,
        r#"{"v":1,"kind":"seal","seq":6,"ts":7,"reason":"drained","records":6,"records":7}"#,
        r#"{"v":1,"kind":"seal","kind":"seal","seq":6,"ts":7,"reason":"drained","records":6}"#,
        r#"{"v":1,"kind":"seal","seq":6,"s\u0065q":6,"ts":7,"reason":"drained","records":6}"#,
        r#"{"v":1,"kind":"seal","seq":6,"ts":7,"reason":"drained","records":6,"x":1,"x":2}"#,
        r#"{"v":1,"kind":"seal","seq":6,"ts":7,"reason":"drained","records":6,"x":{"y":1,"y":1}}"#,
        r#"{"v":1,"kind":"seal","seq":6,"ts":7,"reason":"drained","records":6,"x":NaN}"#,
        r#"{"v":1,"kind":"seal","seq":-6,"ts":7,"reason":"drained","records":6}"#,
        r#"{"v":1,"kind":"seal","seq":6.0,"ts":7,"reason":"drained","records":6}"#,
        r#"{"v":1,"kind":"seal","seq":18446744073709551616,"ts":7,"reason":"drained","records":6}"#,
    ] {
        assert!(parse(text.as_bytes()).is_err(), "{text}");
    }
    assert!(
        parse(b"{\"v\":1,\"kind\":\"seal\",\"seq\":6,\"ts\":7,\"reason\":\"\xff\",\"records\":6}").is_err()
    );
    let deep = format!(
        r#"{{"v":1,"kind":"seal","x":{}{}}}"#,
        "[".repeat(9000),
        "]".repeat(9000)
    );
    assert!(parse(deep.as_bytes()).is_err());
}

#[test]
fn a_record_above_the_limit_is_refused_and_leaves_the_buffer_alone() {
    let encode = |len: usize| {
        let mut out = b"before".to_vec();
        let seal = Seal {
            seq: 0,
            ts: 0,
            reason: "x".repeat(len).into(),
            records: 0,
            successor: None,
            config: ConfigId::default(),
        };
        let encoded = seal.encode_into(&mut out);
        (encoded, out)
    };
    let overhead = encode(0).1.len() - 6;
    assert_eq!(encode(MAX_RECORD_BYTES - overhead).1.len() - 6, MAX_RECORD_BYTES);
    let (encoded, out) = encode(MAX_RECORD_BYTES - overhead + 1);
    assert_eq!(
        encoded,
        Err(LedgerError::RecordTooLarge {
            bytes: MAX_RECORD_BYTES + 1
        })
    );
    assert_eq!(out, b"before");
    assert!(parse(&vec![b' '; MAX_RECORD_BYTES + 1]).is_err());
}

#[test]
fn a_commitment_is_the_hmac_that_the_format_names() {
    // (printf 'proofgate/v1/request\0'; printf hello | openssl dgst -sha256 -binary) |
    //     openssl dgst -sha256 -mac HMAC -macopt hexkey:<32 bytes of 07>
    let expected = include_str!("vectors/commitment.hex").trim();
    let hex: String = commit(&[7; 32], "request", b"hello")
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(hex, expected);
}

#[test]
fn the_id_of_a_salt_is_the_digest_that_the_format_names() {
    // (printf 'proofgate/v1/salt-id\0'; printf '\7%.0s' {1..32}) | sha256sum
    let id = SaltId([0x0f, 0x9e, 0x85, 0x05, 0x3d, 0xfe, 0x64, 0x10]);
    assert_eq!(salt_id(&[7; 32]), id);
    assert_ne!(salt_id(&[8; 32]), id);
}

#[test]
fn a_commitment_does_not_depend_on_the_pieces_and_depends_on_all_else() {
    let mut pieces = BodyHasher::new();
    for piece in ["", "he", "l", "lo"] {
        pieces.update(piece.as_bytes());
    }
    let whole = commit(&[7; 32], "response", b"hello");
    assert_eq!(SaltedCommitter::new(&[7; 32]).commit("response", pieces), whole);
    assert_ne!(commit(&[8; 32], "response", b"hello"), whole);
    assert_ne!(commit(&[7; 32], "request", b"hello"), whole);
    assert_ne!(commit(&[7; 32], "response", b"hellp"), whole);
}

#[test]
fn the_parts_of_a_usage_stand_behind_its_totals_and_are_absent_when_they_are_zero() {
    let completion = |usage: &str| {
        format!(
            r#"{{"v":1,"kind":"completion","seq":2,"ts":3,"id":"r1","admission":1,"status":200,"upstream_status":200,"outcome":"complete","bytes":99,"response":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","usage":{usage},"charged":9,"duration_us":6,"config":"abababababababab"}}"#
        )
    };
    for usage in [
        r#"{"prompt_tokens":4,"completion_tokens":5}"#,
        r#"{"prompt_tokens":4,"completion_tokens":5,"reasoning_tokens":5}"#,
        r#"{"prompt_tokens":4,"completion_tokens":5,"cached_prompt_tokens":1,"cache_write_tokens":2,"audio_prompt_tokens":3,"reasoning_tokens":4,"audio_completion_tokens":5}"#,
        r#"{"prompt_tokens":4,"completion_tokens":1,"partial":true}"#,
        r#"{"prompt_tokens":4,"completion_tokens":5,"cache_write_tokens":3,"cache_write_1h_tokens":2}"#,
        r#"{"prompt_tokens":4,"completion_tokens":5,"web_search_requests":2,"web_fetch_requests":1}"#,
        r#"{"prompt_tokens":4,"completion_tokens":5,"web_search_requests":3,"partial":true,"service_tier":"priority"}"#,
        r#"{"prompt_tokens":4,"completion_tokens":5,"service_tier":"priority"}"#,
    ] {
        let bytes = completion(usage);
        let mut again = Vec::new();
        parse(bytes.as_bytes()).unwrap().encode_into(&mut again).unwrap();
        assert_eq!(String::from_utf8(again).unwrap(), bytes);
    }
}

#[test]
fn a_note_says_which_text_of_a_tool_is_flagged_and_what_became_of_a_guarded_call() {
    use proofgate_ledger::record::{FlaggedToolText, GuardVerdict, GuardedCall};
    let from_tool = FlaggedToolText {
        scope: "tool_result".into(),
        message: Some("messages[12]".into()),
        count: 1,
    };
    let request = PolicyNote {
        score: 60,
        rules: vec!["injection-override".into()],
        from_tool: Some(from_tool.clone()),
        ..PolicyNote::default()
    };
    let answer = PolicyNote {
        guarded_call: Some(GuardedCall {
            tool: "mcp__github__*".into(),
            verdict: GuardVerdict::ApprovalRequired,
            approval: Some("0123456789abcdef".into()),
        }),
        ..PolicyNote::default()
    };
    let left = PolicyNote {
        score: 5,
        rules: vec!["pii-email".into()],
        unchanged: true,
        ..PolicyNote::default()
    };
    for (note, stored) in [
        (
            left,
            r#"{"score":5,"rules":["pii-email"],"redacted":false,"unchanged":true,"would_block":false}"#,
        ),
        (
            request,
            r#"{"score":60,"from_tool":{"scope":"tool_result","message":"messages[12]"},"rules":["injection-override"],"redacted":false,"would_block":false}"#,
        ),
        (
            answer,
            r#"{"score":0,"guarded_call":{"tool":"mcp__github__*","verdict":"approval_required","approval":"0123456789abcdef"},"rules":[],"redacted":false,"would_block":false}"#,
        ),
    ] {
        assert_eq!(serde_json::to_string(&note).unwrap(), stored);
        assert_eq!(serde_json::from_str::<PolicyNote<'_>>(stored).unwrap(), note);
    }
    let several = FlaggedToolText {
        count: 3,
        ..from_tool
    };
    let stored = r#"{"scope":"tool_result","message":"messages[12]","count":3}"#;
    assert_eq!(serde_json::to_string(&several).unwrap(), stored);
    assert_eq!(
        serde_json::from_str::<FlaggedToolText<'_>>(stored).unwrap(),
        several
    );
}
