//! The questions, run natively on a small log and receipt: what is accepted, and what is refused.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first failure")]

use base64::{Engine, engine::general_purpose::STANDARD};
use proofgate_browser::queries::{self, Arguments, QueryHandler};
use proofgate_ledger::commitment::commit;
use proofgate_ledger::{
    Checkpoint, Hash, Mmr, SigningKey, TlogProof, consistency_proof, inclusion_proof, leaf_hash,
};
use serde_json::{Value, json};

const LEDGER: &str = "ledger.example/llm";
const LOG: &str = "ledger.example/llm/0/01M89PCZT1JE2K4A4FYY15YK69";
const ID: &str = "req_1";
const SALT: [u8; 32] = [7; 32];

fn key(name: &str, seed: u8) -> SigningKey {
    SigningKey::generate(name, [seed; 32]).unwrap()
}

fn vkey(key: &SigningKey) -> String {
    key.verifying_key().to_text()
}

struct Tree {
    origin: String,
    leaves: Vec<Vec<u8>>,
}

impl Tree {
    fn nodes(&self, size: usize) -> (Vec<Hash>, Mmr) {
        let (mut range, mut nodes) = (Mmr::new(), Vec::new());
        for leaf in &self.leaves[..size] {
            range.push(leaf_hash(leaf), &mut |node| nodes.push(node));
        }
        (nodes, range)
    }

    fn note(&self, size: usize, key: &SigningKey) -> String {
        let checkpoint = Checkpoint {
            origin: self.origin.clone(),
            size: size as u64,
            root: self.nodes(size).1.root(),
        };
        checkpoint.sign(key).unwrap()
    }

    fn proof(&self, index: u64, size: usize, key: &SigningKey, salt: bool) -> String {
        let hashes = inclusion_proof(&self.nodes(size).0, index, size as u64).unwrap();
        let mut proof = TlogProof {
            extra: None,
            index,
            hashes,
            checkpoint: self.note(size, key),
        };
        if salt {
            proof.set_salt(&SALT);
        }
        proof.encode()
    }

    fn consistency(&self, old: u64, new: u64) -> Vec<String> {
        let hashes = consistency_proof(&self.nodes(new as usize).0, old, new).unwrap();
        hashes.iter().map(|hash| STANDARD.encode(hash)).collect()
    }
}

/// Returns the answer, or the code of the refusal.
fn ask(question: QueryHandler, arguments: &[&str]) -> Result<Value, &'static str> {
    let arguments: Vec<_> = arguments
        .iter()
        .map(|text| Some(text.as_bytes().to_vec()))
        .collect();
    question(&arguments).map_err(|refusal| refusal.code)
}

fn heads(count: u64, signer: &SigningKey) -> Tree {
    let leaves = (1..=count).map(|size| {
        let origin = format!("{}/0/01M89PCZT1JE2K4A4FYY15YK69", signer.name());
        let root = [size as u8; 32];
        let head = Checkpoint {
            origin: origin.clone(),
            size,
            root,
        };
        let note = head.sign(signer).unwrap();
        json!({"v": 1, "kind": "head", "time": 1, "origin": origin, "size": size, "predecessor": null, "checkpoint": note})
            .to_string()
            .into_bytes()
    });
    Tree {
        origin: "audit.example/llm".to_owned(),
        leaves: leaves.collect(),
    }
}

#[test]
fn every_entry_of_every_size_is_shown_and_its_path_ends_at_the_root() {
    let (signer, auditor) = (key(LEDGER, 1), key("audit.example/llm", 2));
    for size in 1..=17 {
        let tree = heads(size, &signer);
        for index in 0..size {
            let entry = std::str::from_utf8(&tree.leaves[index as usize]).unwrap();
            let proof = tree.proof(index, size as usize, &auditor, false);
            let answer = ask(queries::entry, &[entry, &proof, &vkey(&auditor), &vkey(&signer)]).unwrap();
            assert_eq!(answer["ok"], true, "{answer}");
            assert_eq!(answer["computed"], answer["checkpoint"]["root"]);
        }
    }
}

