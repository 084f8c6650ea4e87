//! A small policy, responses, and functions that send them through an inspector.
#![allow(dead_code, reason = "each test file uses only some of these helpers")]

use std::time::Duration;

use proofgate_inspect::{
    Denial, ReadBuffers, RequestVerdict, ResponseInspector, ResponseKind, inspect_request,
};
use proofgate_json::Workspace;
use proofgate_policy::{Budget, Engine, PolicyConfig, Profile, Scratch, Step, TenantPolicy};
use proofgate_providers::{BodyText, Dialect, ParsedRequest};
use proptest::prelude::*;
use serde_json::{Value, json};

pub const LIMIT: usize = 64 * 1024;

/// An engine, a tenant's profile and a thread's scratch.
pub struct Policy {
    pub engine: Engine,
    pub profile: Profile,
    pub scratch: Scratch,
}

impl Policy {
    pub fn of(config: &Value, tenant: Option<&Value>) -> Self {
        let config: PolicyConfig = serde_json::from_value(config.clone()).unwrap();
        let tenant = tenant.map(|tenant| serde_json::from_value::<TenantPolicy>(tenant.clone()).unwrap());
        let engine = Engine::compile(&config).unwrap();
        let profile = engine.profile(tenant.as_ref()).unwrap();
        Policy {
            engine,
            profile,
            scratch: Scratch::new(),
        }
    }

    /// Rules that redact keys and names, flag dragons, deny a phrase, and deny two metals together.
    pub fn new() -> Self {
        Policy::of(&rules(), None)
    }

    pub fn dry_run() -> Self {
        Policy::of(&rules(), Some(&json!({"mode": "DryRun"})))
    }

    /// Returns the ids of the rules that matched in an inspector.
    pub fn matched(&self, inspector: &ResponseInspector) -> Vec<String> {
        let matched = inspector.judgement().matched_rules();
        matched.map(|rule| self.engine.rule(rule).id.clone()).collect()
    }

    /// Sends `pieces` of a chat completion through an inspector; returns the output, and the outcome.
    pub fn pass(
        &mut self,
        kind: ResponseKind,
        pieces: &[&[u8]],
    ) -> (Vec<u8>, Result<(), Denial>, ResponseInspector) {
        self.pass_as(Dialect::Chat, kind, pieces)
    }

    /// Sends `pieces` of a response in `dialect` through an inspector; returns the output, and the outcome.
    pub fn pass_as(
        &mut self,
        dialect: Dialect,
        kind: ResponseKind,
        pieces: &[&[u8]],
    ) -> (Vec<u8>, Result<(), Denial>, ResponseInspector) {
        let Policy {
            engine,
            profile,
            scratch,
        } = self;
        let mut inspector = ResponseInspector::new(dialect, kind, LIMIT);
        let (mut reading, mut out) = (ReadBuffers::default(), Vec::new());
        let mut ended = Ok(());
        for piece in pieces {
            ended = inspector.push(engine, profile, scratch, &mut reading, piece, &mut out);
            if ended.is_err() {
                break;
            }
        }
        let ended = ended.and_then(|()| inspector.finish(engine, profile, scratch, &mut reading, &mut out));
        (out, ended, inspector)
    }

