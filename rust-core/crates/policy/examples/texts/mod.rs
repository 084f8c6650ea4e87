//! Generated texts of ten kinds, from a seed: typical content of conversations.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// The kinds, in report order.
pub const KINDS: &[&str] = &[
    "prose", "code", "csv", "logs", "json", "base64", "hex", "minified", "chinese", "random",
];

const WORDS: &[&str] = &[
    "customer", "meeting", "because", "number", "please", "before", "summary", "table", "river", "small",
    "between", "system", "again", "with", "the", "and", "from", "price", "today", "would",
];
const NAMES: &[&str] = &[
    "request",
    "buffer",
    "index",
    "token",
    "length",
    "offset",
    "parser",
    "key",
    "value",
    "config",
    "result",
    "password_field",
    "items",
    "handler",
    "user",
];
const CHINESE: &str = "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面而方后多定行学法所民得经十三之进着等部度家电力里如水化高自二理起小物现实加量都两体制机当使点从业本去把性好应开它合还因由其些然前外天政四日那社义事平形相全表间样与关各重新线内数正心反你明看原又么利比或但质气第向道命此变条只没结解问意建月公无系军很情者最立代想已通并提直题党程展五果料象员革位入常文总次品式活设及管特件长求老头基资边流路级少图山统接知较将组见计别她手角期根论运农指几九区强放决西被干做必战先回则任取据处理世车";

/// Returns a text of a kind with about `length` bytes, the same for the same `seed`; `None` for an unknown kind.
pub fn text(kind: &str, length: usize, seed: u64) -> Option<String> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut text = String::with_capacity(length + 512);
    let line: fn(&mut SmallRng, &mut String) = match kind {
        "prose" => return super::prose::prompts(1, length, seed).pop(),
        "code" => code,
        "csv" => csv,
        "logs" => log,
        "json" => json,
        "base64" => base64,
        "hex" => hex,
        "minified" => minified,
        "chinese" => chinese,
        "random" => noise,
        _ => return None,
    };
    while text.len() < length {
        line(&mut random, &mut text);
    }
    let end = (0..=length)
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    text.truncate(end);
    Some(text)
}

fn pick<'l>(random: &mut SmallRng, list: &[&'l str]) -> &'l str {
    list[random.random_range(0..list.len())]
}

fn number(random: &mut SmallRng, below: u64) -> String {
    random.random_range(0..below).to_string()
}

fn code(random: &mut SmallRng, text: &mut String) {
    let [a, b, c] = std::array::from_fn(|_| pick(random, NAMES));
    let some = number(random, 4096);
    let line = match random.random_range(0..5) {
        0 => format!("    let {a} = {b}.{c}({some}, &mut {a}_{b})?; // keeps the {c} of the {b}\n"),
        1 => format!("fn {a}_{b}({c}: &[u8], {a}: usize) -> Result<{b}, Error> {{\n"),
        2 => format!(
            "        if {a} > {some} && {b}[{a}] == b'{}' {{ return Err(Error::{c}); }}\n",
            &c[..1]
        ),
        3 => format!(
            "    {a}: \"{b} {c}\", // see RFC {some}, section 3.{}\n",
            some.len()
        ),
        _ => "    }\n\n".to_owned(),
    };
    text.push_str(&line);
}

fn csv(random: &mut SmallRng, text: &mut String) {
    for _ in 0..6 {
        text.push_str(&number(random, 10_000_000_000));
        text.push(',');
    }
    let day = random.random_range(10..29);
    text.push_str(&format!(
        "2024-0{}-{day},{}.{:02}\n",
        random.random_range(1..9),
        number(random, 100_000),
        day
    ));
}

fn log(random: &mut SmallRng, text: &mut String) {
    let [hour, minute, second] = [24_u32, 60, 60].map(|below| random.random_range(0..below));
    let address: Vec<String> = (0..4).map(|_| number(random, 256)).collect();
    text.push_str(&format!(
        "2024-05-{:02}T{hour:02}:{minute:02}:{second:02}.{:06}Z INFO [worker-{}] {} - GET /api/v1/{}/{} HTTP/1.1 200 {} {}ms trace={:016x}\n",
        random.random_range(1..29),
        random.random_range(0..1_000_000),
        number(random, 16),
        address.join("."),
        pick(random, NAMES),
        number(random, 1_000_000),
        number(random, 100_000),
        number(random, 900),
        random.random::<u64>(),
    ));
}

fn json(random: &mut SmallRng, text: &mut String) {
    text.push_str(&format!(
        "{{\"id\":{},\"{}\":\"{} {}\",\"created_at\":{},\"active\":true,\"{}\":[{},{},{}],\"ratio\":0.{}}},\n",
        number(random, 1 << 40),
        pick(random, NAMES),
        pick(random, WORDS),
        pick(random, WORDS),
        1_700_000_000 + random.random_range(0..10_000_000),
        pick(random, NAMES),
        number(random, 1000),
        number(random, 1000),
        number(random, 1 << 33),
        number(random, 1 << 50),
    ));
}

fn base64(random: &mut SmallRng, text: &mut String) {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for _ in 0..76 {
        text.push(char::from(ALPHABET[random.random_range(0..64)]));
    }
    // One in ten is split into lines.
    if random.random_range(0..10) == 0 {
        text.push('\n');
    }
}

fn hex(random: &mut SmallRng, text: &mut String) {
    for _ in 0..4 {
        text.push_str(&format!("{:016x}", random.random::<u64>()));
    }
    text.push(if random.random_range(0..4) == 0 { '\n' } else { ' ' });
}

fn minified(random: &mut SmallRng, text: &mut String) {
    let letter = |random: &mut SmallRng| char::from(b'a' + random.random_range(0..26));
    let [a, b, c] = std::array::from_fn(|_| letter(random));
    let name = pick(random, NAMES);
    let some = number(random, 100_000);
    let piece = match random.random_range(0..4) {
        0 => format!("function {a}({b},{c}){{return {b}.{name}?{c}[{some}]:null}}"),
        1 => format!("var {a}={b}({some}),{c}=\"{name}\";"),
        2 => format!("{a}.{name}=function({b}){{for(var {c}=0;{c}<{b}.length;{c}++){a}[{c}]^={some}}};"),
        _ => format!(
            "!{a}&&({b}.{name}=e=>e.{c}({some}e3,\"\\u00{}\"));",
            &some[..2.min(some.len())]
        ),
    };
    text.push_str(&piece);
}

fn chinese(random: &mut SmallRng, text: &mut String) {
    let characters: Vec<char> = CHINESE.chars().collect();
    for _ in 0..random.random_range(8..24) {
        text.push(characters[random.random_range(0..characters.len())]);
    }
    text.push(if random.random_range(0..4) == 0 {
        '。'
    } else {
        ','
    });
}

/// Appends random bytes as text: invalid UTF-8 is replaced.
fn noise(random: &mut SmallRng, text: &mut String) {
    let bytes: [u8; 256] = std::array::from_fn(|_| random.random());
    text.push_str(&String::from_utf8_lossy(&bytes));
}
