//! Signatures match the signatures of Amazon's test suite, of botocore and of OpenAI's client.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use proofgate_providers::sigv4::{Credentials, RequestHead, SigningKey, canonical_request, encode_segment};
use sha2::{Digest, Sha256};

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const KEY: Credentials<'_> = Credentials {
    access_key_id: "AKIDEXAMPLE",
    secret_access_key: SECRET,
    session_token: None,
};
const SUITE_TIME: u64 = 1_440_938_160; // 2015-08-30T12:36:00Z
const NOON: u64 = 1_795_176_000; // 2026-11-20T12:00:00Z

/// A request of the suite: its method, path, query, headers and body.
struct Case {
    method: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
    body: String,
    folder: PathBuf,
}

impl Case {
    fn read(folder: &Path) -> Self {
        let file = format!("{}.req", folder.file_name().unwrap().to_str().unwrap());
        let text = fs::read_to_string(folder.join(file)).unwrap();
        let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
        let mut lines = head.lines();
        let line = lines.next().unwrap().strip_suffix(" HTTP/1.1").unwrap();
        let (method, target) = line.split_once(' ').unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut headers: Vec<(String, String)> = Vec::new();
        for line in lines {
            match line.strip_prefix(' ') {
                Some(folded) => headers.last_mut().unwrap().1 += &format!("\n{folded}"),
                None => {
                    let (name, value) = line.split_once(':').unwrap();
                    headers.push((name.to_owned(), value.to_owned()));
                }
            }
        }
        Case {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers,
            body: body.to_owned(),
            folder: folder.to_owned(),
        }
    }

    fn expected(&self, extension: &str) -> String {
        let name = self.folder.file_name().unwrap().to_str().unwrap();
        fs::read_to_string(self.folder.join(format!("{name}.{extension}")))
            .unwrap()
            .replace('\r', "")
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut values = self
            .headers
            .iter()
            .filter(|(other, _)| other.eq_ignore_ascii_case(name));
        values.next().map(|(_, value)| value.as_str())
    }
}

fn suite() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/aws4_testsuite");
    let mut folders: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders.iter().map(|folder| Case::read(folder)).collect()
}

#[test]
fn every_case_of_amazons_suite_is_signed_as_it_says() {
    let cases = suite();
    assert_eq!(cases.len(), 34);
    for case in cases {
        let canonical = case.expected("creq");
        // The suite has the token only in the expected results.
        let token = canonical
            .lines()
            .find_map(|line| line.strip_prefix("x-amz-security-token:"));
        let credentials = Credentials {
            session_token: token,
            ..KEY
        };
        let headers: Vec<(&str, &str)> = case
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let request = RequestHead {
            method: &case.method,
            path: &case.path,
            query: &case.query,
            host: case.header("host").unwrap(),
            headers: &headers,
            body_sha256: &Sha256::digest(&case.body).into(),
            with_body_hash: false,
        };
        let signature = SigningKey::derive(SECRET, SUITE_TIME, "us-east-1", "service").sign(
            &request,
            &credentials,
            SUITE_TIME,
        );
        let body_hash = canonical.lines().last().unwrap();
        let (written, _) = canonical_request(&request, &credentials, &signature.date, body_hash);
        let name = case.folder.display();
        assert_eq!(written, canonical.trim_end(), "{name}");
        assert_eq!(signature.date, "20150830T123600Z", "{name}");
        assert_eq!(
            signature.authorization,
            case.expected("authz").trim_end(),
            "{name}"
        );
    }
}

const BODY: &str = r#"{"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}"#;

