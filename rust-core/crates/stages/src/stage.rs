/// A part of an exchange. The crate's documentation says where each starts and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Stage {
    /// Reading the head, then the JSON of the body.
    Parse,
    /// Authenticating the request, and checking whether this worker owns the tenant.
    Auth,
    /// Waiting for the body and decoding it.
    Body,
    /// Reserving requests, tokens and concurrency.
    Limit,
    /// Evaluating the rules for the request.
    Policy,
    /// Appending the admission record, until it is written.
    AdmissionRecord,
    /// Building the upstream request.
    Adapt,
    /// Getting an upstream connection.
    Connect,
    /// Sending the request upstream.
    UpstreamWrite,
    /// Waiting for the first byte of the response.
    UpstreamWait,
    /// Reading the response's head.
    ResponseHead,
    /// Waiting for the pieces of the response and decoding them.
    Relay,
    /// Evaluating the rules for the response.
    ResponsePolicy,
    /// Appending the completion record, until it is written.
    CompletionRecord,
    /// Sending to the client.
    ClientWrite,
}

impl Stage {
    /// Every stage.
    pub const ALL: [Stage; 15] = [
        Stage::Parse,
        Stage::Auth,
        Stage::Body,
        Stage::Limit,
        Stage::Policy,
        Stage::AdmissionRecord,
        Stage::Adapt,
        Stage::Connect,
        Stage::UpstreamWrite,
        Stage::UpstreamWait,
        Stage::ResponseHead,
        Stage::Relay,
        Stage::ResponsePolicy,
        Stage::CompletionRecord,
        Stage::ClientWrite,
    ];

    pub(crate) const COUNT: usize = Stage::ALL.len();

    /// Returns the value of the label `stage`.
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Parse => "parse",
            Stage::Auth => "auth",
            Stage::Body => "body",
            Stage::Limit => "limit",
            Stage::Policy => "policy",
            Stage::AdmissionRecord => "admission_record",
            Stage::Adapt => "adapt",
            Stage::Connect => "connect",
            Stage::UpstreamWrite => "upstream_write",
            Stage::UpstreamWait => "upstream_wait",
            Stage::ResponseHead => "response_head",
            Stage::Relay => "relay",
            Stage::ResponsePolicy => "response_policy",
            Stage::CompletionRecord => "completion_record",
            Stage::ClientWrite => "client_write",
        }
    }
}

/// A separately measured interval, which is not part of one exchange: a start, or the way from one thread to another. The
/// crate's documentation says where each starts and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Interval {
    /// Making a connection ready for requests.
    Accept,
    /// From a written record to the ledger thread.
    LedgerWake,
    /// One batch of the ledger thread.
    LedgerBatch,
    /// From the end of a Rust call in a thread to the Python coroutine that waits for it.
    PythonResume,
    /// How late Python's event loop is.
    LoopLag,
}

impl Interval {
    /// Every interval.
    pub const ALL: [Interval; 5] = [
        Interval::Accept,
        Interval::LedgerWake,
        Interval::LedgerBatch,
        Interval::PythonResume,
        Interval::LoopLag,
    ];

    pub(crate) const COUNT: usize = Interval::ALL.len();

    /// Returns the value of the label `stage`.
    pub fn as_str(self) -> &'static str {
        match self {
            Interval::Accept => "accept",
            Interval::LedgerWake => "ledger_wake",
            Interval::LedgerBatch => "ledger_batch",
            Interval::PythonResume => "python_resume",
            Interval::LoopLag => "loop_lag",
        }
    }
}
