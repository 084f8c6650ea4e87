//! A minimal worker.

use crate::{DurabilityModel, key, records};
use proofgate_ledger::record::{
    Admission, Commitment, Completion, ConfigId, Outcome, PendingBody, ReceivedBody, Rejection, Seal,
};
use proofgate_ledger::{LedgerError, ShredKey};
use proofgate_wal::{Follower, Incarnation, Storage, Ulid, WalError, Writer};

/// A worker for tests, in one thread and on a simulated disk.
pub struct Worker {
    pub writer: Writer,
    pub follower: Follower,
    pub durability_model: DurabilityModel,
    /// Time of the worker's newest record, in unix microseconds.
    pub clock: u64,
    /// Number of admissions of the worker's only tenant in the log.
    pub admission_count: u64,
    /// Shred key for the salts of the next admissions; `None` if the salts need no key.
    pub shred_key: Option<ShredKey>,
}

impl Worker {
    /// Creates a worker from a log that has just started and whose opening records are signed.
    pub fn from_log(disk: &dyn Storage, log: Incarnation) -> Self {
        let beginning = log.follower.followed_records();
        let signed = log.follower.last_checkpoint().unwrap().clone();
        Self {
            durability_model: DurabilityModel {
                incarnation: Some(log.incarnation),
                appended: records(disk, &log.dir, log.incarnation),
                dir: log.dir,
                written: beginning,
                durable: beginning,
                notes: vec![signed.sign(&key()).unwrap()],
            },
            writer: log.writer,
            follower: log.follower,
            clock: 1,
            admission_count: 0,
            shred_key: None,
        }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    pub fn append(
        &mut self,
        encode: impl FnOnce(u64, &mut Vec<u8>) -> Result<(), LedgerError>,
    ) -> Result<u64, WalError> {
        let mut copy = Vec::new();
        let seq = self.writer.append(|seq, out| {
            let start = out.len();
            encode(seq, out)?;
            copy = out[start..].to_vec();
            Ok(())
        })?;
        assert_eq!(seq as usize, self.durability_model.appended.len());
        self.durability_model.appended.push(copy);
        Ok(seq)
    }

    /// Appends an admission whose record is about `size` bytes.
    pub fn admit(&mut self, id: &str, size: usize) -> Result<u64, WalError> {
        self.admit_with_pending_body(id, size, None)
    }

    /// Appends an admission of the body `hello`. If `coming` is set, `hello` is only the start of a
    /// body that is still arriving.
    pub fn admit_with_pending_body(
        &mut self,
        id: &str,
        size: usize,
        coming: Option<PendingBody>,
    ) -> Result<u64, WalError> {
        let stored = self.writer.salt(self.writer.next_seq())?;
        let salt = self
            .shred_key
            .as_ref()
            .map_or(stored, |key| key.derive_salt(&stored));
        let shred_key = self.shred_key.as_ref().map(ShredKey::id);
        let ts = self.tick();
        let tenant_seq = self.admission_count + 1;
        let appended = self.append(|seq, out| {
            Admission {
                seq,
                ts,
                id: id.into(),
                tenant: "acme".into(),
                tenant_seq,
                key: "01234567".into(),
                model: "m".repeat(size).into(),
                provider: "openai".into(),
                upstream_model: "m".into(),
                endpoint: "chat.completions".into(),
                stream: false,
                coming,
                bytes: 5,
                request: proofgate_ledger::commitment::commit(&salt, "request", b"hello"),
                salt: Some(proofgate_ledger::commitment::salt_id(&salt)),
                shred_key,
                reserved: None,
                reserved_nanodollars: None,
                shared_plan: None,
                policy: None,
                dropped: Vec::new(),
                dropped_unnamed: 0,
                attribution: None,
                client_address: None,
                key_name: None,
                config: ConfigId([1; 8]),
            }
            .encode_into(out)
        });
        self.admission_count += u64::from(appended.is_ok());
        appended
    }

    /// Appends the record of a denied request with the body `hello`.
    pub fn deny(&mut self, id: &str) -> Result<u64, WalError> {
        let appended = self.deny_with_tenant_seq(id, self.admission_count + 1);
        self.admission_count += u64::from(appended.is_ok());
        appended
    }

    /// Same as [`Self::deny`], but with this number among the tenant's requests, even if it is not
    /// the next number.
    pub fn deny_with_tenant_seq(&mut self, id: &str, tenant_seq: u64) -> Result<u64, WalError> {
        let stored = self.writer.salt(self.writer.next_seq())?;
        let salt = self
            .shred_key
            .as_ref()
            .map_or(stored, |key| key.derive_salt(&stored));
        let shred_key = self.shred_key.as_ref().map(ShredKey::id);
        let request = proofgate_ledger::commitment::commit(&salt, "request", b"hello");
        let ts = self.tick();
        self.append(|seq, out| {
            Rejection {
                seq,
                ts,
                id: id.into(),
                tenant: Some("acme".into()),
                tenant_seq: Some(tenant_seq),
                key: Some("01234567".into()),
                status: 403,
                code: "policy_blocked".into(),
                model: Some("m".into()),
                bytes: 5,
                request: Some(Commitment(request)),
                salt: Some(proofgate_ledger::commitment::salt_id(&salt)),
                shred_key,
                config: ConfigId([1; 8]),
                ..Rejection::default()
            }
            .encode_into(out)
        })
    }

    pub fn complete(&mut self, id: &str, admission: u64) -> Result<u64, WalError> {
        self.complete_from_log(None, id, admission)
    }

    /// Ends an exchange that another log admitted.
    pub fn complete_from_log(
        &mut self,
        log: Option<Ulid>,
        id: &str,
        admission: u64,
    ) -> Result<u64, WalError> {
        self.complete_with_received_body(log, id, admission, None)
    }

    pub fn complete_with_received_body(
        &mut self,
        log: Option<Ulid>,
        id: &str,
        admission: u64,
        received: Option<ReceivedBody>,
    ) -> Result<u64, WalError> {
        let log = log.map(|log| log.to_string());
        let ts = self.tick();
        self.append(|seq, out| {
            Completion {
                seq,
                ts,
                id: id.into(),
                admission,
                incarnation: log.as_deref().map(Into::into),
                status: 200,
                upstream_status: Some(200),
                attempts: 1,
                outcome: Outcome::Complete,
                received,
                bytes: 7,
                response: [2; 32],
                payloads: None,
                usage: None,
                charged: None,
                cost_nanodollars: None,
                duration_us: 1,
                policy: None,
                config: ConfigId([1; 8]),
            }
            .encode_into(out)
        })
    }

    /// Runs one exchange and makes it durable and covered by a checkpoint.
    pub fn run_exchange(&mut self, id: &str) {
        let admission = self.admit(id, 1).unwrap();
        self.complete(id, admission).unwrap();
        self.flush().unwrap();
        self.step().unwrap();
        self.sync().unwrap();
        self.checkpoint().unwrap();
    }

    pub fn flush(&mut self) -> Result<(), WalError> {
        self.writer.flush()?;
        self.durability_model.written = self.durability_model.appended.len() as u64;
        assert_eq!(self.writer.watermark().written(), self.durability_model.written);
        Ok(())
    }

    pub fn step(&mut self) -> Result<(), WalError> {
        self.follower.prepare();
        while self.follower.step()?.has_more {}
        Ok(())
    }

    pub fn sync(&mut self) -> Result<(), WalError> {
        self.follower.sync()?;
        self.durability_model.durable = self.follower.watermark().durable();
        Ok(())
    }

    pub fn checkpoint(&mut self) -> Result<(), WalError> {
        let note = self.follower.sign_checkpoint(&key())?;
        self.durability_model.notes.push(note);
        Ok(())
    }

    pub fn seal(&mut self) -> Result<(), WalError> {
        self.seal_with_successor(None)?;
        let note = self.follower.finish(&key())?;
        self.durability_model.durable = self.follower.watermark().durable();
        self.durability_model.notes.push(note);
        Ok(())
    }

    /// Writes the seal. The follower does not process it.
    pub fn seal_with_successor(&mut self, successor: Option<&str>) -> Result<(), WalError> {
        let ts = self.tick();
        let mut copy = Vec::new();
        self.writer.seal(|seq, out| {
            let start = out.len();
            Seal {
                seq,
                ts,
                reason: "drained".into(),
                records: seq,
                successor: successor.map(Into::into),
                config: ConfigId([1; 8]),
            }
            .encode_into(out)?;
            copy = out[start..].to_vec();
            Ok(())
        })?;
        self.durability_model.appended.push(copy);
        self.flush()
    }
}