    /// Sends bytes of a response through an inspector, with fresh read buffers that contain nothing of it.
    pub fn push(
        &mut self,
        inspector: &mut ResponseInspector,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Denial> {
        let reading = &mut ReadBuffers::default();
        inspector.push(
            &self.engine,
            &self.profile,
            &mut self.scratch,
            reading,
            bytes,
            out,
        )
    }

    /// Finishes the response.
    pub fn finish(&mut self, inspector: &mut ResponseInspector, out: &mut Vec<u8>) -> Result<(), Denial> {
        while self.finish_step(inspector, Duration::MAX, out)? == Step::Pending {}
        Ok(())
    }

    /// Finishes the response for a time slice.
    pub fn finish_step(
        &mut self,
        inspector: &mut ResponseInspector,
        slice: Duration,
        out: &mut Vec<u8>,
    ) -> Result<Step, Denial> {
        let reading = &mut ReadBuffers::default();
        inspector.finish_step(
            &self.engine,
            &self.profile,
            &mut self.scratch,
            reading,
            slice,
            out,
        )
    }
}

/// Inspects the request of a chat completion with the model `m`; returns the verdict, and the forwarded body.
pub fn inspect(policy: &mut Policy, body: &str) -> (RequestVerdict, String) {
    let mut text = BodyText::new();
    ParsedRequest::read(Dialect::Chat, body.as_bytes(), &mut Workspace::new(), &mut text).unwrap();
    let Policy {
        engine,
        profile,
        scratch,
    } = policy;
    let verdict = inspect_request(engine, profile, &text, Budget::unlimited(), scratch).unwrap();
    let mut out = Vec::new();
    let model = verdict.rewrite(engine, &text, body.as_bytes(), &mut out);
    assert_eq!(&out[model], br#""m""#);
    assert!(out.len() <= verdict.max_rewrite_bytes(engine, &text, body.as_bytes()));
    (verdict, String::from_utf8(out).unwrap())
}

pub fn rules() -> Value {
    json!({"budgetMilliseconds": 10_000, "threshold": 100, "rules": [
        {"id": "key", "reason": "A key.", "view": "Text", "regex": r"\bsk-[a-z0-9]{6,40}\b", "score": 10, "action": "Redact"},
        {"id": "long", "reason": "A token.", "view": "Text", "regex": "tk-[a-z0-9]{3,6}", "extent": "Token", "score": 1, "action": "Redact"},
        {"id": "name", "reason": "A name.", "literals": ["ann smith"], "score": 1, "action": "Redact"},
        {"id": "surname", "reason": "A surname.", "literals": ["smith sk"], "score": 1, "action": "Redact"},
        {"id": "dragon", "reason": "A dragon.", "literals": ["dragon"], "score": 1, "action": "Flag"},
        {"id": "phrase", "reason": "A phrase.", "literals": ["open the pod bay doors"], "score": 100, "action": "Block"},
        {"id": "gold", "reason": "Gold.", "literals": ["gold"], "score": 60, "action": "Flag"},
        {"id": "silver", "reason": "Silver.", "literals": ["silver"], "score": 60, "action": "Flag"},
    ]})
}

/// Returns a whole response with one choice.
pub fn answer(content: &str) -> String {
    json!({"id": "chatcmpl-1", "object": "chat.completion", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 5}})
    .to_string()
}

/// Returns an event with a piece of the content of the first choice.
pub fn chunk(content: &str) -> String {
    let data = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": content}}]});
    format!("data: {data}\n\n")
}

/// Returns an event with this data, named after its type.
pub fn named_event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

/// Returns the data of each event of a stream.
pub fn events(stream: &[u8]) -> Vec<Value> {
    let stream = String::from_utf8(stream.to_vec()).unwrap();
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// Returns the content of each event of a stream.
pub fn contents(stream: &[u8]) -> Vec<String> {
    let stream = String::from_utf8(stream.to_vec()).unwrap();
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = data
        .filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str::<Value>(data).unwrap());
    events
        .filter_map(|event| {
            event["choices"][0]["delta"]["content"]
                .as_str()
                .map(str::to_owned)
        })
        .collect()
}

/// Texts that the policy's rules match, redact, or nearly match.
pub fn text() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "sk-",
        "abcdef",
        "123456",
        "tk-abc",
        "tk-abcdefg",
        "\\/",
        "\\u002B",
        "%",
        " ",
        "\n",
        "Ann",
        " Smith",
        "smith sk",
        "dragon",
        "open the pod bay ",
        "doors",
        "gold",
        "silver",
        "x",
        "\u{e9}",
        "\u{1f600}",
        "\"",
        "\\",
        ".",
        "a story ",
        "c2stYWJjZGVmMTIzNDU2IGlz",
        "%73%6b%2d",
        "\\u0073",
        "\u{200b}",
        "\u{ff41}",
        "ann  \n smith",
        "an**n smi*th",
        "a<b>nn</b>&nbsp;smi&#116;h",
        "**",
        "<b",
        "&#",
        "\u{1}",
        "[redacted:",
        "key]",
        "[name-1",
    ]);
    prop::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat())
}
