//! Results of the response analysis. They are integers, because two writers could format fractions
//! differently.

use super::id::ConfigId;
use super::serde_defaults::is_false;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A result of the response analysis, for one flagged response or for a window of responses. The
/// record names the exchange of the flagged response, or of the last response in the window. None
/// of the numbers reveals text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Analysis<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Time of the record, in unix microseconds.
    pub ts: u64,
    /// Request id of the exchange. The field is not called `id`, because the record is not part of
    /// the exchange.
    #[serde(borrow)]
    pub exchange: Cow<'a, str>,
    /// Number of the exchange's admission record, in the same log unless `incarnation` names another.
    pub admission: u64,
    /// ULID of the incarnation that admitted the exchange; absent if it is this incarnation.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Cow<'a, str>>,
    /// Tenant.
    #[serde(borrow)]
    pub tenant: Cow<'a, str>,
    /// Requested model.
    #[serde(borrow)]
    pub model: Cow<'a, str>,
    /// Findings: for a response `repetitive` or `loop`, for a window the names of the features that
    /// differ.
    #[serde(borrow)]
    pub findings: Vec<Cow<'a, str>>,
    /// Measures of the flagged response; absent for a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnalysedResponse>,
    /// Measures of the window; absent for a single response.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub window: Option<AnalysedWindow<'a>>,
    /// The configuration in force.
    pub config: ConfigId,
}

/// The measures of a flagged response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnalysedResponse {
    /// Lower bound of the mean entropy per token, in thousandths of a bit; absent if not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy_millibits: Option<u64>,
    /// Share of repeated groups of words, in thousandths.
    pub repetition_permille: u64,
    /// Share of the longest run of one repeated block, in thousandths.
    pub stretch_permille: u64,
    /// Whether the response was longer than the analysed part; absent if not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub partly: bool,
}

/// The measures of a window of responses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnalysedWindow<'a> {
    /// Number of the window for its tenant and model since the worker started, from 1.
    pub number: u64,
    /// Number of responses in the window.
    pub answers: u64,
    /// Number of responses whose entropy could be compared.
    pub with_entropy: u64,
    /// Mean entropy per token, in thousandths of a bit; absent if none was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy_millibits: Option<u64>,
    /// Mean length in thousandths of a token; absent if none was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_millitokens: Option<u64>,
    /// Mean share of repeated groups of words, in thousandths; absent if no response was long enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetition_permille: Option<u64>,
    /// Share of refusals, in thousandths.
    pub refusal_permille: u64,
    /// Share of responses that ended at the length limit, in thousandths.
    pub cut_permille: u64,
    /// Comparison of each feature with the reference; empty if the window became the reference.
    #[serde(borrow)]
    pub tests: Vec<AnalysedFeature<'a>>,
}

/// The comparison of one feature of a window with the reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnalysedFeature<'a> {
    /// Name of the feature.
    #[serde(borrow)]
    pub feature: Cow<'a, str>,
    /// Number of compared values from the window, and as many from the reference.
    pub values: u64,
    /// Distance between window and reference, in millionths.
    pub distance_ppm: u64,
    /// Probability of that distance if nothing has changed, in thousandths of a millionth.
    pub p_ppb: u64,
    /// Whether that probability is below the significance level.
    pub differs: bool,
}
