//! Builds exchanges from a range of one log's records.

use crate::analysis::AnalysisRow;
use crate::cursor::LogCursor;
use crate::exchange::{
    Attempt, AttributionRow, Exchange, ExchangeEnd, LateKind, LateRecord, RequestId, Verdict, day_number,
    to_index_number, to_index_time,
};
use crate::interner::TextInterner;
use proofgate_ledger::Hash;
use proofgate_ledger::record::{self, Admission, Completion, PolicyNote, Record, Rejection, SettingsDigest};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

/// The exchanges of a day in a batch, and the analyses recorded on that day.
#[derive(Clone, Debug, Default)]
pub struct Day {
    interner: TextInterner,
    /// In the order of their records.
    pub exchanges: Vec<Exchange>,
    /// In the order of their records.
    pub analyses: Vec<AnalysisRow>,
}

/// When a configuration came into force in a log, and the SHA-256 under which it is archived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigurationChange {
    /// Time in unix microseconds.
    pub ts: i64,
    /// Digest of the content of the configuration file.
    pub digest: Hash,
}

impl Day {
    /// Returns the texts of the day; the index is the text's number.
    #[must_use]
    pub fn texts(&self) -> &[String] {
        self.interner.texts()
    }

    /// Returns the lists of texts of the day; the index is the list's number.
    #[must_use]
    pub fn lists(&self) -> &[Vec<u32>] {
        self.interner.lists()
    }
}

/// The content of a range of a log.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The position after the batch.
    pub cursor: LogCursor,
    /// The exchanges that start in the batch, by their start day, counted from 1970-01-01 (UTC).
    pub days: BTreeMap<i64, Day>,
    /// Records about other exchanges, in the order of the log.
    pub late_records: Vec<LateRecord>,
    /// Whether the batch's last record is a seal.
    pub sealed: bool,
    /// The final sizes of other logs that the batch states: incarnation and number of records.
    pub ended_logs: Vec<(String, u64)>,
    /// The last configuration change in the batch; `None` if the configuration stays the same.
    pub configuration: Option<ConfigurationChange>,
}

impl Batch {
    /// Returns the number and time of each admission in the batch whose end is not in the batch.
    pub fn open_admissions(&self) -> impl Iterator<Item = (i64, i64)> {
        let exchanges = self.days.values().flat_map(|day| &day.exchanges);
        exchanges
            .filter(|exchange| exchange.end.is_none())
            .map(|exchange| (exchange.seq, exchange.ts))
    }
}

/// Builds a batch, record by record.
#[derive(Debug, Default)]
pub(crate) struct BatchBuilder {
    days: BTreeMap<i64, Day>,
    /// Positions of the admissions that have no end yet, by number.
    open_positions: HashMap<u64, (i64, usize)>,
    late_records: Vec<LateRecord>,
    sealed: bool,
    ended_logs: Vec<(String, u64)>,
    configuration: Option<ConfigurationChange>,
}

impl BatchBuilder {
    /// Processes a record. Unknown records, and records without an exchange, are ignored.
    ///
    /// # Errors
    /// A description of what is wrong with the record.
    pub(crate) fn process(&mut self, seq: u64, payload: &[u8]) -> Result<(), String> {
        let record = record::parse(payload).map_err(|error| format!("record {seq}: {error}"))?;
        if record.seq() != seq {
            return Err(format!("record {seq} says that it is record {}", record.seq()));
        }
        match &record {
            Record::Admission(admission) => self.add_admission(admission),
            Record::Attempt(attempt) => self.add_attempt(attempt),
            Record::Completion(completion) => self.add_completion(completion),
            Record::Rejection(rejection) => self.add_rejection(rejection),
            Record::Abort(aborted) => self.late_records.push(LateRecord {
                incarnation: Some(aborted.incarnation.as_ref().to_owned()),
                admission: to_index_number(aborted.admission),
                id: aborted.id.as_ref().to_owned(),
                seq: to_index_number(seq),
                kind: LateKind::End {
                    status: None,
                    outcome: "aborted".to_owned(),
                    prompt_tokens: None,
                    completion_tokens: None,
                    cost: None,
                    bytes: None,
                    duration: None,
                    verdict: Verdict::Allowed,
                    rules: Vec::new(),
                },
            }),
            Record::Open(open) => {
                self.record_configuration(open.ts, open.config, open.settings);
                let ended = open.predecessor.iter().filter(|named| !named.running);
                let ended = ended.map(|named| (named.incarnation.as_ref().to_owned(), named.size));
                self.ended_logs.extend(ended);
            }
            Record::Takeover(takeover) => {
                let ended = (takeover.incarnation.as_ref().to_owned(), takeover.size);
                self.ended_logs.push(ended);
            }
            Record::Seal(_) => self.sealed = true,
            Record::Config(config) => self.record_configuration(config.ts, config.config, config.settings),
            Record::Analysis(analysis) => {
                let of = self
                    .days
                    .entry(day_number(to_index_time(analysis.ts)))
                    .or_default();
                of.analyses
                    .push(AnalysisRow::from_record(analysis, &mut of.interner));
            }
            Record::Gap(_) | Record::Unknown(_) => {}
        }
        Ok(())
    }

