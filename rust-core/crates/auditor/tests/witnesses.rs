//! Tests of the publications and findings of an auditor when witnesses cosign, fail, lie or know
//! more than the auditor.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

mod audit;

use audit::{Audit, SECOND, auditor_key};
use proofgate_auditor::{Auditor, FindingCode, Settings, WitnessRequest, WitnessResponse};
use proofgate_ledger::{
    Checkpoint, CosigningKey, SignedCheckpoint, TlogProof, TrustPolicy, verify_inclusion,
};
use proofgate_ledger_testkit::{self as testkit, Worker, worker_with_records};
use proofgate_state::memory::{Fault, MemoryStorage};
use proofgate_witness::{CosignError, ListedLog, Witness};
use std::sync::Arc;

const UNIX: u64 = 1_764_086_400;

fn cosigner(number: usize) -> CosigningKey {
    CosigningKey::generate(&format!("w{number}.example"), [50 + number as u8; 32]).unwrap()
}

/// Returns a policy of three witnesses, of which `least` must cosign.
fn policy(least: usize) -> TrustPolicy {
    let mut text = format!("log {}\n", auditor_key().verifying_key().to_text());
    for number in 0..3 {
        let key = cosigner(number).verifying_key().to_text();
        text.push_str(&format!("witness w{number} {key} https://w{number}.example\n"));
    }
    text.push_str(&match least {
        0 => "quorum none\n".to_owned(),
        least => format!("group all-of-them {least} w0 w1 w2\nquorum all-of-them\n"),
    });
    TrustPolicy::parse(text.as_bytes()).unwrap()
}

fn witness(number: usize) -> Witness {
    let log = ListedLog {
        origin: auditor_key().name().to_owned(),
        key: auditor_key().verifying_key(),
    };
    Witness::create(Arc::new(MemoryStorage::default()), cosigner(number), vec![log]).unwrap()
}

/// Returns a witness's response as HTTP status, media type and body.
fn reply(witness: &Witness, question: &WitnessRequest) -> (u16, &'static str, String) {
    match witness.add_checkpoint(question.body.as_bytes(), UNIX) {
        Ok(line) => (200, "text/plain", line),
        Err(CosignError::Conflict(size)) => (409, "text/x.tlog.size", format!("{size}\n")),
        Err(refused) => (refused.status().0, "text/plain", refused.to_string()),
    }
}

