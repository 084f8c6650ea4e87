use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use base64::Engine as _;
use proofgate_auth::Shards;
use proofgate_config::Config;
use proofgate_evidence::log_reader::{LogItem, LogReader};
use proofgate_evidence::read_stored_salt;
use proofgate_external_policies::{ActivePolicyMetrics, ExternalPolicies};
use proofgate_json::Workspace;
use proofgate_ledger::record::{ConfigDigests, SaltId};
use proofgate_ledger::{ShredKey, SigningKey};
use proofgate_limits::Limiter;
use proofgate_observe::incarnation::LogFactory;
use proofgate_observe::ledger_delay::LedgerDelay;
use proofgate_observe::ledger_keys::LedgerKeys;
use proofgate_observe::metrics::Metrics;
use proofgate_observe::recorder::Recorder;
use proofgate_observe::rotation::LogHandoff;
use proofgate_observe::telemetry;
use proofgate_providers::{BodyText, Dialect, ParsedRequest};
use proofgate_stages::Profiler;
use proofgate_upstream::catalog::CompiledConfig;
use proofgate_wal::{FileStorage, Ulid};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;

use super::*;
use crate::gateway::BackgroundServices;
use crate::receipts::ReceiptService;

const LEDGER: &str = "ledger.example/demo";
const BODY: &[u8] = br#"{"model":"large","messages":[]}"#;
const KEY: CredentialId = CredentialId::ApiKey([1; 4]);
/// The tenant's limit of tokens per minute.
const TOKENS: u64 = 100;

/// The state of the data-plane thread, with one tenant that may have one request at a time.
struct Bench {
    gateway: Rc<Gateway>,
    catalog: Rc<Catalog>,
    /// Path of the log.
    log: std::path::PathBuf,
    incarnation: Ulid,
    _volume: TempDir,
}

fn bench() -> Bench {
    bench_with(None)
}

/// Like [`bench`], with a folder of shred keys.
fn bench_with(shred_keys: Option<&std::path::Path>) -> Bench {
    let volume = TempDir::new().unwrap();
    let key = SigningKey::generate(LEDGER, [7; 32]).unwrap();
    let config = json!({
        "ledger": {"name": LEDGER, "directory": volume.path(), "shard": 0, "durability": "Written",
            "checkpointIntervalSeconds": 1, "signingKey": key.to_text(), "segmentBytes": 65536,
            "rotation": {"bytes": 1 << 30, "seconds": 86_400}, "shredKeysDirectory": shred_keys},
        "listen": "127.0.0.1:0",
        "providers": [{"name": "vendor", "type": "OpenAI", "baseURL": "http://127.0.0.1:1", "apiKey": null,
            "caPem": null, "streamUsage": "Leave"}],
        "models": [{"name": "large", "routes": [{"provider": "vendor", "upstreamModel": "large", "weight": 1}], "maxOutputTokens": 1}],
        "tenants": [{"name": "acme", "keys": [], "models": null, "endpoints": null,
            "limits": {"concurrency": 1, "tokensPerMinute": TOKENS}, "keyLimits": {}, "policy": null}],
        "timeouts": {"clientHeadSeconds": 0.001, "clientBodySeconds": 0.001, "clientIdleSeconds": 0.001, "upstreamConnectSeconds": 0.001,
            "upstreamResponseSeconds": 0.001, "answerSeconds": 0.001, "connectionAgeSeconds": 0.001, "drainSeconds": 0.001, "lameDuckSeconds": 0.001},
        "limits": {"headBytes": 1, "bodyBytes": 1, "connections": 1, "bufferedBytes": 1 << 20},
        "configDigest": "00".repeat(32),
    });
    let config: Config = serde_json::from_value(config).unwrap();
    let keys = LedgerKeys::new(&config.ledger).unwrap();
    let log = LogFactory::new(&config.ledger, ConfigDigests::from_config([0; 32]), &keys)
        .start_first(None)
        .unwrap()
        .log;
    let profiler = Arc::new(Profiler::new(false));
    let recorder = Rc::new(Recorder::new(
        log.writer,
        config.ledger.durability,
        ConfigDigests::from_config([0; 32]),
        Arc::new(Notify::new()),
        Arc::new(LedgerDelay::new(Arc::clone(&profiler))),
        Arc::new(LogHandoff::default()),
        || {},
    ));
    let mut limiter = Limiter::new();
    let catalog = Catalog::new(CompiledConfig::new(&config, None).unwrap(), None, &Rc::default());
    limiter.set_limits(&catalog.settings.all_limits(&Shards::default()));
    let metrics = Metrics::new(&profiler, &ActivePolicyMetrics::new(&ExternalPolicies::default()));
    let outlet = telemetry::telemetry_queues(metrics.clone()).0;
    let gateway = Rc::new(Gateway::new(
        catalog,
        Shards::default(),
        limiter,
        recorder,
        metrics,
        profiler,
        BackgroundServices {
            telemetry: outlet,
            tap: None,
            payloads: None,
            receipts: ReceiptService::for_ledger(volume.path(), key.verifying_key()),
        },
    ));
    Bench {
        catalog: gateway.catalog(),
        gateway,
        log: log.dir,
        incarnation: log.incarnation,
        _volume: volume,
    }
}

