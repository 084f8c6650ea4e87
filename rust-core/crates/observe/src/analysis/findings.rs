//! What the analysis found, on its way into the ledger.

use std::sync::Arc;

use proofgate_analysis::{Test, WindowReport};
use proofgate_base::clock::unix_micros;
use proofgate_base::request_id::RequestId;
use proofgate_ledger::LedgerError;
use proofgate_ledger::record::{AnalysedAnswer, AnalysedFeature, AnalysedWindow, Analysis, ConfigId};
use tokio::sync::mpsc::Receiver;

/// Where findings come from.
pub type Findings = Receiver<Finding>;

/// What was found with one exchange.
pub struct Finding {
    pub(super) id: RequestId,
    /// Position of the admission record.
    pub admission: u64,
    pub(super) tenant: Arc<str>,
    pub(super) model: Arc<str>,
    pub(super) findings: Vec<&'static str>,
    pub(super) answer: Option<AnalysedAnswer>,
    pub(super) window: Option<WindowReport>,
}

impl Finding {
    /// Appends its record to `out`. `incarnation` admitted the exchange, if that is another than the log's.
    ///
    /// # Errors
    /// As [`Analysis::encode_into`].
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
            answer: self.answer,
            window: self.window.as_ref().map(numbers),
            config,
        };
        analysis.encode_into(out)
    }
}

fn numbers(window: &WindowReport) -> AnalysedWindow<'static> {
    AnalysedWindow {
        number: window.number,
        answers: window.answers as u64,
        with_entropy: window.with_entropy as u64,
        entropy_millibits: window.entropy.map(thousandths),
        length_millitokens: window.length.map(thousandths),
        repetition_permille: window.repetition.map(thousandths),
        refusal_permille: thousandths(window.refusals),
        cut_permille: thousandths(window.cuts),
        tests: window.tests.iter().map(feature).collect(),
    }
}

fn feature(test: &Test) -> AnalysedFeature<'static> {
    AnalysedFeature {
        feature: test.feature.as_str().into(),
        values: test.values as u64,
        distance_ppm: (test.distance * 1e6).round() as u64,
        p_ppb: (test.p * 1e9).round() as u64,
        differs: test.differs,
    }
}

/// A number in thousandths; what is none, or below 0, is 0.
pub(super) fn thousandths(number: f64) -> u64 {
    (number * 1000.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofgate_analysis::Feature;

    #[test]
    fn the_largest_record_has_room() {
        let test = |feature| Test {
            feature,
            values: 10_000,
            distance: 0.999_999,
            p: 0.999_999_999,
            differs: true,
        };
        let finding = Finding {
            id: RequestId::new(0, &mut rand::rng()),
            admission: u64::MAX,
            tenant: "t".repeat(317).into(),
            model: "\\".repeat(128).into(),
            findings: Feature::ALL.map(Feature::as_str).into(),
            answer: None,
            window: Some(WindowReport {
                number: u64::MAX,
                answers: 10_000,
                with_entropy: 10_000,
                entropy: Some(64.0),
                length: Some(1e15),
                repetition: Some(1.0),
                refusals: 1.0,
                cuts: 1.0,
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