    pub(crate) fn finish(self, place: LogCursor) -> Batch {
        Batch {
            cursor: place,
            days: self.days,
            late_records: self.late_records,
            sealed: self.sealed,
            ended_logs: self.ended_logs,
            configuration: self.configuration,
        }
    }

    fn record_configuration(&mut self, ts: u64, config: Hash, settings: Option<SettingsDigest>) {
        self.configuration = Some(ConfigurationChange {
            ts: to_index_time(ts),
            digest: settings.map_or(config, |settings| settings.0),
        });
    }

    fn add_admission(&mut self, admission: &Admission<'_>) {
        let ts = to_index_time(admission.ts);
        let of = self.days.entry(day_number(ts)).or_default();
        let names = &mut of.interner;
        let provider = names.intern_text(&admission.provider);
        let model = (!admission.model.is_empty()).then(|| names.intern_text(&admission.model));
        let said = admission.attribution.as_ref();
        let attributed = said.map_or_else(AttributionRow::default, |said| {
            AttributionRow::from_attribution(said, names)
        });
        let exchange = Exchange {
            ts,
            seq: to_index_number(admission.seq),
            id: RequestId::from(admission.id.as_ref()),
            tenant: Some(names.intern_text(&admission.tenant)),
            tenant_seq: Some(to_index_number(admission.tenant_seq)),
            key: Some(names.intern_text(&admission.key)),
            key_name: admission.key_name.as_ref().map(|name| names.intern_text(name)),
            model,
            providers: names.intern_list(&[provider]),
            endpoint: Some(names.intern_text(&admission.endpoint)),
            verdict: Verdict::from_policy_note(admission.policy.as_ref()),
            rules: names.intern_unique(rule_names(admission.policy.as_ref())),
            bytes: to_index_number(admission.bytes),
            attribution: attributed,
            client_address: admission
                .client_address
                .as_ref()
                .map(|address| names.intern_text(address)),
            attempts: Vec::new(),
            end: None,
        };
        self.open_positions
            .insert(admission.seq, (day_number(ts), of.exchanges.len()));
        of.exchanges.push(exchange);
    }

    /// Returns the exchange in this batch that an admission in this log started, if the exchange
    /// has this id and no end.
    fn find_started(
        &mut self,
        incarnation: Option<&Cow<'_, str>>,
        admission: u64,
        id: &str,
    ) -> Option<&mut Day> {
        let (day, at) = *self
            .open_positions
            .get(&admission)
            .filter(|_| incarnation.is_none())?;
        let of = self.days.get_mut(&day)?;
        let exchange = of.exchanges.get(at)?;
        (exchange.id == RequestId::from(id)).then_some(of)
    }

    fn add_attempt(&mut self, attempt: &record::Attempt<'_>) {
        let at = self.open_positions.get(&attempt.admission).map(|(_, at)| *at);
        let begun = self.find_started(attempt.incarnation.as_ref(), attempt.admission, &attempt.id);
        let (Some(of), Some(at)) = (begun, at) else {
            self.late_records.push(LateRecord {
                incarnation: attempt
                    .incarnation
                    .as_ref()
                    .map(|named| named.as_ref().to_owned()),
                admission: to_index_number(attempt.admission),
                id: attempt.id.as_ref().to_owned(),
                seq: to_index_number(attempt.seq),
                kind: LateKind::Attempt {
                    number: attempt.attempt,
                    provider: attempt.provider.as_ref().to_owned(),
                },
            });
            return;
        };
        let provider = of.interner.intern_text(&attempt.provider);
        let exchange = &mut of.exchanges[at];
        let before = exchange
            .providers
            .map(|list| of.interner.lists()[list as usize].clone());
        let mut providers = before.unwrap_or_default();
        if !providers.contains(&provider) {
            providers.push(provider);
        }
        exchange.providers = of.interner.intern_list(&providers);
        exchange.attempts.push(Attempt {
            seq: to_index_number(attempt.seq),
            number: attempt.attempt,
            provider,
        });
    }

