//! A running worker in front of a mock upstream.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::ops::RangeBounds;
use std::sync::Arc;
use std::time::Duration;

use proofgate_auth::hash_api_key;
use proofgate_dataplane::{Config, Worker};
use proofgate_ledger::SigningKey;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::upstream::Upstream;

pub const ACME: &str = "acme-key-0123456789abcdef";
pub const GLOBEX: &str = "globex-key-0123456789abcdef";
pub const MODEL: &str = "gpt-4o-mini";
/// Maximum wait of a test. A busy machine is many times slower than an idle one.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum bytes of a request body.
pub const BODY_BYTES: usize = 8 * 1024 * 1024;

pub const FIRST: [&str; 2] = [
    include_str!("certificates/first.crt"),
    include_str!("certificates/first.key"),
];
pub const SECOND: [&str; 2] = [
    include_str!("certificates/second.crt"),
    include_str!("certificates/second.key"),
];

/// A worker. Dropping it removes its ledger.
pub struct Gateway {
    pub worker: Arc<Worker>,
    pub upstream: Upstream,
    pub address: SocketAddr,
    document: Value,
    _folder: TempDir,
}

impl Gateway {
    pub async fn start() -> Self {
        Self::with(|_| ()).await
    }

    /// Starts a worker with a configuration that `change` has modified.
    pub async fn with(change: impl FnOnce(&mut Value)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let upstream = Upstream::start().await;
        let name = "gateway.test/ledger";
        let key = SigningKey::generate(name, [7; 32]).unwrap();
        let tenant = |name: &str, key: &str| {
            let hash = hash_api_key(key.as_bytes())
                .map(|byte| format!("{byte:02x}"))
                .concat();
            json!({
                "name": name, "keys": [{"hash": hash, "expiresAt": null}], "models": null, "endpoints": null,
                "limits": {}, "keyLimits": {}, "policy": null,
            })
        };
        let mut document = json!({
            "ledger": {
                "name": name, "directory": folder.path(), "shard": 0, "durability": "Written",
                "checkpointIntervalSeconds": 0.02, "signingKey": key.to_text(), "segmentBytes": 1 << 20,
                "rotation": {"bytes": 1 << 30, "seconds": 86_400}, "heldCheckpoints": null,
            },
            "listen": "127.0.0.1:0",
            "providers": [{
                "name": "stand-in", "type": "OpenAI", "baseURL": upstream.url(), "apiKey": null, "caPem": null,
                "streamUsage": "Ask",
            }],
            "models": [{
                "name": MODEL, "routes": [{"provider": "stand-in", "upstreamModel": MODEL, "weight": 1}],
                "maxOutputTokens": 100,
            }],
            "tenants": [tenant("acme", ACME), tenant("globex", GLOBEX)],
            "tls": certificate(FIRST),
            "timeouts": {
                "clientHeadSeconds": 60, "clientBodySeconds": 60, "clientIdleSeconds": 60,
                "upstreamConnectSeconds": 60, "upstreamResponseSeconds": 60, "answerSeconds": 600,
                "connectionAgeSeconds": 600, "drainSeconds": 30, "lameDuckSeconds": 0,
            },
            "limits": {
                "headBytes": 16_384, "bodyBytes": BODY_BYTES, "connections": 100, "bufferedBytes": 1 << 28,
            },
            "configDigest": "00".repeat(32),
        });
        change(&mut document);
        let worker = Worker::new(Config::from_json(&document.to_string()).unwrap()).unwrap();
        worker.start().unwrap();
        Gateway {
            address: worker.address().unwrap().parse().unwrap(),
            worker: Arc::new(worker),
            upstream,
            document,
            _folder: folder,
        }
    }

    /// Applies a changed configuration.
    pub fn reload(&self, change: impl FnOnce(&mut Value)) {
        self.try_reload(change).unwrap();
    }

    /// Applies a changed configuration, or returns the error.
    pub fn try_reload(&self, change: impl FnOnce(&mut Value)) -> Result<(), proofgate_dataplane::Error> {
        let mut document = self.document.clone();
        change(&mut document);
        self.worker.reload(Config::from_json(&document.to_string())?)?;
        Ok(())
    }

    /// Applies a changed configuration, on which later changes build.
    pub fn change(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.document);
        self.reload(|_| ());
    }

    /// Returns the sum of the series with this name, and with at least these labels at the start of
    /// the label list; 0 if there is none.
    pub fn metric(&self, series: &str) -> u64 {
        let text = self.worker.metrics().unwrap();
        let beginning = series.strip_suffix('}').unwrap_or(series);
        let rest = text.lines().filter_map(|line| line.strip_prefix(beginning));
        rest.filter(|rest| rest.starts_with(['}', ',', ' ']))
            .map(|rest| rest.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
            .sum()
    }

    /// Waits until a series has a value.
    pub async fn wait_for_metric(&self, series: &str, value: u64) {
        self.wait_for_metric_in(series, value..=value).await;
    }

    /// Waits until a series has one of these values.
    pub async fn wait_for_metric_in(&self, series: &str, values: impl RangeBounds<u64> + Debug) {
        let reached = async {
            while !values.contains(&self.metric(series)) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, reached).await;
        assert!(
            waited.is_ok(),
            "{series} is {}, not {values:?}",
            self.metric(series)
        );
    }

    /// Waits until a drain is over. Returns whether the log is sealed.
    pub async fn join(&self) -> bool {
        let worker = Arc::clone(&self.worker);
        tokio::task::spawn_blocking(move || worker.join(PATIENCE))
            .await
            .unwrap()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.worker.drain();
    }
}

/// Returns the configuration value for a kind of provider.
pub fn word(kind: &str) -> &'static str {
    match kind {
        "openai" => "OpenAI",
        "azure_openai" => "AzureOpenAI",
        "anthropic" => "Anthropic",
        "gemini" => "Gemini",
        "bedrock" => "Bedrock",
        "vertex_ai" => "VertexAI",
        _ => unreachable!("{kind} is not a provider type"),
    }
}

/// Returns the TLS section of a configuration.
pub fn certificate([certificate, key]: [&str; 2]) -> Value {
    json!({"certificatePem": certificate, "privateKeyPem": key, "minVersion": "1.2"})
}

/// A request for a chat completion whose prompt has `length` bytes.
pub fn chat(length: usize, stream: bool) -> Vec<u8> {
    let message = json!({"role": "user", "content": "x".repeat(length)});
    serde_json::to_vec(&json!({"model": MODEL, "stream": stream, "messages": [message]})).unwrap()
}
