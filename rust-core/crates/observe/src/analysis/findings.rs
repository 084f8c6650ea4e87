//! Findings of the analysis, before they are recorded in the ledger.

use std::sync::Arc;

use proofgate_analysis::{FeatureTest, WindowReport};
use proofgate_base::clock::unix_micros;
use proofgate_base::request_id::RequestId;
use proofgate_ledger::LedgerError;
use proofgate_ledger::record::{AnalysedFeature, AnalysedResponse, AnalysedWindow, Analysis, ConfigId};
use tokio::sync::mpsc::Receiver;

/// The receiver of findings.
pub type FindingReceiver = Receiver<Finding>;

/// The findings for one exchange.
pub struct Finding {
    pub(super) id: RequestId,
    /// Position of the admission record.
    pub admission_position: u64,
    pub(super) tenant: Arc<str>,
    pub(super) model: Arc<str>,
    pub(super) findings: Vec<&'static str>,
    pub(super) response: Option<AnalysedResponse>,
    pub(super) window: Option<WindowReport>,
}

impl Finding {
    /// Appends the finding's record to `out`. `incarnation` is the incarnation of the admission
    /// record, if that record is in another log.
    ///
    /// # Errors
    /// Same as [`Analysis::encode_into`].
    pub fn encode(
        &self,
        seq: u64,
        admission: u64,
        incarnation: Option<&str>,
        config: ConfigId,
        out: &mut Vec<u8>,
    ) -> Result<(), LedgerError> {
        let analysis = Analysis {
            seq,
            ts: unix_micros(),
            exchange: self.id.as_str().into(),
            admission,
            incarnation: incarnation.map(Into::into),
            tenant: (&*self.tenant).into(),
            model: (&*self.model).into(),
            findings: self.findings.iter().map(|name| (*name).into()).collect(),
            answer: self.response,
            window: self.window.as_ref().map(analysed_window),
            config,
        };
        analysis.encode_into(out)
    }
}

fn analysed_window(window: &WindowReport) -> AnalysedWindow<'static> {
    AnalysedWindow {
        number: window.number,
        answers: window.response_count as u64,
        with_entropy: window.entropy_count as u64,
        entropy_millibits: window.mean_entropy.map(thousandths),
        length_millitokens: window.mean_length.map(thousandths),
        repetition_permille: window.mean_repetition.map(thousandths),
        refusal_permille: thousandths(window.refusal_share),
        cut_permille: thousandths(window.length_limited_share),
        tests: window.tests.iter().map(analysed_feature).collect(),
    }
}

fn analysed_feature(test: &FeatureTest) -> AnalysedFeature<'static> {
    AnalysedFeature {
        feature: test.feature.as_str().into(),
        values: test.sample_size as u64,
        distance_ppm: (test.distance * 1e6).round() as u64,
        p_ppb: (test.p_value * 1e9).round() as u64,
        differs: test.is_significant,
    }
}

/// Converts a number to thousandths; NaN and negative numbers become 0.
pub(super) fn thousandths(number: f64) -> u64 {
    (number * 1000.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofgate_analysis::Feature;

    #[test]
    fn the_largest_record_has_room() {
        let test = |feature| FeatureTest {
            feature,
            sample_size: 10_000,
            distance: 0.999_999,
            p_value: 0.999_999_999,
            is_significant: true,
        };
        let finding = Finding {
            id: RequestId::new(0, &mut rand::rng()),
            admission_position: u64::MAX,
            tenant: "t".repeat(317).into(),
            model: "\\".repeat(128).into(),
            findings: Feature::ALL.map(Feature::as_str).into(),
            response: None,
            window: Some(WindowReport {
                number: u64::MAX,
                response_count: 10_000,
                entropy_count: 10_000,
                mean_entropy: Some(64.0),
                mean_length: Some(1e15),
                mean_repetition: Some(1.0),
                refusal_share: 1.0,
                length_limited_share: 1.0,
                tests: Feature::ALL.map(test).into(),
            }),
        };
        let mut out = Vec::new();
        let incarnation = Some("01ARZ3NDEKTSV4RRFFQ69G5FAV");
        finding
            .encode(u64::MAX, u64::MAX, incarnation, ConfigId([0xff; 8]), &mut out)
            .unwrap();
        assert!(out.len() < 3000, "{}", out.len());
    }
}
