//! What answers tell beyond their text: how sure the model was of its tokens, whether it loops, and whether the answers of
//! one tenant and model have changed.
//!
//! An [`CapturedResponse`] is read once and leaves [`Measures`], which are numbers: no text of an answer goes further. A
//! [`DriftMonitor`] compares the measures of each tenant and model, window by window, with a reference, by tests whose rate of
//! false alarms is stated. The crate does no I/O and reads no clock; the same answers give the same findings.

mod answer;
mod distribution;
mod divergence;
mod drift;
mod feature;
mod measures;
mod monitor;
mod random;
mod refusal;
mod repetition;
mod settings;
mod two_samples;
mod window;

pub use answer::{CapturedResponse, ResponseDialect, UnreadableResponse};
pub use distribution::{TokenDistribution, TokenId, TokenProbability};
pub use divergence::jensen_shannon;
pub use feature::{Feature, FeatureTest};
pub use measures::{Entropy, Measures};
pub use monitor::{DriftMonitor, MonitorOutcome, ResponseFlag};
pub use refusal::Refusal;
pub use repetition::Repetition;
pub use settings::AnalysisSettings;
pub use two_samples::{fisher_exact, kolmogorov_smirnov};
pub use window::WindowReport;
