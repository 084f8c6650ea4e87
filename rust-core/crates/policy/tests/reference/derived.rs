//! Encoded texts within a text (SEMANTICS.md, "Derived texts").

use std::sync::LazyLock;

use regex::{Captures, Regex, bytes};

const TOKEN: usize = 4096;

fn pattern(regex: &'static str) -> Regex {
    Regex::new(regex).unwrap()
}

/// A text that was decoded from a part of a text.
pub struct Derived {
    pub text: String,
    pub start: usize,
    pub end: usize,
    /// The position of the first escape in the part; 0 in a run.
    pub plain: usize,
}

/// Returns every decoding of a part of a text.
pub fn derived(text: &str) -> Vec<Derived> {
    static TOKENS: LazyLock<Regex> = LazyLock::new(|| pattern(r"[A-Za-z0-9+/_.~%\\-]+"));
    static RUNS: LazyLock<Regex> = LazyLock::new(|| pattern("[A-Za-z0-9+/_-]+"));
    let mut found = Vec::new();
    for token in TOKENS.find_iter(text) {
        for start in token.range().step_by(TOKEN) {
            let part = &text[start..token.end().min(start + TOKEN)];
            let whole = [percent(part), escapes(part)];
            let runs = RUNS
                .find_iter(part)
                .map(|run| (decoded_run(run.as_str()).map(|decoded| (decoded, 0)), run.range()));
            let all = runs.chain(whole.map(|decoded| (decoded, 0..part.len())));
            found.extend(all.filter_map(|(decoded, span)| {
                let (decoded, plain) = decoded?;
                let text = String::from_utf8(decoded)
                    .ok()
                    .filter(|text| is_printable(text))?;
                Some(Derived {
                    text,
                    start: start + span.start,
                    end: start + span.end,
                    plain,
                })
            }));
        }
    }
    found
}

fn is_printable(text: &str) -> bool {
    let is_bad = |character: &char| match character {
        '\t' | '\n' | '\r' => false,
        '\0'..'\u{20}' | '\u{7f}'..='\u{9f}' | '\u{fffd}' => true,
        _ => false,
    };
    let bad = text.chars().filter(is_bad).count();
    !text.is_empty() && bad * 10 <= text.chars().count()
}

fn decoded_run(run: &str) -> Option<Vec<u8>> {
    let digits = run
        .strip_prefix("0x")
        .or_else(|| run.strip_prefix("0X"))
        .unwrap_or(run);
    if digits.len() >= 32 && digits.chars().all(|digit| digit.is_ascii_hexdigit()) {
        let pairs = digits.as_bytes().chunks_exact(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        return Some(pairs.map(byte).collect());
    }
    (run.len() >= 24).then(|| base64(run))
}

pub fn base64(run: &str) -> Vec<u8> {
    let alphabet: Vec<char> = ('A'..='Z')
        .chain('a'..='z')
        .chain('0'..='9')
        .chain(['+', '/'])
        .collect();
    let mut bits = Vec::new();
    for character in run.replace('-', "+").replace('_', "/").chars() {
        let value = alphabet.iter().position(|known| *known == character).unwrap();
        bits.extend((0..6).rev().map(|bit| value >> bit & 1 == 1));
    }
    let bytes = bits.chunks_exact(8);
    bytes
        .map(|byte| byte.iter().fold(0, |value, bit| value << 1 | u8::from(*bit)))
        .collect()
}

fn percent(token: &str) -> Option<(Vec<u8>, usize)> {
    static ESCAPE: LazyLock<bytes::Regex> = LazyLock::new(|| bytes::Regex::new("%[0-9A-Fa-f]{2}").unwrap());
    let spaced = token.replace('+', " ");
    let decode = |escape: &bytes::Captures<'_>| {
        let digits = std::str::from_utf8(&escape[0][1..]).unwrap();
        vec![u8::from_str_radix(digits, 16).unwrap()]
    };
    let count = ESCAPE.find_iter(token.as_bytes()).count();
    let first = ESCAPE.find(token.as_bytes())?.start();
    (count >= 3).then(|| (ESCAPE.replace_all(spaced.as_bytes(), decode).into_owned(), first))
}

fn escapes(token: &str) -> Option<(Vec<u8>, usize)> {
    static ESCAPE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"\\+(?:u([Dd][89ABab][0-9A-Fa-f]{2})\\+u([Dd][C-Fc-f][0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))",
        )
    });
    let number = |group: regex::Match<'_>| u32::from_str_radix(group.as_str(), 16).unwrap();
    let decode = |escape: &Captures<'_>| {
        let number = match (escape.get(1), escape.get(2)) {
            (Some(high), Some(low)) => 0x1_0000 + ((number(high) & 0x3ff) << 10) + (number(low) & 0x3ff),
            _ => number(escape.get(3).or(escape.get(4)).unwrap()),
        };
        char::from_u32(number).unwrap_or('\u{fffd}').to_string()
    };
    let weight = |escape: Captures<'_>| if escape.get(1).is_some() { 2 } else { 1 };
    let count: usize = ESCAPE.captures_iter(token).map(weight).sum();
    let first = ESCAPE.find(token)?.start();
    (count >= 3).then(|| (ESCAPE.replace_all(token, decode).into_owned().into_bytes(), first))
}
