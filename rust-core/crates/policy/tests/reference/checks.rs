//! The named checks (SEMANTICS.md, "Checks").

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

pub fn named(name: &str) -> fn(&str) -> bool {
    match name {
        "Luhn" => luhn,
        "Mod97" => mod97,
        "Ssn" => ssn,
        "Ipv4" => ipv4,
        "Phone" => phone,
        "Mrz" => mrz,
        "Entropy" => entropy,
        "Mixed" => mixed,
        "GitHub" => github,
        "Jwt" => jwt,
        "Mailbox" => mailbox,
        "Random" => random,
        other => panic!("no check {other}"),
    }
}

fn digits(text: &str) -> Vec<u32> {
    let ascii = text.chars().filter(char::is_ascii_digit);
    ascii.filter_map(|digit| digit.to_digit(10)).collect()
}

fn luhn(text: &str) -> bool {
    let mut digits = digits(text);
    let different: BTreeSet<_> = digits.iter().collect();
    let has_shape = (12..=19).contains(&digits.len()) && different.len() > 1;
    digits.reverse();
    let plain: u32 = digits.iter().step_by(2).sum();
    let doubled: u32 = digits
        .iter()
        .skip(1)
        .step_by(2)
        .map(|digit| digit * 2 / 10 + digit * 2 % 10)
        .sum();
    has_shape && (plain + doubled).is_multiple_of(10)
}

fn mod97(text: &str) -> bool {
    let symbols: Vec<char> = text.chars().filter(char::is_ascii_alphanumeric).collect();
    if !(15..=34).contains(&symbols.len()) {
        return false;
    }
    let (front, back) = symbols.split_at(4);
    let number: String = back
        .iter()
        .chain(front)
        .map(|symbol| symbol.to_digit(36).unwrap().to_string())
        .collect();
    number.chars().fold(0, |remainder, digit| {
        (remainder * 10 + digit.to_digit(10).unwrap()) % 97
    }) == 1
}

fn ssn(text: &str) -> bool {
    let written: String = digits(text).iter().map(ToString::to_string).collect();
    if written.len() != 9 {
        return false;
    }
    let (area, group, serial) = (&written[..3], &written[3..5], &written[5..]);
    area != "000" && area != "666" && !area.starts_with('9') && group != "00" && serial != "0000"
}

fn ipv4(text: &str) -> bool {
    let numbers: Option<Vec<u32>> = text
        .split('.')
        .map(|part| {
            let number: u32 = part.parse().ok()?;
            (number.to_string() == part && number <= 255).then_some(number)
        })
        .collect();
    numbers.is_some_and(|numbers| {
        numbers.len() == 4
            && numbers[3] > 0
            && (numbers.iter().max() >= Some(&100)
                || numbers.iter().filter(|number| **number >= 40).count() >= 2)
    })
}

fn phone(text: &str) -> bool {
    let number = text
        .split(|character: char| character.is_ascii_alphabetic())
        .next()
        .unwrap();
    let digits = digits(number);
    let different: BTreeSet<_> = digits.iter().collect();
    let date = Regex::new("^(?:19|20)[0-9]{2}[-./ ][0-9]{2}[-./ ][0-9]{2}(?:[^0-9]|$)").unwrap();
    let mixes = number.contains('.') && number.trim_ascii().contains(' ');
    let table = ["0000", "/-", "-/"].iter().any(|sign| number.contains(sign));
    let odd = mixes || table || date.is_match(number);
    (7..=15).contains(&digits.len()) && different.len() > 1 && !odd
}

fn mrz(text: &str) -> bool {
    let line: Vec<char> = text.chars().collect();
    [(0, 9), (13, 19), (21, 27)].iter().all(|(start, end)| {
        let weights = [7, 3, 1].iter().cycle();
        let symbols = line[*start..*end].iter();
        let sum: u32 = symbols
            .zip(weights)
            .map(|(symbol, weight)| symbol.to_digit(36).unwrap_or(0) * weight)
            .sum();
        line[*end].to_digit(10) == Some(sum % 10)
    })
}

fn entropy(text: &str) -> bool {
    let mut counts = BTreeMap::<u8, f64>::new();
    for byte in text.bytes() {
        *counts.entry(byte).or_default() += 1.0;
    }
    let total = text.len() as f64;
    let bits: f64 = counts
        .values()
        .map(|count| count / total * (total / count).log2())
        .sum();
    bits >= 3.5 - 1e-9
}

fn mixed(text: &str) -> bool {
    text.chars().any(|symbol| symbol.is_ascii_alphabetic()) && !digits(text).is_empty()
}

fn github(text: &str) -> bool {
    let alphabet: Vec<char> = ('0'..='9').chain('A'..='Z').chain('a'..='z').collect();
    let token = text.split_once('_').map_or(text, |(_, token)| token);
    if token.len() != 36 {
        return entropy(text);
    }
    let value = |digit: char| alphabet.iter().position(|known| *known == digit);
    let number = token[30..]
        .chars()
        .try_fold(0, |number, digit| Some(number * 62 + value(digit)? as u64));
    number == Some(remainder(&token.as_bytes()[..30]))
}

/// CRC-32 by definition: the remainder of a polynomial division, with bits in transmission order.
fn remainder(bytes: &[u8]) -> u64 {
    let bits = bytes
        .iter()
        .flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
    let remainder = bits.fold(0xffff_ffff_u32, |register, bit| {
        let carry = (register >> 31) as u8 ^ bit;
        (register << 1) ^ if carry == 1 { 0x04c1_1db7 } else { 0 }
    });
    u64::from(!remainder.reverse_bits())
}

fn jwt(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let header = super::derived::base64(parts[0]);
    let named = regex::bytes::Regex::new(r#"(?s-u)\A\{.*"alg"[ \t\n\r]*:.*\}\z"#).unwrap();
    let is_signed = parts.len() == 3 && !parts[2].is_empty();
    let is_long = (2..=3).contains(&parts.len()) && parts[1].len() >= 204;
    (is_signed || is_long) && named.is_match(&header)
}

fn mailbox(text: &str) -> bool {
    text.chars().all(|character| character != ':')
}

fn random(text: &str) -> bool {
    let source = include_str!("../../src/letter_pairs.toml");
    let common: BTreeMap<String, String> = toml::from_str(source).unwrap();
    let lower = text.to_ascii_lowercase();
    let is_hex = lower
        .chars()
        .all(|character| character.is_ascii_hexdigit() || character == '-')
        && lower.chars().filter(char::is_ascii_hexdigit).count() >= 32
        && lower.contains(|character: char| character.is_ascii_digit())
        && lower.contains(|character: char| character.is_ascii_alphabetic());
    let sign = |byte: u8| !byte.is_ascii_alphanumeric() && !b"_-./:, ".contains(&byte);
    let weight = |pair: &[u8]| match (pair[0], pair[1]) {
        (first @ b'a'..=b'z', second @ b'a'..=b'z') => {
            let row = &common[&char::from(first).to_string()];
            if row.contains(char::from(second)) { -4 } else { 9 }
        }
        (b'a'..=b'z', b'0'..=b'9') | (b'0'..=b'9', b'a'..=b'z') => 7,
        (first, second) if sign(first) != sign(second) => 4,
        _ => 0,
    };
    let different: BTreeSet<u8> = lower.bytes().collect();
    let escapes = Regex::new("%[0-9a-f]{2}").unwrap();
    let sum: i32 = escapes
        .replace_all(&lower, "%")
        .as_bytes()
        .windows(2)
        .map(weight)
        .sum();
    !text.contains("...") && different.len() >= 6 && (is_hex || sum >= 16)
}