fn converse<'r>(path: &'r str, headers: &'r [(&'r str, &'r str)], body: &'r [u8; 32]) -> RequestHead<'r> {
    RequestHead {
        method: "POST",
        path,
        query: "",
        host: "bedrock-runtime.us-east-1.amazonaws.com",
        headers,
        body_sha256: body,
        with_body_hash: false,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Matches the signature of botocore 1.44.5.
#[test]
fn a_request_to_converse_is_signed_as_by_botocore() {
    let mut path = "/model/".to_owned();
    encode_segment(&mut path, "us.anthropic.claude-sonnet-4-5-20250929-v1:0");
    path += "/converse";
    assert_eq!(
        path,
        "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse"
    );
    let credentials = Credentials {
        session_token: Some("TOKENEXAMPLE"),
        ..KEY
    };
    let headers = [("Content-Type", "application/json")];
    let body = Sha256::digest(BODY).into();
    let request = converse(&path, &headers, &body);
    let key = SigningKey::derive(SECRET, NOON, "us-east-1", "bedrock");
    let signature = key.sign(&request, &credentials, NOON);
    assert_eq!(signature.date, "20261120T120000Z");
    let (canonical, _) = canonical_request(&request, &credentials, &signature.date, &hex(&body));
    assert!(canonical.starts_with(
        "POST\n/model/us.anthropic.claude-sonnet-4-5-20250929-v1%253A0/converse\n\ncontent-type:"
    ));
    assert_eq!(
        hex(&Sha256::digest(canonical)),
        "2a0f4b39d405dc063ed9bb80bb2ac9f3c5f590c196b6d8d70ab44f3a203fe19e"
    );
    assert_eq!(
        signature.authorization,
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261120/us-east-1/bedrock/aws4_request, \
         SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, \
         Signature=bf25b740e0dca8ac87e3ee3d7d43678db82515d1bd4a7dee112f1fab8c5203bd"
    );
    assert_eq!(signature.content_sha256, None);
}

/// Matches openai 3.54.0: tests/fixtures/bedrock/v1/sigv4.json of its sdist (Apache-2.0).
#[test]
fn a_request_to_mantle_has_its_bodys_hash_signed_too() {
    let at = 1_735_787_045;
    let request = RequestHead {
        method: "POST",
        path: "/openai/v1/responses",
        query: "",
        host: "bedrock-mantle.us-east-1.api.aws",
        headers: &[("content-type", "application/json")],
        body_sha256: &Sha256::digest(r#"{"model":"gpt-4o","input":"hello"}"#).into(),
        with_body_hash: true,
    };
    let credentials = Credentials {
        session_token: Some("fixture-session-token"),
        ..KEY
    };
    let key = SigningKey::derive(SECRET, at, "us-east-1", "bedrock-mantle");
    let signature = key.sign(&request, &credentials, at);
    assert_eq!(signature.date, "20250102T030405Z");
    assert_eq!(
        signature.content_sha256.as_deref(),
        Some("50329e51ad520f21b77bad0b01999930ff556cd1bf18434701251ba6c9f877bc")
    );
    assert_eq!(
        signature.authorization,
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20250102/us-east-1/bedrock-mantle/aws4_request, SignedHeaders=\
         content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token, \
         Signature=dc20c8fbe516daf0ccae7e5b7a78fc2936870413a9f1af6e1b2d44b970ce411f"
    );
}

fn signed(path: &str, headers: &[(&str, &str)]) -> (String, String) {
    let request = converse(path, headers, &[0; 32]);
    canonical_request(&request, &KEY, "20261120T120000Z", "hash")
}

// envoyproxy/ai-gateway PR#1332, vercel/ai#14117: the signature matches the path sent, whether its ARN is encoded or
// not.
#[test]
fn the_arn_of_an_inference_profile_is_signed_as_it_stands_in_the_path() {
    let arn = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc";
    let mut encoded = "/model/".to_owned();
    encode_segment(&mut encoded, arn);
    assert!(encoded.ends_with("%3A123456789012%3Aapplication-inference-profile%2Fabc"));
    let (canonical, _) = signed(&format!("{encoded}/converse"), &[]);
    assert!(canonical.contains("%253A123456789012%253Aapplication-inference-profile%252Fabc/converse\n"));
    let (canonical, _) = signed(&format!("/model/{arn}/converse"), &[]);
    assert!(canonical.contains("%3A123456789012%3Aapplication-inference-profile/abc/converse\n"));
}

#[test]
fn headers_that_proxies_change_are_not_signed() {
    let (_, names) = signed(
        "/",
        &[
            ("Connection", "close"),
            ("User-Agent", "a"),
            ("Expect", "100-continue"),
            ("traceparent", "b"),
            ("tracestate", "c"),
            ("baggage", "d"),
            ("amz-sdk-invocation-id", "e"),
            ("transfer-encoding", "chunked"),
            ("X-Amz-Date", "of someone else"),
            ("Accept", "application/json"),
        ],
    );
    assert_eq!(names, "accept;host;x-amz-date");
}

#[test]
fn the_default_port_is_not_part_of_the_host() {
    let mut request = converse("/", &[], &[0; 32]);
    request.host = "localhost:443";
    let (canonical, _) = canonical_request(&request, &KEY, "date", "hash");
    assert!(canonical.contains("\nhost:localhost\n"));
    request.host = "localhost:4430";
    let (canonical, _) = canonical_request(&request, &KEY, "date", "hash");
    assert!(canonical.contains("\nhost:localhost:4430\n"));
}

#[test]
fn a_key_is_good_for_its_day_region_and_service_only() {
    let key = SigningKey::derive(SECRET, NOON, "us-east-1", "bedrock");
    let midnight = NOON + 12 * 3600;
    assert!(key.is_valid_for(NOON - 12 * 3600, "us-east-1", "bedrock"));
    assert!(key.is_valid_for(midnight - 1, "us-east-1", "bedrock"));
    assert!(!key.is_valid_for(midnight, "us-east-1", "bedrock"));
    assert!(!key.is_valid_for(NOON, "us-west-2", "bedrock"));
    assert!(!key.is_valid_for(NOON, "us-east-1", "bedrock-mantle"));
}

#[test]
fn every_time_has_a_date() {
    let date = |at| {
        let key = SigningKey::derive(SECRET, at, "us-east-1", "bedrock");
        key.sign(&converse("/", &[], &[0; 32]), &KEY, at).date
    };
    assert_eq!(date(0), "19700101T000000Z");
    assert_eq!(date(951_827_696), "20000229T123456Z");
    assert_eq!(date(1_709_251_199), "20240229T235959Z");
    assert_eq!(date(4_107_542_400), "21000301T000000Z");
    assert_eq!(date(u64::MAX), "99991231T235959Z");
}

#[test]
fn a_secret_longer_than_a_block_makes_a_key_too() {
    let long = "s".repeat(100);
    let sign = |secret: &str| {
        let key = SigningKey::derive(secret, NOON, "us-east-1", "bedrock");
        key.sign(&converse("/", &[], &[0; 32]), &KEY, NOON).authorization
    };
    // The expected value was computed with Python's hmac.
    assert!(
        sign(&long).ends_with("Signature=a142d7ded3bf2fa56b509cb9be9ed6d06afc583c3374b3d8d3a5d860d903a259")
    );
}
