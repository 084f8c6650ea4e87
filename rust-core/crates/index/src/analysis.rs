//! Results of the analysis of answers, as an index stores them.

use crate::exchange::{RequestId, to_index_number, to_index_time};
use crate::interner::TextInterner;
use proofgate_ledger::record::{AnalysedFeature, Analysis};

/// One analysis record: about a window of answers, or about one answer that was flagged. Text and list numbers refer to
/// the batch's day; other numbers are integers in the units of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnalysisRow {
    /// When it was recorded, in unix microseconds.
    pub ts: i64,
    /// Number of the record in its log.
    pub seq: i64,
    /// The exchange in which it was found.
    pub exchange: RequestId,
    /// The tenant of the answers, a text.
    pub tenant: u32,
    /// The requested model, a text.
    pub model: u32,
    /// A list: the flags of an answer, or the features in which a window differs.
    pub findings: Option<u32>,
    /// Mean entropy per token, in thousandths of a bit.
    pub entropy: Option<i64>,
    /// Proportion of repeated word groups, in thousandths.
    pub repetition: Option<i64>,
    /// For an answer: proportion of its longest run of one block, in thousandths.
    pub stretch: Option<i64>,
    /// Fields that only a window has.
    pub window: Option<AnalysisWindow>,
}

/// The fields that only a window of answers has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnalysisWindow {
    /// Number of the window for its tenant and model since the worker started, from 1.
    pub number: i64,
    /// Number of answers in it.
    pub answers: i64,
    /// Mean length in thousandths of a token.
    pub length: Option<i64>,
    /// Proportion of refusals, in thousandths.
    pub refusal: i64,
    /// Proportion of answers that were cut off at the length limit, in thousandths.
    pub cut: i64,
    /// The test of each feature against the reference, as in the record, as a JSON list; empty if the window became the
    /// reference.
    pub tests: String,
}

impl AnalysisRow {
    pub(crate) fn from_record(record: &Analysis<'_>, names: &mut TextInterner) -> Self {
        let (answer, window) = (record.answer.as_ref(), record.window.as_ref());
        let told =
            |of_answer: Option<u64>, of_window: Option<u64>| of_answer.or(of_window).map(to_index_number);
        Self {
            ts: to_index_time(record.ts),
            seq: to_index_number(record.seq),
            exchange: RequestId::from(record.exchange.as_ref()),
            tenant: names.intern_text(&record.tenant),
            model: names.intern_text(&record.model),
            findings: names.intern_unique(record.findings.iter().map(|finding| &**finding)),
            entropy: told(
                answer.and_then(|answer| answer.entropy_millibits),
                window.and_then(|window| window.entropy_millibits),
            ),
            repetition: told(
                answer.map(|answer| answer.repetition_permille),
                window.and_then(|window| window.repetition_permille),
            ),
            stretch: answer.map(|answer| to_index_number(answer.stretch_permille)),
            window: window.map(|window| AnalysisWindow {
                number: to_index_number(window.number),
                answers: to_index_number(window.answers),
                length: window.length_millitokens.map(to_index_number),
                refusal: to_index_number(window.refusal_permille),
                cut: to_index_number(window.cut_permille),
                tests: tests_json(&window.tests),
            }),
        }
    }
}

fn tests_json(tests: &[AnalysedFeature<'_>]) -> String {
    // Texts and numbers always serialize to JSON.
    serde_json::to_string(tests).unwrap_or_else(|_| "[]".to_owned())
}

#[cfg(test)]
mod tests {
    use crate::batch::{BatchBuilder, ConfigurationChange};
    use crate::cursor::LogCursor;
    use proofgate_ledger::record::{
        AnalysedFeature, AnalysedResponse, AnalysedWindow, Analysis, Config, ConfigId, Record, SettingsDigest,
    };

    const AT: u64 = 1_795_608_000_000_000;

    fn analysis(seq: u64) -> Analysis<'static> {
        Analysis {
            seq,
            ts: AT + seq,
            exchange: "mine".into(),
            admission: 1,
            incarnation: None,
            tenant: "acme".into(),
            model: "large".into(),
            findings: vec!["opening".into(), "entropy".into()],
            answer: None,
            window: None,
            config: ConfigId::default(),
        }
    }

    fn take(records: &[Record<'_>]) -> crate::Batch {
        let mut joining = BatchBuilder::default();
        for (seq, record) in records.iter().enumerate() {
            let mut payload = Vec::new();
            record.encode_into(&mut payload).unwrap();
            joining.process(seq as u64, &payload).unwrap();
        }
        joining.finish(LogCursor::parse("0 0 0 0 ").unwrap())
    }

    #[test]
    fn what_was_found_stands_on_the_day_of_its_record_with_the_numbers_of_it() {
        let test = AnalysedFeature {
            feature: "entropy".into(),
            values: 200,
            distance_ppm: 7,
            p_ppb: 1,
            differs: true,
        };
        let window = AnalysedWindow {
            number: 4,
            answers: 200,
            with_entropy: 200,
            entropy_millibits: Some(988),
            length_millitokens: None,
            repetition_permille: Some(u64::MAX),
            refusal_permille: 15,
            cut_permille: 2,
            tests: vec![test],
        };
        let answer = AnalysedResponse {
            entropy_millibits: None,
            repetition_permille: 600,
            stretch_permille: 900,
            partly: true,
        };
        let batch = take(&[
            Record::Analysis(Analysis {
                window: Some(window),
                ..analysis(0)
            }),
            Record::Analysis(Analysis {
                answer: Some(answer),
                findings: Vec::new(),
                ..analysis(1)
            }),
        ]);
        let (day, of) = batch.days.first_key_value().unwrap();
        assert_eq!((*day, batch.days.len(), of.exchanges.len()), (20_782, 1, 0));
        let [of_window, of_answer] = &of.analyses[..] else {
            panic!("{of:?}");
        };
        let names: Vec<_> = of.lists()[of_window.findings.unwrap() as usize].iter().collect();
        let names: Vec<_> = names
            .into_iter()
            .map(|text| &of.texts()[*text as usize])
            .collect();
        assert_eq!(names, ["entropy", "opening"]);
        assert_eq!(
            (of_window.entropy, of_window.repetition),
            (Some(988), Some(i64::MAX))
        );
        let numbers = of_window.window.as_ref().unwrap();
        assert_eq!((numbers.number, numbers.length, numbers.refusal), (4, None, 15));
        assert!(
            numbers.tests.starts_with("[{\"feature\":\"entropy\","),
            "{}",
            numbers.tests
        );
        assert_eq!((of_answer.findings, &of_answer.window), (None, &None));
        assert_eq!((of_answer.repetition, of_answer.stretch), (Some(600), Some(900)));
    }

    #[test]
    fn the_configuration_is_the_one_that_was_told_last_by_the_name_under_which_it_is_archived() {
        let config = |seq: u64, settings: Option<SettingsDigest>| {
            Record::Config(Config {
                seq,
                ts: AT + seq,
                reason: "reload".into(),
                config: [1; 32],
                settings,
                previous: ConfigId::default(),
            })
        };
        let told = take(&[config(0, Some(SettingsDigest([2; 32]))), config(1, None)]).configuration;
        let (ts, digest) = (AT as i64 + 1, [1; 32]);
        assert_eq!(told, Some(ConfigurationChange { ts, digest }));
        let told = take(&[config(0, Some(SettingsDigest([2; 32])))]).configuration;
        assert_eq!(told.map(|told| told.digest), Some([2; 32]));
        assert_eq!(take(&[]).configuration, None);
    }
}
