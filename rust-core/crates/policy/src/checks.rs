//! Named checks on a matched text, for conditions that a regex cannot express.

use crate::decode;
use crate::random::is_random;

/// Returns whether a matched text is a value that its rule looks for.
pub(crate) type Check = fn(&[u8]) -> bool;

/// The checks that a rule can name.
const CHECKS: &[(&str, Check)] = &[
    ("Luhn", luhn),
    ("Mod97", mod97),
    ("Ssn", ssn),
    ("Ipv4", ipv4),
    ("Phone", phone),
    ("Mrz", mrz),
    ("Entropy", high_entropy),
    ("Mixed", letter_and_digit),
    ("GitHub", github_token),
    ("Jwt", jwt),
    ("Mailbox", mailbox),
    ("Random", is_random),
];

#[cfg(feature = "testing")]
const TEST_CHECKS: &[(&str, Check)] = &[
    ("panic-for-tests", panic_for_tests),
    ("spin-for-tests", spin_for_tests),
];
#[cfg(not(feature = "testing"))]
const TEST_CHECKS: &[(&str, Check)] = &[];

pub(crate) fn by_name(name: &str) -> Option<Check> {
    CHECKS
        .iter()
        .chain(TEST_CHECKS)
        .find(|(known, _)| *known == name)
        .map(|(_, check)| *check)
}

