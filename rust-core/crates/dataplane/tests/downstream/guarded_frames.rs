//! Calls of guarded tools in responses from Amazon Bedrock, which consist of frames.

use http::Response;
use serde_json::{Value, json};

use crate::bedrock::{NOVA, gateway_with};
use crate::client::next;
use crate::frames::{carried, event};
use crate::gateway::{ACME, Gateway};
use crate::guarded_tools::{ARGUMENTS, ATTACK, path, request, send};
use crate::relayed::completion;

const CLAUDE: &str = "claude";
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// A client's dialect, and the model.
const WAYS: [(&str, &str); 7] = [
    ("chat", NOVA),
    ("messages", NOVA),
    ("responses", NOVA),
    ("chat", CLAUDE),
    ("messages", CLAUDE),
    ("responses", CLAUDE),
    ("invoke", CLAUDE),
];

async fn gateway(on_flag: &str) -> Gateway {
    gateway_with(|config| {
        config["policy"] = json!({
            "mode": "Enforce", "packs": ["prompt-injection", "exfiltration"], "flagThreshold": 50,
            "actions": [{"packs": ["prompt-injection", "exfiltration"], "action": "Flag"}],
        });
        for tenant in config["tenants"].as_array_mut().unwrap() {
            tenant["guardedTools"] = json!({"names": ["Bash"], "onFlag": on_flag});
        }
    })
    .await
}

