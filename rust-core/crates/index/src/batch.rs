//! Joins the records of a stretch of one log to exchanges.

use crate::analysed::Analysed;
use crate::exchange::{
    Attempt, Attributed, End, Exchange, LateKind, LateRecord, RequestId, Verdict, day, time, whole,
};
use crate::names::Names;
use crate::place::LogCursor;
use proofgate_ledger::Hash;
use proofgate_ledger::record::{self, Admission, Completion, PolicyNote, Record, Rejection, SettingsDigest};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

/// The exchanges of a day in a batch, and what the analysis of answers found on it.
#[derive(Clone, Debug, Default)]
pub struct Day {
    names: Names,
    /// In the order of their records.
    pub exchanges: Vec<Exchange>,
    /// In the order of their records.
    pub analysed: Vec<Analysed>,
}

/// Since when a configuration is in force in a log, and the SHA-256 under which it is archived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Configured {
    /// Unix microseconds.
    pub ts: i64,
    /// Of what the configuration's file says.
    pub digest: Hash,
}

impl Day {
    /// The texts that they name, by number.
    #[must_use]
    pub fn texts(&self) -> &[String] {
        self.names.texts()
    }

    /// The lists of texts that they name, by number.
    #[must_use]
    pub fn lists(&self) -> &[Vec<u32>] {
        self.names.lists()
    }
}

/// What a stretch of a log says.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The place behind it.
    pub place: LogCursor,
    /// The exchanges that begin in it, by the days since 1970-01-01 (UTC) at which they do.
    pub days: BTreeMap<i64, Day>,
    /// What it says of others, in the order of the records.
    pub late: Vec<LateRecord>,
    /// Its last record is a seal.
    pub sealed: bool,
    /// With how many records other logs ended, as it says: incarnation and number.
    pub ended: Vec<(String, u64)>,
    /// The configuration that it tells of last; none where it tells of none, and the one before goes on.
    pub configured: Option<Configured>,
}

impl Batch {
    /// The admissions in it that have no end in it: number and time.
    pub fn unended(&self) -> impl Iterator<Item = (i64, i64)> {
        let exchanges = self.days.values().flat_map(|day| &day.exchanges);
        exchanges
            .filter(|exchange| exchange.end.is_none())
            .map(|exchange| (exchange.seq, exchange.ts))
    }
}

/// Takes the records of a batch one by one.
#[derive(Debug, Default)]
pub(crate) struct Joining {
    days: BTreeMap<i64, Day>,
    /// Where the admissions that have no end yet stand, by number.
    open: HashMap<u64, (i64, usize)>,
    late: Vec<LateRecord>,
    sealed: bool,
    ended: Vec<(String, u64)>,
    configured: Option<Configured>,
}

impl Joining {
    /// Takes a record. What this version does not know, or what belongs to no exchange, adds nothing.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(crate) fn take(&mut self, seq: u64, payload: &[u8]) -> Result<(), String> {
        let record = record::parse(payload).map_err(|error| format!("record {seq}: {error}"))?;
        if record.seq() != seq {
            return Err(format!("record {seq} says that it is record {}", record.seq()));
        }
        match &record {
            Record::Admission(admission) => self.admit(admission),
            Record::Attempt(attempt) => self.attempt(attempt),
            Record::Completion(completion) => self.complete(completion),
            Record::Rejection(rejection) => self.reject(rejection),
            Record::Aborted(aborted) => self.late.push(LateRecord {
                incarnation: Some(aborted.incarnation.as_ref().to_owned()),
                admission: whole(aborted.admission),
                id: aborted.id.as_ref().to_owned(),
                seq: whole(seq),
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
                self.configure(open.ts, open.config, open.settings);
                let ended = open.predecessor.iter().filter(|named| !named.running);
                let ended = ended.map(|named| (named.incarnation.as_ref().to_owned(), named.size));
                self.ended.extend(ended);
            }
            Record::Takeover(takeover) => {
                let ended = (takeover.incarnation.as_ref().to_owned(), takeover.size);
                self.ended.push(ended);
            }
            Record::Seal(_) => self.sealed = true,
            Record::Config(config) => self.configure(config.ts, config.config, config.settings),
            Record::Analysis(analysis) => {
                let of = self.days.entry(day(time(analysis.ts))).or_default();
                of.analysed.push(Analysed::of(analysis, &mut of.names));
            }
            Record::Gap(_) | Record::Unknown(_) => {}
        }
        Ok(())
    }