/// Returns the names of all checks, separated by commas.
pub(crate) fn names() -> String {
    CHECKS
        .iter()
        .map(|(name, _)| *name)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The ASCII digits of `text` as numbers, if there are at most `N`.
struct Digits<const N: usize> {
    values: [u8; N],
    count: usize,
}

impl<const N: usize> Digits<N> {
    fn parse(text: &[u8]) -> Option<Self> {
        let mut digits = Self {
            values: [0; N],
            count: 0,
        };
        for byte in text.iter().filter(|byte| byte.is_ascii_digit()) {
            *digits.values.get_mut(digits.count)? = byte - b'0';
            digits.count += 1;
        }
        Some(digits)
    }

    fn as_slice(&self) -> &[u8] {
        &self.values[..self.count]
    }
}

/// Whether `text` has 12 to 19 digits, not all the same, with a valid Luhn check digit (ISO/IEC
/// 7812-1 annex B).
fn luhn(text: &[u8]) -> bool {
    let Some(digits) = Digits::<19>::parse(text) else {
        return false;
    };
    let digits = digits.as_slice();
    if digits.len() < 12 || digits.iter().all(|digit| *digit == digits[0]) {
        return false;
    }
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match (place % 2, u32::from(*digit)) {
            (0, digit) => digit,
            (_, digit) if digit > 4 => digit * 2 - 9,
            (_, digit) => digit * 2,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Whether the 15 to 34 letters and digits of `text` are an IBAN (ISO 13616) with a correct
/// checksum (ISO 7064).
fn mod97(text: &[u8]) -> bool {
    let letters = || text.iter().filter(|byte| byte.is_ascii_alphanumeric());
    let count = letters().count();
    if !(15..=34).contains(&count) {
        return false;
    }
    let remainder = letters()
        .cycle()
        .skip(4)
        .take(count)
        .fold(0_u32, |remainder, byte| match byte {
            b'0'..=b'9' => (remainder * 10 + u32::from(byte - b'0')) % 97,
            letter => (remainder * 100 + u32::from(letter.to_ascii_lowercase() - b'a') + 10) % 97,
        });
    remainder == 1
}

/// Whether `text` is a United States social security number that can have been issued.
fn ssn(text: &[u8]) -> bool {
    let Some(digits) = Digits::<9>::parse(text) else {
        return false;
    };
    let &[a, b, c, d, e, f, g, h, i] = digits.as_slice() else {
        return false;
    };
    let area = [a, b, c];
    area != [0, 0, 0] && area != [6, 6, 6] && a != 9 && [d, e] != [0, 0] && [f, g, h, i] != [0, 0, 0, 0]
}

/// Whether `text` is the IPv4 address of a host, not a version number: four numbers of at most 255
/// without leading zeros; the last one is not 0, and at least one is 100 or more, or at least two
/// are 40 or more.
fn ipv4(text: &[u8]) -> bool {
    let mut numbers = [0; 4];
    let mut parts = text.split(|byte| *byte == b'.');
    for number in &mut numbers {
        let Some(part) = parts.next().and_then(octet) else {
            return false;
        };
        *number = part;
    }
    let is_large =
        numbers.iter().any(|part| *part >= 100) || numbers.iter().filter(|part| **part >= 40).count() >= 2;
    parts.next().is_none() && numbers[3] != 0 && is_large
}

/// Reads a number of at most 255 without leading zeros.
fn octet(part: &[u8]) -> Option<u8> {
    let has_shape = part.iter().all(u8::is_ascii_digit) && (part == b"0" || !part.starts_with(b"0"));
    std::str::from_utf8(part)
        .ok()
        .filter(|_| has_shape)
        .and_then(|part| part.parse().ok())
}

/// Whether `text` is a telephone number: 7 to 15 digits (ITU-T E.164) before the first letter, not
/// all the same, and nothing that occurs in tables, dates and programs but not in telephone
/// numbers: `0000`, `/-`, dots next to blanks, a date with its year first.
fn phone(text: &[u8]) -> bool {
    let letter = text.iter().position(u8::is_ascii_alphabetic);
    let number = &text[..letter.unwrap_or(text.len())];
    let Some(digits) = Digits::<15>::parse(number) else {
        return false;
    };
    let digits = digits.as_slice();
    let holds = |sign: &[u8]| memchr::memmem::find(number, sign).is_some();
    let mixes = holds(b".") && number.trim_ascii().contains(&b' ');
    let is_odd = holds(b"0000") || holds(b"/-") || holds(b"-/") || mixes || is_date(number);
    digits.len() >= 7 && digits.iter().any(|digit| *digit != digits[0]) && !is_odd
}

/// Whether `text` begins with a date of this or the last century, year first.
fn is_date(text: &[u8]) -> bool {
    let Some(date) = text.first_chunk::<10>() else {
        return false;
    };
    let has_signs = [4, 7]
        .iter()
        .all(|place| matches!(date[*place], b'-' | b'.' | b'/' | b' '));
    let has_digits = [0, 1, 2, 3, 5, 6, 8, 9]
        .iter()
        .all(|place| date[*place].is_ascii_digit());
    has_signs
        && has_digits
        && (date.starts_with(b"19") || date.starts_with(b"20"))
        && !text.get(10).is_some_and(u8::is_ascii_digit)
}

/// Whether `text` is the second line of a passport's machine-readable zone with correct check
/// digits for number, birth and expiry (ICAO Doc 9303-3, 4.9).
fn mrz(text: &[u8]) -> bool {
    let is_right = |(start, end): &(usize, usize)| {
        let field = text.get(*start..*end).unwrap_or_default();
        let sum: u32 = field
            .iter()
            .zip([7, 3, 1].into_iter().cycle())
            .map(|(symbol, weight)| weight * char::from(*symbol).to_digit(36).unwrap_or(0))
            .sum();
        text.get(*end).map(|digit| char::from(*digit).to_digit(10)) == Some(Some(sum % 10))
    };
    [(0, 9), (13, 19), (21, 27)].iter().all(is_right)
}

/// Whether `text` has at least 3.5 bits of Shannon entropy per byte: random keys do, words and
/// padding do not.
fn high_entropy(text: &[u8]) -> bool {
    let mut counts = [0_u32; 256];
    for byte in text {
        counts[usize::from(*byte)] += 1;
    }
    let total = text.len() as f64;
    let bits: f64 = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / total)
        .map(|share| -share * share.log2())
        .sum();
    bits >= 3.5 - 1e-9
}

/// Whether `text` has at least one letter and one digit.
fn letter_and_digit(text: &[u8]) -> bool {
    text.iter().any(u8::is_ascii_alphabetic) && text.iter().any(u8::is_ascii_digit)
}

/// Whether `text` is a GitHub token: the last six of the 36 characters after the prefix are the
/// CRC-32 of the other characters in base62 ("Behind GitHub's new authentication token formats",
/// 2021). No checksum is published for other lengths; such tokens only have to be random.
fn github_token(text: &[u8]) -> bool {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let token = text
        .iter()
        .position(|byte| *byte == b'_')
        .map_or(text, |prefix| &text[prefix + 1..]);
    let Some((random, checksum)) = token.split_at_checked(30).filter(|(_, rest)| rest.len() == 6) else {
        return high_entropy(text);
    };
    let mut rest = crc32(random);
    checksum.iter().rev().all(|byte| {
        let digit = DIGITS[(rest % 62) as usize];
        rest /= 62;
        *byte == digit
    })
}

/// CRC-32 of ISO 3309 (zlib), bit by bit: the input has thirty bytes, and the check is rarely needed.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
    !bytes
        .iter()
        .fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

/// Minimum payload bytes of a match that may lack the signature, because the match ends within the
/// payload.
const LONG_PAYLOAD: usize = 204;

/// Whether `text` has three parts, and the first part is the header of a JSON Web Token (RFC 7515,
/// section 4): the base64url of a JSON object that names an algorithm. Checks only the beginning
/// and the end of the object and that it has this name, not its whole syntax. Of a long token, the
/// beginning is sufficient.
fn jwt(text: &[u8]) -> bool {
    const NAME: &[u8] = b"\"alg\"";
    let mut parts = text.split(|byte| *byte == b'.');
    let (Some(header), Some(payload), signature, None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let is_signed = signature.is_some_and(|signature| !signature.is_empty());
    if !is_signed && payload.len() < LONG_PAYLOAD {
        return false;
    }
    let mut object = Vec::with_capacity(header.len());
    decode::decode_base64(header, &mut object);
    object.starts_with(b"{")
        && object.ends_with(b"}")
        && memchr::memmem::find_iter(&object, NAME).any(|at| {
            let behind = object[at + NAME.len()..].iter();
            let mut behind = behind.skip_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
            behind.next() == Some(&b':')
        })
}

/// Whether `text` is a separate mail address, not part of a URL or of a remote such as
/// `://user@host` or `user@host:path`.
fn mailbox(text: &[u8]) -> bool {
    !text.contains(&b':')
}

#[cfg(feature = "testing")]
#[allow(clippy::panic, reason = "tests inject this panic")]
fn panic_for_tests(_: &[u8]) -> bool {
    panic!("panic-for-tests")
}

/// Spins for 20 ms of CPU time without checking the budget.
#[cfg(feature = "testing")]
fn spin_for_tests(_: &[u8]) -> bool {
    let start = crate::budget::thread_cpu_time();
    while crate::budget::thread_cpu_time() < start + std::time::Duration::from_millis(20) {
        std::hint::spin_loop();
    }
    true
}
