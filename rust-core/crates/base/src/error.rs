/// Why a worker cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration contradicts itself or names something that is not there.
    #[error("configuration: {0}")]
    Config(String),
    /// The ledger's directory cannot be opened, is damaged, or belongs to somebody else.
    #[error("ledger: {0}")]
    Ledger(String),
    /// The traffic port cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address that was asked for.
        address: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A thread or its runtime cannot be started.
    #[error("cannot start the {thread} thread: {source}")]
    Thread {
        /// Which thread.
        thread: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The data-plane thread did not begin with an order in time. The order is withdrawn: nothing has changed.
    #[error("the data plane is busy: the command was withdrawn, and nothing has changed")]
    Busy,
    /// The call needs a worker that runs.
    #[error("the worker is not running")]
    NotRunning,
}

impl Error {
    /// A stable machine code.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Config(_) => "config",
            Error::Ledger(_) => "ledger",
            Error::Bind { .. } => "bind",
            Error::Thread { .. } => "thread",
            Error::Busy => "busy",
            Error::NotRunning => "not_running",
        }
    }
}
