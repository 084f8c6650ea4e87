/// A reason why a worker cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration contradicts itself or names something that does not exist.
    #[error("configuration: {0}")]
    Config(String),
    /// The ledger's directory cannot be opened, is damaged, or belongs to another ledger.
    #[error("ledger: {0}")]
    Ledger(String),
    /// The traffic port cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The requested address.
        address: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A thread or its runtime cannot be started.
    #[error("cannot start the {thread} thread: {source}")]
    Thread {
        /// The name of the thread.
        thread: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// The data-plane thread did not start a command in time. The command was withdrawn: nothing
    /// has changed.
    #[error("the data plane is busy: the command was withdrawn, and nothing has changed")]
    CommandTimedOut,
    /// The call requires a running worker.
    #[error("the worker is not running")]
    NotRunning,
}

impl Error {
    /// Returns a stable machine-readable code.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Config(_) => "config",
            Error::Ledger(_) => "ledger",
            Error::Bind { .. } => "bind",
            Error::Thread { .. } => "thread",
            Error::CommandTimedOut => "busy",
            Error::NotRunning => "not_running",
        }
    }
}