#[test]
fn an_entry_of_which_one_thing_is_changed_is_refuted_at_the_step_that_it_concerns() {
    let (signer, auditor) = (key(LEDGER, 1), key("audit.example/llm", 2));
    let tree = heads(6, &signer);
    let entry = String::from_utf8(tree.leaves[2].clone()).unwrap();
    let proof = tree.proof(2, 6, &auditor, false);
    let (public, ledger) = (vkey(&auditor), vkey(&signer));
    let stranger = vkey(&key("audit.example/llm", 3));
    let other_ledger = vkey(&key(LEDGER, 4));
    let failed = |entry: &str, proof: &str, public: &str, ledger: &str| -> Vec<String> {
        let answer = ask(queries::entry, &[entry, proof, public, ledger]).unwrap();
        let steps = answer["steps"].as_array().unwrap().iter();
        let failed = steps.filter(|step| step["outcome"] == "refuted");
        failed
            .map(|step| step["step"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(failed(&entry, &proof, &public, &ledger).is_empty());
    let changed = entry.replace("\"kind\":\"head\"", "\"kind\":\"open\"");
    assert_eq!(failed(&changed, &proof, &public, &ledger), ["inclusion"]);
    let moved = proof.replace("index 2", "index 3");
    assert_eq!(failed(&entry, &moved, &public, &ledger), ["inclusion"]);
    assert_eq!(failed(&entry, &proof, &stranger, &ledger), ["signature"]);
    assert_eq!(failed(&entry, &proof, &public, &other_ledger), ["head"]);
    let another = entry.replace("\"size\":3", "\"size\":4");
    assert_eq!(failed(&another, &proof, &public, &ledger), ["inclusion", "entry"]);
}

#[test]
fn two_checkpoints_are_one_history_or_the_answer_says_what_is_wrong() {
    let auditor = key("audit.example/llm", 2);
    let (tree, other) = (heads(9, &key(LEDGER, 1)), heads(9, &key(LEDGER, 5)));
    let public = vkey(&auditor);
    let between = |older: &str, newer: &str, hashes: &Vec<String>| {
        let hashes = json!(hashes).to_string();
        ask(queries::consistency, &[older, newer, &public, &hashes]).map(|answer| answer["ok"] == true)
    };
    for old in 1..9 {
        let hashes = tree.consistency(old, 9);
        let (older, newer) = (tree.note(old as usize, &auditor), tree.note(9, &auditor));
        assert_eq!(between(&older, &newer, &hashes), Ok(true));
        let forked = other.note(old as usize, &auditor);
        assert_eq!(between(&forked, &newer, &hashes), Err("root_mismatch"));
        assert!(between(&newer, &older, &hashes).is_err());
    }
    let nothing = Vec::new();
    assert_eq!(
        between(&tree.note(0, &auditor), &tree.note(9, &auditor), &nothing),
        Ok(true)
    );
    assert_eq!(
        between(&tree.note(9, &auditor), &other.note(9, &auditor), &nothing),
        Err("equivocation")
    );
    let stranger = tree.note(9, &key("audit.example/llm", 3));
    assert_eq!(
        between(&tree.note(8, &auditor), &stranger, &nothing),
        Err("unsigned")
    );
    let below = Tree {
        origin: "audit.example/llm/below".to_owned(),
        leaves: tree.leaves,
    };
    assert_eq!(
        between(&below.note(8, &auditor), &below.note(9, &auditor), &nothing),
        Err("other_origin")
    );
}

fn log() -> Tree {
    let admission = json!({
        "v": 1, "kind": "admission", "seq": 1, "ts": 1, "id": ID, "tenant": "acme", "tenant_seq": 1, "key": "01234567",
        "model": "m", "provider": "p", "upstream_model": "m", "endpoint": "/v1/chat/completions", "stream": false,
        "bytes": 7, "request": STANDARD.encode(commit(&SALT, "request", b"request")), "reserved": null,
        "config": "0123456789abcdef",
    });
    let aborted = json!({
        "v": 1, "kind": "aborted", "seq": 2, "ts": 2, "id": ID, "incarnation": "01M89PCZT1JE2K4A4FYY15YK69",
        "admission": 1, "config": "0123456789abcdef",
    });
    let leaves = [json!({"v": 1}), admission, aborted, json!({"v": 2})];
    Tree {
        origin: LOG.to_owned(),
        leaves: leaves.iter().map(|leaf| leaf.to_string().into_bytes()).collect(),
    }
}

/// Returns a receipt whose two records are under checkpoints of 3 and 4 records.
fn receipt(tree: &Tree, key: &SigningKey) -> Value {
    let record = |index: usize, size: usize| {
        json!({
            "kind": "unread", "record": String::from_utf8(tree.leaves[index].clone()).unwrap(),
            "proof": tree.proof(index as u64, size, key, true),
        })
    };
    json!({
        "object": "receipt", "id": ID, "complete": true, "vkey_hint": "unread", "records": [record(1, 3), record(2, 4)],
        "consistency": [{"origin": LOG, "old": 3, "new": 4, "hashes": tree.consistency(3, 4)}],
    })
}

/// Returns the steps that failed.
fn refuted(receipt: &Value, key: &SigningKey, request: Option<&[u8]>) -> Vec<String> {
    let arguments: &Arguments = &[
        Some(receipt.to_string().into_bytes()),
        Some(vkey(key).into_bytes()),
        request.map(<[u8]>::to_vec),
        None,
    ];
    let answer = queries::receipt(arguments).unwrap();
    let steps = answer["steps"].as_array().unwrap().iter();
    let failed: Vec<String> = steps
        .filter(|step| step["outcome"] == "refuted")
        .map(|step| step["step"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(answer["ok"] == true, failed.is_empty());
    failed
}

#[test]
fn a_receipt_is_shown_with_its_request_and_refuted_with_any_other() {
    let (tree, signer) = (log(), key(LEDGER, 1));
    let whole = receipt(&tree, &signer);
    assert!(refuted(&whole, &signer, None).is_empty());
    assert!(refuted(&whole, &signer, Some(b"request")).is_empty());
    assert_eq!(refuted(&whole, &signer, Some(b"another")), ["request"]);
    let strangers = refuted(&whole, &key(LEDGER, 9), None);
    assert_eq!(strangers, ["signature", "signature", "end"]);
}

#[test]
fn a_receipt_of_which_one_thing_is_changed_is_refuted() {
    let (tree, signer) = (log(), key(LEDGER, 1));
    let whole = receipt(&tree, &signer);
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut receipt = whole.clone();
        change(&mut receipt);
        refuted(&receipt, &signer, None)
    };
    assert_eq!(
        changed(&|receipt| receipt["id"] = json!("req_2")),
        ["record", "record", "end"]
    );
    assert_eq!(
        changed(&|receipt| receipt["records"][1] = receipt["records"][0].clone()),
        ["exchange", "end"]
    );
    assert_eq!(
        changed(&|receipt| {
            let end = receipt["records"][1].clone();
            receipt["records"].as_array_mut().unwrap().push(end);
        }),
        ["exchange"]
    );
    assert_eq!(
        changed(&|receipt| receipt["consistency"] = json!([])),
        ["history"]
    );
    let text =
        |receipt: &Value, at: usize, field: &str| receipt["records"][at][field].as_str().unwrap().to_owned();
    assert_eq!(
        changed(&|receipt| {
            let record = text(receipt, 0, "record").replace("acme", "else");
            receipt["records"][0]["record"] = json!(record);
        }),
        ["inclusion"]
    );
    assert_eq!(
        changed(&|receipt| {
            let proof = text(receipt, 0, "proof").replace("\n3\n", "\n4\n");
            receipt["records"][0]["proof"] = json!(proof);
        }),
        ["signature"]
    );
    assert_eq!(
        changed(&|receipt| receipt["records"][0]["proof"] = json!("no proof")),
        ["proof"]
    );
    // The end of another admission.
    let mut other = log();
    let record = String::from_utf8(other.leaves[2].clone()).unwrap();
    other.leaves[2] = record.replace("\"admission\":1", "\"admission\":0").into_bytes();
    assert_eq!(refuted(&receipt(&other, &signer), &signer, None), ["exchange"]);
}

#[test]
fn an_attempt_that_was_left_out_of_a_receipt_is_reported() {
    let (mut tree, signer) = (log(), key(LEDGER, 1));
    let attempt = json!({
        "v": 1, "kind": "attempt", "seq": 2, "ts": 2, "id": ID, "admission": 1, "attempt": 2, "provider": "q",
        "upstream_model": "m", "failure": "upstream_status", "failed_status": 503, "failed_sent": "no",
        "config": "0123456789abcdef",
    });
    let end = json!({
        "v": 1, "kind": "completion", "seq": 3, "ts": 3, "id": ID, "admission": 1, "status": 200,
        "upstream_status": 200, "attempts": 2, "outcome": "complete", "bytes": 2,
        "response": STANDARD.encode(commit(&SALT, "response", b"hi")), "usage": null, "charged": null,
        "duration_us": 1, "config": "0123456789abcdef",
    });
    tree.leaves.truncate(2);
    tree.leaves
        .extend([attempt, end].map(|leaf| leaf.to_string().into_bytes()));
    let missing = |shown: &[usize]| {
        let records: Vec<Value> = shown
            .iter()
            .map(|index| {
                json!({
                    "record": String::from_utf8(tree.leaves[*index].clone()).unwrap(),
                    "proof": tree.proof(*index as u64, 4, &signer, true),
                })
            })
            .collect();
        let receipt = json!({"id": ID, "complete": true, "records": records, "consistency": []});
        let arguments: &Arguments = &[
            Some(receipt.to_string().into_bytes()),
            Some(vkey(&signer).into_bytes()),
            None,
            None,
        ];
        let answer = queries::receipt(arguments).unwrap();
        assert_eq!(answer["ok"], true, "{answer}");
        let steps = answer["steps"].as_array().unwrap().iter();
        let of_attempts = steps.filter(|step| step["step"] == "attempts");
        of_attempts
            .map(|step| step["text"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert!(missing(&[1, 2, 3]).is_empty());
    assert_eq!(
        missing(&[1, 3]),
        ["the receipt does not contain the records of 1 of 2 attempts"]
    );
}

#[test]
fn what_is_no_receipt_key_or_text_is_refused_with_a_code() {
    let public = vkey(&key(LEDGER, 1));
    let receipt = |text: &str, key: &str| {
        let arguments: &Arguments = &[Some(text.into()), Some(key.into()), None, None];
        queries::receipt(arguments).map_err(|refusal| refusal.code)
    };
    let empty = r#"{"id":"a","complete":true,"records":[],"consistency":[]}"#;
    let twice = r#"{"id":"a","id":"b","complete":true,"records":[],"consistency":[]}"#;
    for text in ["", "[]", "{}", empty, twice] {
        assert_eq!(receipt(text, &public), Err("receipt"), "{text}");
    }
    let (tree, signer) = (log(), key(LEDGER, 1));
    assert_eq!(
        receipt(&self::receipt(&tree, &signer).to_string(), "no key"),
        Err("key")
    );
    assert_eq!(ask(queries::checkpoint, &["one"]), Err("arguments"));
    let wrong: &Arguments = &[Some(vec![0xff]), Some(public.clone().into_bytes())];
    assert_eq!(
        queries::checkpoint(wrong).map_err(|refusal| refusal.code),
        Err("arguments")
    );
    assert_eq!(ask(queries::checkpoint, &["no note", &public]), Err("note"));
    let note = tree.note(3, &signer);
    assert_eq!(ask(queries::checkpoint, &[&note, &public]).unwrap()["size"], "3");
    assert_eq!(
        ask(queries::record_proof, &["", "no proof", &public]),
        Err("proof")
    );
}
