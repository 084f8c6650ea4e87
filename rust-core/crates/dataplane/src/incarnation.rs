use std::path::PathBuf;
use std::sync::Arc;

use proofgate_ledger::SigningKey;
use proofgate_ledger::record::{Aborted, ConfigId, Open, Predecessor};
use proofgate_wal::{
    FileStorage, Follower, Incarnation, Options, Ulid, WalError, Writer, fresh_ulid, give_back, recovery,
};

use crate::Error;
use crate::catalog::digest;
use crate::clock::unix_micros;
use crate::config::Ledger;

/// A fresh log with its first records written, ready for both threads.
pub(crate) struct Log {
    pub(crate) writer: Writer,
    pub(crate) follower: Follower,
    pub(crate) origin: String,
    pub(crate) directory: PathBuf,
    pub(crate) incarnation: String,
    pub(crate) ulid: Ulid,
}

/// Reads what the predecessor on this shard left, gives back the space that it did not use, opens a new log that begins
/// by committing to it, and closes the exchanges that it never completed.
pub(crate) fn open(ledger: &Ledger, config_digest: &str, key: &SigningKey) -> Result<Log, Error> {
    build(ledger, config_digest, key).map_err(|error| Error::Ledger(error.to_string()))
}

fn build(ledger: &Ledger, config_digest: &str, key: &SigningKey) -> Result<Log, WalError> {
    let storage = Arc::new(FileStorage);
    let shard_directory = PathBuf::from(&ledger.directory).join(ledger.shard.to_string());
    let predecessor = recovery::inspect(&*storage, &shard_directory, &key.verifying_key())?;
    let newest = predecessor.as_ref().map(|log| log.incarnation);
    let unused = give_back(&*storage, &shard_directory, newest);
    if unused > 0 {
        eprintln!("proofgate: a worker that was killed had prepared {unused} bytes of log: given back");
    }
    let ulid = fresh_ulid(newest);
    let incarnation = ulid.to_string();
    let options = Options {
        segment_bytes: ledger.segment_bytes,
        ..Options::default()
    };
    let Incarnation {
        origin,
        dir: directory,
        mut writer,
        follower,
    } = Incarnation::create(
        storage,
        &shard_directory,
        ulid,
        &ledger.name,
        ledger.shard,
        options,
    )?;

    if let Some(log) = &predecessor {
        let left = format!("{}/{}/{}", ledger.name, ledger.shard, log.incarnation);
        recovery::cover_predecessor(&FileStorage, &directory, &left, log, key)?;
    }

    let config = digest(config_digest).unwrap_or_default();
    let now = unix_micros();
    let found = predecessor.as_ref();
    writer.append(|seq, out| {
        let open = Open {
            seq,
            ts: now,
            ledger: ledger.name.as_str().into(),
            shard: ledger.shard,
            incarnation: incarnation.as_str().into(),
            version: env!("CARGO_PKG_VERSION").into(),
            config,
            predecessor: found.map(|log| Predecessor {
                incarnation: log.incarnation.to_string().into(),
                size: log.size,
                root: log.root,
                sealed: log.sealed,
            }),
        };
        open.encode_into(out)
    })?;
    for log in predecessor.iter() {
        for orphan in &log.orphans {
            writer.append(|seq, out| {
                let aborted = Aborted {
                    seq,
                    ts: now,
                    id: orphan.id.as_str().into(),
                    incarnation: orphan.incarnation.to_string().into(),
                    admission: orphan.admission,
                    config: ConfigId::from(&config),
                };
                aborted.encode_into(out)
            })?;
        }
    }
    writer.flush()?;
    Ok(Log {
        writer,
        follower,
        origin,
        directory,
        incarnation,
        ulid,
    })
}