    pub(crate) fn finish(self, place: LogCursor) -> Batch {
        Batch {
            place,
            days: self.days,
            late: self.late,
            sealed: self.sealed,
            ended: self.ended,
            configured: self.configured,
        }
    }

    fn configure(&mut self, ts: u64, config: Hash, settings: Option<SettingsDigest>) {
        self.configured = Some(Configured {
            ts: time(ts),
            digest: settings.map_or(config, |settings| settings.0),
        });
    }

    fn admit(&mut self, admission: &Admission<'_>) {
        let ts = time(admission.ts);
        let of = self.days.entry(day(ts)).or_default();
        let names = &mut of.names;
        let provider = names.text(&admission.provider);
        let model = (!admission.model.is_empty()).then(|| names.text(&admission.model));
        let said = admission.attribution.as_ref();
        let attributed = said.map_or_else(Attributed::default, |said| Attributed::of(said, names));
        let exchange = Exchange {
            ts,
            seq: whole(admission.seq),
            id: RequestId::from(admission.id.as_ref()),
            tenant: Some(names.text(&admission.tenant)),
            tenant_seq: Some(whole(admission.tenant_seq)),
            key: Some(names.text(&admission.key)),
            key_name: admission.key_name.as_ref().map(|name| names.text(name)),
            model,
            providers: names.list(&[provider]),
            endpoint: Some(names.text(&admission.endpoint)),
            verdict: Verdict::of(admission.policy.as_ref()),
            rules: names.set(rules(admission.policy.as_ref())),
            bytes: whole(admission.bytes),
            attributed,
            client_address: admission
                .client_address
                .as_ref()
                .map(|address| names.text(address)),
            attempts: Vec::new(),
            end: None,
        };
        self.open.insert(admission.seq, (day(ts), of.exchanges.len()));
        of.exchanges.push(exchange);
    }

    /// The exchange of this batch that an admission of this log began, if it is of this id and has no end.
    fn begun(&mut self, incarnation: Option<&Cow<'_, str>>, admission: u64, id: &str) -> Option<&mut Day> {
        let (day, at) = *self.open.get(&admission).filter(|_| incarnation.is_none())?;
        let of = self.days.get_mut(&day)?;
        let exchange = of.exchanges.get(at)?;
        (exchange.id == RequestId::from(id)).then_some(of)
    }

    fn attempt(&mut self, attempt: &record::Attempt<'_>) {
        let at = self.open.get(&attempt.admission).map(|(_, at)| *at);
        let begun = self.begun(attempt.incarnation.as_ref(), attempt.admission, &attempt.id);
        let (Some(of), Some(at)) = (begun, at) else {
            self.late.push(LateRecord {
                incarnation: attempt
                    .incarnation
                    .as_ref()
                    .map(|named| named.as_ref().to_owned()),
                admission: whole(attempt.admission),
                id: attempt.id.as_ref().to_owned(),
                seq: whole(attempt.seq),
                kind: LateKind::Attempt {
                    number: attempt.attempt,
                    provider: attempt.provider.as_ref().to_owned(),
                },
            });
            return;
        };
        let provider = of.names.text(&attempt.provider);
        let exchange = &mut of.exchanges[at];
        let before = exchange
            .providers
            .map(|list| of.names.lists()[list as usize].clone());
        let mut providers = before.unwrap_or_default();
        if !providers.contains(&provider) {
            providers.push(provider);
        }
        exchange.providers = of.names.list(&providers);
        exchange.attempts.push(Attempt {
            seq: whole(attempt.seq),
            number: attempt.attempt,
            provider,
        });
    }