fn http<'a>(reply: &'a (u16, &'static str, String)) -> WitnessResponse<'a> {
    WitnessResponse::Http {
        status: reply.0,
        media_type: reply.1,
        body: reply.2.as_bytes(),
    }
}

/// An auditor with a growing ledger, and its witnesses. A witness that is `None` does not answer.
struct Scene {
    audit: Audit,
    worker: Worker,
    witnesses: Vec<Option<Witness>>,
}

impl Scene {
    fn new(least: usize) -> Self {
        let (disk, worker) = worker_with_records();
        let mut audit = Audit::under(&disk, policy(least));
        audit.watch();
        Self {
            audit,
            worker,
            witnesses: (0..3).map(|number| Some(witness(number))).collect(),
        }
    }

    /// Writes a record, and lets the auditor sign the head.
    fn grow(&mut self) {
        self.worker.run_exchange("more");
        self.audit.watch();
    }

    fn question(&self, number: usize) -> Option<WitnessRequest> {
        self.audit
            .auditor
            .cosigning_coordinator()
            .next_request(number, self.audit.now)
            .unwrap()
    }

    fn answer(&self, question: &WitnessRequest, answer: WitnessResponse<'_>) -> &'static str {
        let cosigning = self.audit.auditor.cosigning_coordinator();
        cosigning
            .handle_response(question, answer, self.audit.now, UNIX)
            .unwrap()
    }

    /// Asks every witness that is due until no witness is due, and returns the results of the
    /// requests.
    fn ask(&self) -> Vec<(usize, &'static str)> {
        let mut ended = Vec::new();
        for number in [0, 1, 2, 0, 1, 2] {
            while let Some(question) = self.question(number) {
                let result = match &self.witnesses[number] {
                    Some(witness) => self.answer(&question, http(&reply(witness, &question))),
                    None => self.answer(&question, WitnessResponse::Failed("timeout")),
                };
                ended.push((number, result));
            }
        }
        ended
    }

    fn published(&self) -> Option<u64> {
        let (size, note) = self.audit.auditor.published_log().checkpoint()?;
        let signed = Checkpoint::verify(&note, &auditor_key().verifying_key()).unwrap();
        assert_eq!(signed.size, size);
        let read = SignedCheckpoint::parse(&note).unwrap();
        assert!(self.audit.policy.is_cosigned(&read).unwrap(), "{note}");
        Some(size)
    }

    fn signed(&self) -> u64 {
        let bytes = self.audit.state.snapshot().delete("signed").unwrap();
        let note = String::from_utf8(bytes).unwrap();
        Checkpoint::parse_unverified(&note).unwrap().size
    }

    fn lines(&self) -> usize {
        let (_, note) = self.audit.auditor.published_log().checkpoint().unwrap();
        note.lines().filter(|line| line.starts_with('\u{2014}')).count() - 1
    }

    fn last(&self, number: usize) -> String {
        self.audit.auditor.cosigning_coordinator().witness_statuses()[number]
            .last
            .clone()
    }

    /// Rolls the auditor back to an older state, as someone with access to its volume could.
    fn set_back(&mut self, to: MemoryStorage) {
        self.audit.state = to;
        self.audit.restart();
    }
}

#[test]
fn nothing_is_published_before_a_quorum_has_cosigned_it() {
    let mut scene = Scene::new(2);
    assert_eq!(scene.published(), None);
    assert!(
        scene
            .audit
            .auditor
            .published_log()
            .tlog_proof(0)
            .unwrap()
            .is_none()
    );
    scene.witnesses[1] = None;
    scene.witnesses[2] = None;
    assert!(scene.ask().contains(&(0, "cosigned")));
    assert_eq!(scene.published(), None, "one is no quorum");
    scene.witnesses[2] = Some(witness(2));
    scene.audit.now += 2 * SECOND;
    assert!(scene.ask().contains(&(2, "cosigned")));
    let first = scene.published().unwrap();
    assert_eq!((first, scene.lines()), (scene.signed(), 2));
    scene.grow();
    assert_eq!(scene.published(), Some(first), "the newer one waits");
    assert!(scene.signed() > first);
    scene.ask();
    assert_eq!(scene.published(), Some(scene.signed()));
    // The published checkpoint is stored on disk.
    scene.audit.restart();
    assert_eq!(scene.published(), Some(scene.signed()));
    assert_eq!(scene.audit.auditor.findings(), []);
}

#[test]
fn without_a_quorum_line_it_is_published_at_once_and_cosignatures_join() {
    let mut scene = Scene::new(0);
    assert_eq!((scene.published(), scene.lines()), (Some(scene.signed()), 0));
    scene.ask();
    assert_eq!((scene.published(), scene.lines()), (Some(scene.signed()), 3));
    scene.audit.restart();
    assert_eq!(scene.lines(), 3);
    scene.grow();
    assert_eq!((scene.published(), scene.lines()), (Some(scene.signed()), 0));
}

#[test]
fn a_proof_file_carries_the_cosigned_checkpoint() {
    let scene = Scene::new(3);
    scene.ask();
    let published = scene.audit.auditor.published_log();
    let proof = TlogProof::parse(&published.tlog_proof(0).unwrap().unwrap()).unwrap();
    let signed = Checkpoint::verify(&proof.checkpoint, &auditor_key().verifying_key()).unwrap();
    let tile = format!("tile/0/000.p/{}", signed.size);
    let leaf = published.read(&tile).unwrap().unwrap()[..32].try_into().unwrap();
    verify_inclusion(&leaf, 0, signed.size, &proof.hashes, &signed.root).unwrap();
    assert_eq!(
        published.tlog_proof(signed.size).unwrap_err().code(),
        "out_of_range"
    );
}

#[test]
fn a_witness_that_does_not_answer_holds_up_no_other_and_is_asked_again_later() {
    let mut scene = Scene::new(2);
    scene.witnesses[0] = None;
    for _ in 0..4 {
        scene.grow();
        scene.ask();
        assert_eq!(scene.published(), Some(scene.signed()));
    }
    let standing = &scene.audit.auditor.cosigning_coordinator().witness_statuses()[0];
    assert_eq!((standing.last.as_str(), standing.size), ("timeout", 0));
    assert_eq!(
        standing.results["timeout"], 4,
        "it is left alone for longer each time"
    );
    // While one request is pending, all others are asked to cosign the same checkpoint, but only for a short time.
    scene.audit.now += 400 * SECOND;
    let pending = scene.question(0).unwrap();
    scene.worker.run_exchange("more");
    let before = scene.published();
    scene.audit.poll();
    assert!(scene.signed() > before.unwrap(), "the beat is due");
    assert_eq!(scene.ask(), [], "one target at a time");
    scene.audit.now += 10 * SECOND;
    assert_eq!(scene.ask(), [(1, "cosigned"), (2, "cosigned")]);
    assert_eq!(scene.published(), Some(scene.signed()));
    assert_eq!(
        scene.answer(&pending, WitnessResponse::Failed("timeout")),
        "timeout"
    );
    scene.witnesses[0] = Some(witness(0));
    scene.audit.now += 400 * SECOND;
    scene.ask();
    assert_eq!(scene.lines(), 3);
}

#[test]
fn a_state_that_was_set_back_and_signed_anew_is_refused_by_witnesses_and_found() {
    let mut scene = Scene::new(2);
    scene.ask();
    let (older, disk) = (scene.audit.state.snapshot(), scene.published().unwrap());
    scene.grow();
    scene.grow();
    scene.ask();
    let newest = scene.published().unwrap();
    assert!(newest > disk + 1);
    scene.set_back(older);
    // There are fewer entries than the witnesses have cosigned. At first the log is shorter, and
    // then it is another log.
    scene.audit.poll();
    for (number, result) in scene.ask() {
        assert_eq!(result, "rollback", "{number}");
    }
    scene.grow();
    assert!(
        scene.audit.codes().contains(&FindingCode::AggregateRollback),
        "{:?}",
        scene.audit.codes()
    );
    let found = scene.audit.auditor.findings();
    let found = found
        .iter()
        .find(|found| found.code == FindingCode::AggregateRollback)
        .unwrap();
    assert!(
        found.message.contains("w0") && found.message.contains(&newest.to_string()),
        "{}",
        found.message
    );
    scene.audit.restart();
    scene.audit.watch();
    assert!(
        scene.audit.codes().contains(&FindingCode::AggregateRollback),
        "also after a restart"
    );
    for _ in 0..3 {
        scene.grow();
    }
    scene.audit.now += 400 * SECOND;
    assert!(scene.ask().iter().all(|(_, result)| *result == "fork"));
    scene.audit.watch();
    assert!(
        scene.audit.codes().contains(&FindingCode::AggregateFork),
        "{:?}",
        scene.audit.codes()
    );
    assert_eq!(
        scene.published(),
        Some(disk),
        "nothing of the other history was published"
    );
}

#[test]
fn what_a_witness_says_against_the_log_stands_for_as_long_as_it_says_so() {
    let mut scene = Scene::new(2);
    let liar = scene.question(0).unwrap();
    let ahead = (409, "text/x.tlog.size", "99999\n".to_owned());
    assert_eq!(scene.answer(&liar, http(&ahead)), "rollback");
    scene.ask();
    assert_eq!(scene.published(), Some(scene.signed()), "the others go on");
    scene.audit.watch();
    assert_eq!(scene.audit.codes(), [FindingCode::AggregateRollback]);
    scene.audit.now += 400 * SECOND;
    assert!(scene.ask().contains(&(0, "cosigned")));
    scene.audit.watch();
    assert_eq!(scene.audit.codes(), []);
}

#[test]
fn answers_that_are_no_cosignature_of_this_checkpoint_are_named_and_not_kept() {
    let mut scene = Scene::new(3);
    scene.ask();
    let before = scene.published();
    let (_, old) = scene.audit.auditor.published_log().checkpoint().unwrap();
    let replayed = old.lines().find(|line| line.contains("w0.example")).unwrap();
    scene.grow();
    let huge = "x".repeat(70_000);
    let future = {
        let question = scene.question(0).unwrap();
        let line = scene.witnesses[0]
            .as_ref()
            .unwrap()
            .add_checkpoint(question.body.as_bytes(), UNIX + 301);
        assert_eq!(
            scene.answer(&question, WitnessResponse::Failed("unreachable")),
            "unreachable"
        );
        line.unwrap()
    };
    for (status, media_type, body, result) in [
        (200, "", format!("{replayed}\n"), "bad_cosignature"),
        (200, "", future, "bad_cosignature"),
        (200, "", String::new(), "bad_cosignature"),
        (
            200,
            "",
            "\u{2014} somebody AAAAAAAAAAAA\n".to_owned(),
            "bad_cosignature",
        ),
        (200, "", huge, "bad_cosignature"),
        (409, "text/x.tlog.size", "many\n".to_owned(), "bad_answer"),
        (409, "text/plain", "3\n".to_owned(), "bad_answer"),
        (404, "", String::new(), "unknown_log"),
        (403, "", String::new(), "unknown_key"),
        (500, "", String::new(), "refused"),
        (302, "", String::new(), "refused"),
    ] {
        scene.audit.now += 400 * SECOND;
        let question = scene.question(0).unwrap();
        let answered = (status, media_type, body);
        assert_eq!(scene.answer(&question, http(&answered)), result, "{answered:?}");
        assert_eq!(scene.last(0), result);
    }
    scene.audit.watch();
    assert_eq!(scene.audit.codes(), []);
    assert_eq!(scene.published(), before);
    // A cosignature by a stranger's key under the witness's name.
    scene.audit.now += 400 * SECOND;
    let question = scene.question(0).unwrap();
    let stranger = CosigningKey::generate("w0.example", [1; 32]).unwrap();
    let note = question.body.split_once("\n\n").unwrap().1;
    let forged = stranger
        .cosign(&SignedCheckpoint::parse(note).unwrap(), UNIX)
        .unwrap()
        .line;
    assert_eq!(
        scene.answer(&question, http(&(200, "", forged))),
        "bad_cosignature"
    );
    scene.audit.now += 400 * SECOND;
    // The witness's lost answer has no effect, because the witness reports its size.
    assert_eq!(scene.ask()[..2], [(0, "conflict"), (0, "cosigned")]);
}

#[test]
fn a_witness_of_which_the_auditor_has_forgotten_where_it_stands_tells_it() {
    let mut scene = Scene::new(3);
    scene.ask();
    scene.audit.state.delete("cosignatures").unwrap();
    scene.audit.restart();
    scene.grow();
    let ended = scene.ask();
    assert_eq!(ended[..2], [(0, "conflict"), (0, "cosigned")]);
    assert_eq!(scene.published(), Some(scene.signed()));
}

#[test]
fn whatever_write_fails_all_that_is_published_is_cosigned_and_never_goes_back() {
    for write in 0..12 {
        for fault in [Fault::BeforeWrite, Fault::AfterWrite, Fault::Unsynced] {
            let mut scene = Scene::new(2);
            scene.ask();
            let mut newest = scene.published();
            scene.worker.run_exchange("more");
            scene.audit.state.fail_from(write, fault);
            for _ in 0..12 {
                scene.audit.now += SECOND;
                let _ = scene.audit.auditor.poll(scene.audit.now, u64::MAX, 0);
                for number in 0..3 {
                    let cosigning = scene.audit.auditor.cosigning_coordinator();
                    if let Ok(Some(question)) = cosigning.next_request(number, scene.audit.now) {
                        let reply = reply(scene.witnesses[number].as_ref().unwrap(), &question);
                        let _ = cosigning.handle_response(&question, http(&reply), scene.audit.now, UNIX);
                    }
                }
                assert!(scene.published() >= newest, "write {write}, {fault:?}");
                newest = scene.published();
            }
            scene.audit.state.heal();
            scene.audit.restart();
            assert!(scene.published() >= newest, "write {write}, {fault:?}");
            newest = scene.published();
            scene.audit.state.lose_power();
            scene.audit.restart();
            assert!(scene.published() >= newest, "write {write}, {fault:?}");
            scene.audit.now += 400 * SECOND;
            scene.audit.watch();
            scene.ask();
            assert_eq!(
                scene.published(),
                Some(scene.signed()),
                "write {write}, {fault:?}"
            );
            assert_eq!(scene.audit.codes(), [], "no witness was shown two histories");
        }
    }
}

#[test]
fn a_policy_that_is_not_for_this_log_or_can_never_be_met_is_refused() {
    let (disk, _worker) = worker_with_records();
    let refused = |text: String| {
        let policy = Arc::new(TrustPolicy::parse(text.as_bytes()).unwrap());
        let settings = Settings {
            policy,
            ..audit::settings()
        };
        let made = Auditor::create(
            Arc::new(disk.clone()),
            Arc::new(MemoryStorage::default()),
            auditor_key(),
            settings,
        );
        made.err().map(|error| error.code())
    };
    let (own, key) = (
        auditor_key().verifying_key().to_text(),
        cosigner(0).verifying_key().to_text(),
    );
    let other = testkit::vkey().to_text();
    assert_eq!(
        refused(format!("log {other}\nquorum none\n")),
        Some("auditor_policy")
    );
    assert_eq!(
        refused(format!("log {own}\nwitness a {key}\nquorum a\n")),
        Some("auditor_policy")
    );
    assert_eq!(
        refused(format!(
            "log {other}\nlog {own}\nwitness a {key} https://a.example\nquorum a\n"
        )),
        None
    );
    assert_eq!(refused("quorum none\n".to_owned()), None);
}

#[test]
fn a_published_checkpoint_that_the_policy_does_not_take_any_more_is_not_handed_out() {
    let mut scene = Scene::new(0);
    assert!(scene.published().is_some());
    scene.audit.policy = Arc::new(policy(2));
    scene.audit.restart();
    assert_eq!(scene.published(), None);
    scene.ask();
    assert_eq!(scene.published(), Some(scene.signed()));
}