    fn add_completion(&mut self, completion: &Completion<'_>) {
        let at = self.open_positions.get(&completion.admission).map(|(_, at)| *at);
        let begun = self.find_started(
            completion.incarnation.as_ref(),
            completion.admission,
            &completion.id,
        );
        let usage = completion.usage.as_ref();
        let (prompt_tokens, completion_tokens) = (
            usage.map(|usage| to_index_number(usage.prompt_tokens)),
            usage.map(|usage| to_index_number(usage.completion_tokens)),
        );
        let cost = completion.cost_nanodollars.map(to_index_number);
        let (bytes, duration) = (
            Some(to_index_number(completion.bytes)),
            Some(to_index_number(completion.duration_us)),
        );
        let verdict = Verdict::from_completion(completion);
        let (Some(of), Some(at)) = (begun, at) else {
            let rules = rule_names(completion.policy.as_ref())
                .map(str::to_owned)
                .collect();
            self.late_records.push(LateRecord {
                incarnation: completion
                    .incarnation
                    .as_ref()
                    .map(|named| named.as_ref().to_owned()),
                admission: to_index_number(completion.admission),
                id: completion.id.as_ref().to_owned(),
                seq: to_index_number(completion.seq),
                kind: LateKind::End {
                    status: Some(completion.status),
                    outcome: completion.outcome.as_str().to_owned(),
                    prompt_tokens,
                    completion_tokens,
                    cost,
                    bytes,
                    duration,
                    verdict,
                    rules,
                },
            });
            return;
        };
        let outcome = of.interner.intern_text(completion.outcome.as_str());
        let exchange = &mut of.exchanges[at];
        exchange.verdict = exchange.verdict.max(verdict);
        if completion.policy.is_some() {
            let before: Vec<String> = of
                .interner
                .list_texts(exchange.rules)
                .map(str::to_owned)
                .collect();
            let all = before
                .iter()
                .map(String::as_str)
                .chain(rule_names(completion.policy.as_ref()));
            exchange.rules = of.interner.intern_unique(all);
        }
        exchange.end = Some(ExchangeEnd {
            seq: to_index_number(completion.seq),
            status: Some(completion.status),
            outcome,
            prompt_tokens,
            completion_tokens,
            cost,
            bytes,
            duration,
        });
        self.open_positions.remove(&completion.admission);
    }

    fn add_rejection(&mut self, rejection: &Rejection<'_>) {
        let ts = to_index_time(rejection.ts);
        let of = self.days.entry(day_number(ts)).or_default();
        let names = &mut of.interner;
        let end = ExchangeEnd {
            seq: to_index_number(rejection.seq),
            status: Some(rejection.status),
            outcome: names.intern_text(&rejection.code),
            prompt_tokens: None,
            completion_tokens: None,
            cost: None,
            bytes: None,
            duration: None,
        };
        // Requests for files and batches have no model.
        let model = rejection.model.as_ref().filter(|model| !model.is_empty());
        let model = model.map(|model| names.intern_text(model));
        let said = rejection.attribution.as_ref();
        let attributed = said.map_or_else(AttributionRow::default, |said| {
            AttributionRow::from_attribution(said, names)
        });
        of.exchanges.push(Exchange {
            ts,
            seq: to_index_number(rejection.seq),
            id: RequestId::from(rejection.id.as_ref()),
            tenant: rejection.tenant.as_ref().map(|tenant| names.intern_text(tenant)),
            tenant_seq: rejection.tenant_seq.map(to_index_number),
            key: rejection
                .key
                .as_ref()
                .or(rejection.counted.as_ref())
                .map(|key| names.intern_text(key)),
            key_name: rejection.key_name.as_ref().map(|name| names.intern_text(name)),
            model,
            providers: None,
            endpoint: rejection
                .endpoint
                .as_ref()
                .map(|endpoint| names.intern_text(endpoint)),
            verdict: Verdict::Refused,
            rules: names.intern_unique(rule_names(rejection.policy.as_ref())),
            bytes: to_index_number(rejection.bytes),
            attribution: attributed,
            client_address: rejection
                .client_address
                .as_ref()
                .map(|address| names.intern_text(address)),
            attempts: Vec::new(),
            end: Some(end),
        });
    }
}

fn rule_names<'n>(note: Option<&'n PolicyNote<'_>>) -> impl Iterator<Item = &'n str> {
    note.into_iter()
        .flat_map(|note| note.rules.iter().map(|rule| &**rule))
}