    fn complete(&mut self, completion: &Completion<'_>) {
        let at = self.open.get(&completion.admission).map(|(_, at)| *at);
        let begun = self.begun(
            completion.incarnation.as_ref(),
            completion.admission,
            &completion.id,
        );
        let usage = completion.usage.as_ref();
        let (prompt_tokens, completion_tokens) = (
            usage.map(|usage| whole(usage.prompt_tokens)),
            usage.map(|usage| whole(usage.completion_tokens)),
        );
        let cost = completion.cost_nanodollars.map(whole);
        let (bytes, duration) = (Some(whole(completion.bytes)), Some(whole(completion.duration_us)));
        let verdict = Verdict::of_end(completion);
        let (Some(of), Some(at)) = (begun, at) else {
            let rules = rules(completion.policy.as_ref()).map(str::to_owned).collect();
            self.late.push(LateRecord {
                incarnation: completion
                    .incarnation
                    .as_ref()
                    .map(|named| named.as_ref().to_owned()),
                admission: whole(completion.admission),
                id: completion.id.as_ref().to_owned(),
                seq: whole(completion.seq),
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
        let outcome = of.names.text(completion.outcome.as_str());
        let exchange = &mut of.exchanges[at];
        exchange.verdict = exchange.verdict.max(verdict);
        if completion.policy.is_some() {
            let before: Vec<String> = of.names.of_list(exchange.rules).map(str::to_owned).collect();
            let all = before
                .iter()
                .map(String::as_str)
                .chain(rules(completion.policy.as_ref()));
            exchange.rules = of.names.set(all);
        }
        exchange.end = Some(End {
            seq: whole(completion.seq),
            status: Some(completion.status),
            outcome,
            prompt_tokens,
            completion_tokens,
            cost,
            bytes,
            duration,
        });
        self.open.remove(&completion.admission);
    }

    fn reject(&mut self, rejection: &Rejection<'_>) {
        let ts = time(rejection.ts);
        let of = self.days.entry(day(ts)).or_default();
        let names = &mut of.names;
        let end = End {
            seq: whole(rejection.seq),
            status: Some(rejection.status),
            outcome: names.text(&rejection.code),
            prompt_tokens: None,
            completion_tokens: None,
            cost: None,
            bytes: None,
            duration: None,
        };
        // Files and batches have none.
        let model = rejection.model.as_ref().filter(|model| !model.is_empty());
        let model = model.map(|model| names.text(model));
        let said = rejection.attribution.as_ref();
        let attributed = said.map_or_else(Attributed::default, |said| Attributed::of(said, names));
        of.exchanges.push(Exchange {
            ts,
            seq: whole(rejection.seq),
            id: RequestId::from(rejection.id.as_ref()),
            tenant: rejection.tenant.as_ref().map(|tenant| names.text(tenant)),
            tenant_seq: rejection.tenant_seq.map(whole),
            key: rejection
                .key
                .as_ref()
                .or(rejection.counted.as_ref())
                .map(|key| names.text(key)),
            key_name: rejection.key_name.as_ref().map(|name| names.text(name)),
            model,
            providers: None,
            endpoint: rejection.endpoint.as_ref().map(|endpoint| names.text(endpoint)),
            verdict: Verdict::Refused,
            rules: names.set(rules(rejection.policy.as_ref())),
            bytes: whole(rejection.bytes),
            attributed,
            client_address: rejection
                .client_address
                .as_ref()
                .map(|address| names.text(address)),
            attempts: Vec::new(),
            end: Some(end),
        });
    }
}

fn rules<'n>(note: Option<&'n PolicyNote<'_>>) -> impl Iterator<Item = &'n str> {
    note.into_iter()
        .flat_map(|note| note.rules.iter().map(|rule| &**rule))
}