impl Bench {
    /// Returns a grant of the tenant's whole limit.
    fn granted(&self) -> PendingGrant<'_> {
        let mut limiter = self.gateway.limits.limiter.borrow_mut();
        let tenant = limiter.find("acme").unwrap();
        let grant = limiter.admit(tenant, KEY, TOKENS, 1);
        PendingGrant::new(&self.gateway, "acme", grant.unwrap())
    }

    /// Opens an exchange of the tenant.
    fn open(&self) -> Result<Box<OpenExchange>, LedgerUnavailable> {
        self.open_as("acme")
    }

    /// Like [`Bench::open`], under another tenant's name.
    fn open_as(&self, name: &str) -> Result<Box<OpenExchange>, LedgerUnavailable> {
        let granted = self.granted();
        let call = ParsedRequest::read(
            Dialect::Chat,
            BODY,
            &mut Workspace::default(),
            &mut BodyText::default(),
        )
        .unwrap();
        let tenant = Tenant {
            name: name.into(),
            plan: 0,
        };
        let model = self.catalog.route(&tenant, &call.model).unwrap();
        let admitted = AdmissionParams {
            gateway: &self.gateway,
            catalog: &self.catalog,
            tenant: &tenant,
            key: KEY,
            attribution: &Attribution::default(),
            client_address: None,
            key_name: None,
            body: BODY,
            digest: BodyHasher::new(),
            pending_body: None,
            endpoint: call.dialect.path().into(),
            call: &call,
            model: &model.name,
            target: &model.targets[0],
            upstream_model: "large",
            response_tokens: 1,
            bounds: proofgate_upstream::pricing::TokenBounds::default(),
            priced_features: PricedFeatures::from_call(&call, None),
            dropped_fields: &[],
            series: self
                .gateway
                .observers
                .traffic
                .series("acme", Some(("large", "vendor"))),
            policy: None,
            config: ConfigId::from(&[0; 32]),
            started: Instant::now(),
        };
        OpenExchange::admit(admitted, granted, Span::default())
    }

    fn assert_nothing_is_open(&self) {
        let open = self
            .gateway
            .observers
            .recorder
            .open_exchanges()
            .list(|_| (Ulid::nil(), 0));
        assert!(open.is_empty());
    }

    /// Seals the log and reads all of its records.
    fn records(&self) -> Vec<Value> {
        self.gateway.observers.recorder.seal("test").unwrap();
        let mut log = LogReader::open(&FileStorage, &self.log, self.incarnation).unwrap();
        let mut records = Vec::new();
        while let LogItem::Record(stored) = log.next().unwrap() {
            records.push(serde_json::from_slice(log.payload(&stored)).unwrap());
        }
        records
    }
}

fn panics(work: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
}

#[test]
fn a_step_of_the_clock_is_recorded_and_limits_go_back_with_a_clock_that_was_wrong() {
    const YEARS: u64 = 10 * 365 * 86_400_000_000;
    let bench = bench();
    let now = bench.gateway.limits.limiter.borrow_mut().effective_now(2 * YEARS);
    let (ahead, back) = (now + YEARS, now - YEARS);
    let steps = [(now, ahead, false), (ahead, now, true), (now, back, true)];
    for (from, to, turns_back) in steps {
        let mut limiter = bench.gateway.limits.limiter.borrow_mut();
        limiter.effective_now(from);
        drop(limiter);
        let step = proofgate_base::clock::ClockStep {
            from,
            to,
            moves_limit_time_back: turns_back,
        };
        bench.gateway.apply_clock_step(step);
    }
    assert_eq!(bench.gateway.limits.limiter.borrow_mut().effective_now(0), back);
    let records = bench.records();
    let gaps = records.iter().filter(|record| record["kind"] == "gap");
    let gaps: Vec<_> = gaps
        .map(|gap| {
            assert_eq!((&gap["reason"], &gap["count"]), (&json!("clock_step"), &json!(0)));
            [&gap["first_ts"], &gap["last_ts"], &gap["ts"]].map(|time| time.as_u64().unwrap())
        })
        .collect();
    assert_eq!(gaps, steps.map(|(from, to, _)| [from, to, to]));
    let text = bench.gateway.observers.metrics.encode();
    for series in ["direction=\"back\"} 2", "direction=\"ahead\"} 1"] {
        assert!(
            text.contains(&format!("proofgate_clock_steps_total{{{series}")),
            "{text}"
        );
    }
}

