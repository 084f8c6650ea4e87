//! Measures of model responses beyond their text: how certain the model was of its tokens, whether it loops, and whether the
//! responses of a tenant and model have changed.
//!
//! A [`CapturedResponse`] is read once and yields [`ResponseMeasurements`], which are numbers: no response text is kept. A
//! [`DriftMonitor`] compares the measures of each tenant and model, window by window, with a reference, using tests with a
//! stated rate of false alarms. The crate does no I/O and reads no clock; the same responses give the same findings.

mod distribution;
mod divergence;
mod drift;
mod feature;
mod measurements;
mod monitor;
mod random;
mod refusal;
mod repetition;
mod response;
mod settings;
mod two_sample_tests;
mod window;

pub use distribution::{TokenDistribution, TokenId, TokenProbability};
pub use divergence::jensen_shannon;
pub use feature::{Feature, FeatureTest};
pub use measurements::{Entropy, ResponseMeasurements};
pub use monitor::{DriftMonitor, MonitorOutcome, ResponseFlag};
pub use refusal::RefusalSignal;
pub use repetition::Repetition;
pub use response::{CapturedResponse, ResponseDialect, UnreadableResponse};
pub use settings::AnalysisSettings;
pub use two_sample_tests::{fisher_exact, kolmogorov_smirnov};
pub use window::WindowReport;
