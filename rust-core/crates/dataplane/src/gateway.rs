use std::cell::RefCell;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use proofgate_ledger::Hash;
use proofgate_wire::Limits;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::catalog::{Catalog, digest};
use crate::config::Timeouts;
use crate::metrics::Metrics;
use crate::recorder::Recorder;
use crate::rejection::Rejection;
use crate::request_id::RequestId;
use crate::{Config, Error};

/// What every connection of the data-plane thread shares.
pub(crate) struct Gateway {
    pub(crate) catalog: Catalog,
    pub(crate) recorder: Rc<Recorder>,
    pub(crate) metrics: Metrics,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) config_digest: Hash,
    pub(crate) proxy_protocol: bool,
    random: RefCell<StdRng>,
}

impl Gateway {
    pub(crate) fn new(config: &Config, recorder: Rc<Recorder>, metrics: Metrics) -> Result<Self, Error> {
        let Config { timeouts, limits, .. } = config;
        Ok(Gateway {
            catalog: Catalog::new(config)?,
            recorder,
            metrics,
            limits: Limits {
                head_bytes: limits.head_bytes,
                body_bytes: limits.body_bytes,
                ..Limits::default()
            },
            timeouts: *timeouts,
            config_digest: digest(&config.config_digest).unwrap_or_default(),
            proxy_protocol: config.proxy_protocol,
            random: RefCell::new(StdRng::from_os_rng()),
        })
    }

    /// A fresh id for an exchange or a refusal at `now`.
    pub(crate) fn request_id(&self, now: u64) -> RequestId {
        RequestId::new(now, &mut *self.random.borrow_mut())
    }

    /// Records a refusal and waits until that is written; returns the id that the answer carries.
    ///
    /// An answer that says no is given even when the ledger cannot take its record: the refusal is then counted, and
    /// the count is recorded as soon as there is room.
    pub(crate) async fn reject(
        &self,
        rejection: &Rejection,
        tenant: Option<&str>,
        endpoint: Option<&str>,
        bytes: usize,
    ) -> RequestId {
        let now = unix_micros();
        let id = self.request_id(now);
        self.metrics.rejected(rejection.status);
        if let Some(seq) = self
            .recorder
            .reject(now, id.as_str(), rejection, tenant, endpoint, bytes)
        {
            let _ = self.recorder.written(seq).await;
        }
        id
    }
}

/// Wall-clock time in microseconds since 1970.
pub(crate) fn unix_micros() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
}