fn kinds(records: &[Value]) -> Vec<&str> {
    records
        .iter()
        .map(|record| record["kind"].as_str().unwrap())
        .collect()
}

#[test]
fn a_panic_before_an_exchange_is_open_gives_back_what_was_granted() {
    let bench = bench();
    panics(|| {
        let _granted = bench.granted();
        resume_unwind(Box::new("while the request was judged"));
    });
    drop(bench.granted());
    assert_eq!(kinds(&bench.records()), ["open", "seal"]);
}

#[test]
fn a_panic_while_an_admission_is_recorded_leaves_no_part_of_it_and_gives_back_what_was_granted() {
    let bench = bench();
    panics(|| {
        let _granted = bench.granted();
        let mut room = bench.gateway.observers.recorder.reserve().unwrap();
        let _ = bench.gateway.observers.recorder.append(&mut room, |_, out| {
            out.extend_from_slice(br#"{"v":1,"kind":"admission""#);
            resume_unwind(Box::new("while the rest is written"));
        });
    });
    bench.assert_nothing_is_open();
    let mut open = bench.open().unwrap();
    open.finish(Outcome::Complete, 200, None);
    drop(open);
    let records = bench.records();
    assert_eq!(kinds(&records), ["open", "admission", "completion", "seal"]);
    assert_eq!(records[1]["tenant"], "acme");
}

#[test]
fn a_panic_while_an_exchange_is_open_completes_its_record_and_gives_back_what_was_granted() {
    let bench = bench();
    panics(|| {
        let _open = bench.open().unwrap();
        resume_unwind(Box::new("while the answer was relayed"));
    });
    assert_eq!(bench.gateway.observers.metrics.in_flight.get(), 0);
    bench.assert_nothing_is_open();
    drop(bench.granted());
    let records = bench.records();
    assert_eq!(kinds(&records), ["open", "admission", "completion", "seal"]);
    assert_eq!(records[2]["outcome"], "internal_error");
    assert_eq!(records[2]["charged"], 0);
}

/// Returns a folder with a shred key of the tenant, and the key.
fn shred_keys() -> (TempDir, ShredKey) {
    let folder = TempDir::new().unwrap();
    std::fs::write(
        folder.path().join("acme"),
        "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n",
    )
    .unwrap();
    (folder, ShredKey::new([7; 32]))
}

#[test]
fn with_a_shred_key_the_volume_holds_half_of_the_salt_and_the_admission_names_both() {
    let (folder, key) = shred_keys();
    let bench = bench_with(Some(folder.path()));
    let mut open = bench.open().unwrap();
    open.finish(Outcome::Complete, 200, None);
    drop(open);
    let half = read_stored_salt(&FileStorage, &bench.log, 1).unwrap().unwrap();
    let admission = bench.records().remove(1);
    assert_eq!(admission["shred_key"], key.id().to_string());
    let named: SaltId = serde_json::from_value(admission["salt"].clone()).unwrap();
    assert_eq!(named, salt_id(&key.derive_salt(&half)));
    assert_ne!(named, salt_id(&half));
    let committed = SaltedCommitter::new(&key.derive_salt(&half)).commit("request", BodyHasher::new());
    assert_eq!(
        admission["request"],
        base64::engine::general_purpose::STANDARD.encode(committed)
    );
}

#[test]
fn a_tenant_without_a_shred_key_is_not_admitted_where_tenants_have_one() {
    let (folder, _) = shred_keys();
    let bench = bench_with(Some(folder.path()));
    let refused = bench.open_as("team/new").map(|_| ());
    assert!(matches!(refused, Err(LedgerUnavailable::NoShredKey)));
    assert_eq!(kinds(&bench.records()), ["open", "seal"]);
}