/// Returns a text, a tool call in two fragments, and the end, each in a frame, in the format of the
/// operation in a request's head.
fn frames(head: &str, tool: &str) -> Vec<Vec<u8>> {
    let arguments = json!({"command": ARGUMENTS}).to_string();
    let (begin, rest) = arguments.split_at(5);
    if head.contains("/converse-stream HTTP/1.1") {
        let started =
            json!({"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "tooluse_1", "name": tool}}});
        let delta = |index: u64, delta: Value| {
            let document = json!({"contentBlockIndex": index, "delta": delta, "p": "abcd"});
            event("contentBlockDelta", &document.to_string())
        };
        let usage = json!({"inputTokens": 1, "outputTokens": 1, "totalTokens": 2});
        let metadata = json!({"usage": usage, "metrics": {"latencyMs": 1}});
        return vec![
            event("messageStart", r#"{"role":"assistant"}"#),
            delta(0, json!({"text": "Let me look."})),
            event("contentBlockStop", r#"{"contentBlockIndex":0}"#),
            event("contentBlockStart", &started.to_string()),
            delta(1, json!({"toolUse": {"input": begin}})),
            delta(1, json!({"toolUse": {"input": rest}})),
            event("contentBlockStop", r#"{"contentBlockIndex":1}"#),
            event("messageStop", r#"{"stopReason":"tool_use"}"#),
            event("metadata", &metadata.to_string()),
        ];
    }
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let input = |json: &str| json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": json}});
    [
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Let me look."}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1,
            "content_block": {"type": "tool_use", "id": "tooluse_1", "name": tool, "input": {}}}),
        input(begin),
        input(rest),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": usage}),
        json!({"type": "message_stop"}),
    ]
    .iter()
    .map(|event| carried(&event.to_string()))
    .collect()
}

/// Lets a response call a tool. Returns the response's status, id and text, and whether it was
/// complete. `size` is the bytes of a chunk.
async fn call(
    gateway: &mut Gateway,
    (client, model): (&str, &str),
    (approvals, tool): (&[&str], &str),
    size: usize,
) -> (u16, String, String, bool) {
    let (document, path) = match client {
        "invoke" => {
            let (mut document, _) = request("messages", model, true, ATTACK);
            let fields = document.as_object_mut().unwrap();
            fields.retain(|name, _| !matches!(name.as_str(), "model" | "stream"));
            fields.insert("anthropic_version".into(), "bedrock-2023-05-31".into());
            (document, format!("/model/{model}/invoke-with-response-stream"))
        }
        _ => (request(client, model, true, ATTACK).0, path(client, model, true)),
    };
    let (_client, answer, mut exchange) = send(gateway, (ACME, approvals), &path, &document).await;
    exchange.send(HEAD.as_bytes()).await;
    let frames = frames(&exchange.head, tool).concat();
    for piece in frames.chunks(size) {
        let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
        // The gateway may have closed the connection by then.
        exchange.try_send(&chunk).await;
    }
    exchange.try_send(b"0\r\n\r\n").await;
    let answer: Response<_> = answer.await.unwrap();
    let status = answer.status().as_u16();
    let id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    let (mut stream, mut body) = (answer.into_body(), Vec::new());
    let is_whole = loop {
        match next(&mut stream).await {
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    let text = match client {
        "invoke" if status == 200 => unframed(&body),
        _ => String::from_utf8(body).unwrap(),
    };
    (status, id, text, is_whole)
}

/// Returns the events in frames as text.
fn unframed(frames: &[u8]) -> String {
    let mut reader = proofgate_providers::FrameDecoder::new(proofgate_providers::Dialect::Invoke, 1 << 20);
    reader.push(frames);
    let mut out = Vec::new();
    while reader.next_event(&mut out).unwrap() {}
    String::from_utf8(out).unwrap()
}

/// Whether a text contains a part of the call: its id or its arguments.
fn has_call(text: &str) -> bool {
    text.contains("tooluse_1") || text.contains(ARGUMENTS)
}

#[tokio::test]
async fn nothing_of_a_guarded_call_leaves_however_its_frames_are_cut() {
    let mut gateway = gateway("Refuse").await;
    for way in WAYS {
        for size in [7, 100, 1 << 16] {
            let (status, id, text, is_whole) = call(&mut gateway, way, (&[], "Bash"), size).await;
            assert!(
                text.contains("The model calls Bash"),
                "{way:?} {size}: {status} {text}"
            );
            assert!(!has_call(&text), "{way:?} {size}: {text}");
            assert!(status == 403 || !is_whole, "{way:?} {size}: {status} {text}");
            let record = completion(&gateway, &id).await;
            assert_eq!(record["outcome"], "policy_blocked");
            assert_eq!(
                record["policy"]["guarded_call"],
                json!({"tool": "Bash", "verdict": "refused"})
            );
        }
        let (status, _, text, is_whole) = call(&mut gateway, way, (&[], "Read"), 100).await;
        assert!(status == 200 && is_whole && has_call(&text), "{way:?}: {text}");
    }
}

#[tokio::test]
async fn an_approved_call_arrives_whole_in_the_clients_dialect() {
    let mut gateway = gateway("RequireApproval").await;
    for way in WAYS {
        let (_, _, refused, _) = call(&mut gateway, way, (&[], "Bash"), 100).await;
        let rest = refused.rsplit_once("x-proofgate-approve: ").unwrap().1;
        let end = rest.find(|char: char| !char.is_ascii_hexdigit());
        let approval = &rest[..end.unwrap_or(rest.len())];
        for size in [7, 1 << 16] {
            let (status, id, text, is_whole) = call(&mut gateway, way, (&[approval], "Bash"), size).await;
            assert!(status == 200 && is_whole, "{way:?}: {status} {text}");
            assert!(has_call(&text) && text.contains("\"Bash\""), "{way:?}: {text}");
            let record = completion(&gateway, &id).await;
            assert_eq!(record["policy"]["guarded_call"]["verdict"], "approved");
        }
        let (begin, last) = approval.split_at(approval.len() - 1);
        let other = [begin, if last == "0" { "1" } else { "0" }].concat();
        let (_, id, text, _) = call(&mut gateway, way, (&[&other], "Bash"), 100).await;
        assert!(!text.contains("tooluse_1"), "{way:?}: {text}");
        let record = completion(&gateway, &id).await;
        assert_eq!(record["policy"]["guarded_call"]["verdict"], "approval_required");
    }
}
