//! What the analysis of answers found, in integers: a record holds no fraction that two writers could write differently.

use super::absence::is_false;
use super::id::ConfigId;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What answers told: of one exchange, when its answer is flagged, or of a window of them. It names the exchange that it was
/// found with, whose answer was the last of the window. None of its numbers holds text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Analysis<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
    /// Request id of the exchange. It is no `id`: the record is not one of the exchange's own.
    #[serde(borrow)]
    pub exchange: Cow<'a, str>,
    /// Number of the exchange's admission record, in the same log unless `incarnation` names another.
    pub admission: u64,
    /// ULID of the incarnation that admitted it; absent when that is this one.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Cow<'a, str>>,
    /// Tenant.
    #[serde(borrow)]
    pub tenant: Cow<'a, str>,
    /// Model asked for.
    #[serde(borrow)]
    pub model: Cow<'a, str>,
    /// What was found: `repetitive` or `loop` of an answer, the features that differ of a window.
    #[serde(borrow)]
    pub findings: Vec<Cow<'a, str>>,
    /// Of the answer, when it is flagged; absent in a window's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnalysedResponse>,
    /// Of the window; absent in an answer's.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub window: Option<AnalysedWindow<'a>>,
    /// The configuration in force.
    pub config: ConfigId,
}

/// The numbers of a flagged answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnalysedResponse {
    /// Mean entropy of its tokens at least, in thousandths of a bit; absent where it is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy_millibits: Option<u64>,
    /// Share of repeated groups of words, in thousandths.
    pub repetition_permille: u64,
    /// Share of its longest stretch of one block again and again, in thousandths.
    pub stretch_permille: u64,
    /// Whether more of it came than was analysed; absent when not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub partly: bool,
}

/// The numbers of a window of answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnalysedWindow<'a> {
    /// Which one it is of its tenant and model since the worker started, from 1.
    pub number: u64,
    /// Answers in it.
    pub answers: u64,
    /// Of how many of them entropies could be compared.
    pub with_entropy: u64,
    /// Mean entropy per token, in thousandths of a bit; absent where none was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy_millibits: Option<u64>,
    /// Mean length in thousandths of a token; absent where none was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_millitokens: Option<u64>,
    /// Mean share of repeated groups of words, in thousandths; absent where no answer was long enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetition_permille: Option<u64>,
    /// Share of refusals, in thousandths.
    pub refusal_permille: u64,
    /// Share of answers that ended because they were long enough, in thousandths.
    pub cut_permille: u64,
    /// Each feature against the reference; empty where the window became that.
    #[serde(borrow)]
    pub tests: Vec<AnalysedFeature<'a>>,
}

/// One feature of a window against the reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnalysedFeature<'a> {
    /// Which one.
    #[serde(borrow)]
    pub feature: Cow<'a, str>,
    /// Values of each side.
    pub values: u64,
    /// How far they are apart, in millionths.
    pub distance_ppm: u64,
    /// How likely that is where nothing has changed, in thousandths of a millionth.
    pub p_ppb: u64,
    /// Whether that is below the level.
    pub differs: bool,
}
