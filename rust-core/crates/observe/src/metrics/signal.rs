//! Kinds of telemetry.

/// A kind of telemetry. Telemetry is lost if its queue is full or its receiver fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    AccessLog,
    Traces,
    Metrics,
}

impl Signal {
    pub const ALL: [Self; 3] = [Self::AccessLog, Self::Traces, Self::Metrics];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::AccessLog => "access_log",
            Self::Traces => "traces",
            Self::Metrics => "metrics",
        }
    }
}
