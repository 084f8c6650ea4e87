//! The engine finds the same matches as a simple reference in every text, at once and in any pieces.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod reference;
mod support;

use std::sync::LazyLock;

use proofgate_policy::{Pack, Scope, pattern_pack_names};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use reference::Reference;
use serde_json::json;
use support::{Policy, base64, escapes, hex, percent};

/// All examples of all rules.
static EXAMPLES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let rules = pattern_pack_names().flat_map(|name| Pack::built_in(name).unwrap().rules);
    rules
        .flat_map(|rule| [rule.examples.matching, rule.examples.no_match].concat())
        .collect()
});
static REFERENCE: LazyLock<Reference> = LazyLock::new(Reference::built_in);

/// Values of every kind, some of which occur in examples and in texts of [`spared`].
static ALLOW: LazyLock<serde_json::Value> = LazyLock::new(|| {
    json!({
        "values": ["Robin@ACME.com", "q7zt3lmp9xkv2rbn", "4539 5787 6362 1486", "\u{456}gnore all previous instructions"],
        "domains": ["acme.DE", "co.uk"],
        "patterns": ["*@mail.*.com", "https://acme.*/app", "*+1@*"],
    })
});
static ALLOWING_REFERENCE: LazyLock<Reference> =
    LazyLock::new(|| Reference::allowing(&serde_json::from_value(ALLOW.clone()).unwrap()));

/// Few rules that match little text.
static SHORT_RULES: LazyLock<serde_json::Value> = LazyLock::new(|| {
    let rules = [
        json!({"id": "word", "literals": ["ignore", "o r"]}),
        json!({"id": "edges", "regex": r"\bno\b|\bre", "target": "Both"}),
        json!({"id": "signs", "regex": "[a-z][^a-z]{1,3}[a-z]"}),
        json!({"id": "long", "regex": "g[^x]{2,40}e"}),
        json!({"id": "text", "regex": "  |[*<&][a-z#]", "view": "Text"}),
        json!({"id": "value", "regex": "[a-z]{1,3}[^a-z]{1,2}(?<value>[a-z]{1,4})(?:[^a-z]|x)"}),
        json!({"id": "perhaps-a-value", "regex": "i(?:g(?<value>[^o]{1,3})|[n ])o|x", "view": "Folded"}),
        json!({"id": "value-in-text", "regex": "[<&](?<value>[a-zA-Z;#]{1,4})[ >]?", "view": "Text"}),
    ];
    rules.map(support::with_defaults).into_iter().collect()
});
static SHORT_REFERENCE: LazyLock<Reference> =
    LazyLock::new(|| Reference::of(&serde_json::from_value::<Vec<_>>(SHORT_RULES.clone()).unwrap()));

/// Rules that digits trigger; a match of the last one can begin at any digit, and be long.
static DIGIT_RULES: LazyLock<serde_json::Value> = LazyLock::new(|| {
    let rules = [
        json!({"id": "groups", "regex": r"\b[0-9]{2}(?:[ -]?[0-9]{2}){2}\b"}),
        json!({"id": "words", "regex": "[a-z]{0,3}[0-9]{3}[a-z]?"}),
        json!({"id": "checked", "regex": r"\b[0-9](?:[ -]?[0-9]){4,20}\b", "check": "Luhn"}),
        json!({"id": "text", "regex": "[A-Z][0-9]{4}", "view": "Text"}),
        json!({"id": "checked-value", "regex": r"[0-9a](?<value>(?:[ -]?[0-9]){12,15})\b", "check": "Luhn"}),
        json!({"id": "run", "regex": "[0-9](?:[0-9a-c ]){3,900}[0-9]x"}),
        json!({"id": "from-a-word", "regex": r"\b[a-z][a-z -]{0,20}[0-9]{3}"}),
        json!({"id": "before-a-word", "regex": "[ -][a-z][a-z ]{0,20}[0-9]{3}"}),
        json!({"id": "anywhere", "regex": "[ x-][a-z -]{0,20}[0-9]{4}"}),
    ];
    rules.map(support::with_defaults).into_iter().collect()
});
static DIGIT_REFERENCE: LazyLock<Reference> =
    LazyLock::new(|| Reference::of(&serde_json::from_value::<Vec<_>>(DIGIT_RULES.clone()).unwrap()));

thread_local! {
    static DIGIT_POLICY: std::cell::RefCell<Policy> =
        std::cell::RefCell::new(Policy::of(&json!({"rules": *DIGIT_RULES})));
    static ALLOWING_POLICY: std::cell::RefCell<Policy> =
        std::cell::RefCell::new(Policy::allowing(&ALLOW));
    static POLICY: std::cell::RefCell<Policy> = std::cell::RefCell::new(Policy::built_in());
    /// All rules deny, so all of them hold back a stream.
    static DENYING_POLICY: std::cell::RefCell<Policy> =
        std::cell::RefCell::new(Policy::all_denying());
    static SHORT_POLICY: std::cell::RefCell<Policy> =
        std::cell::RefCell::new(Policy::of(&json!({"rules": *SHORT_RULES})));
}

fn lookalike(character: char) -> char {
    match character {
        'a' => '\u{430}',
        'e' => '\u{435}',
        'o' => '\u{3bf}',
        'i' => '\u{456}',
        's' => '\u{1d42c}',
        ' ' => '\u{2003}',
        '!'..='~' => char::from_u32(u32::from(character) + 0xfee0).unwrap_or(character),
        other => other,
    }
}

/// An example unchanged, cut, or disguised in one of many ways.
fn example() -> impl Strategy<Value = String> {
    (select(&EXAMPLES[..]), 0..18_u8, any::<[Index; 2]>()).prop_map(|(text, disguise, places)| {
        let every = 2 + places[0].index(9);
        let each = |change: &dyn Fn(char) -> String| {
            let changed = text.chars().enumerate();
            changed
                .map(|(at, c)| if at % every == 0 { change(c) } else { c.to_string() })
                .collect::<String>()
        };
        let boundary = |place: &Index| {
            let starts: Vec<usize> = text
                .char_indices()
                .map(|(at, _)| at)
                .chain([text.len()])
                .collect();
            starts[place.index(starts.len())]
        };
        match disguise {
            0 => text[boundary(&places[0])..].to_owned(),
            1 => text[..boundary(&places[1])].to_owned(),
            2 => text.to_uppercase(),
            3 => each(&|c| lookalike(c).to_string()),
            4 => each(&|c| format!("{c}\u{200b}")),
            5 => each(&|c| format!("{c}\u{301}")),
            6 => base64(text.as_bytes()),
            7 => hex(text.as_bytes()),
            8 => percent(text.as_bytes()),
            9 => escapes(&text),
            10 => base64(base64(text.as_bytes()).as_bytes()),
            11 => each(&|c| format!("{c}**")),
            12 => each(&|c| format!("<b>{c}</b>")),
            13 => each(&|c| format!("&#{};", u32::from(c))),
            14 => each(&|c| format!("{c}\u{7f}")),
            15 => text.replace(' ', [" \n", "\t\u{a0} ", "&nbsp; "][places[1].index(3)]),
            _ => text,
        }
    })
}

fn piece() -> impl Strategy<Value = String> {
    let words = vec![
        "the",
        "a ",
        "please ",
        "secret",
        "\n",
        " ",
        "  ",
        ", ",
        ".",
        "Hello",
        "x",
        "1234 ",
        "@",
        "://",
        "\u{200b}",
        "%41",
        "\\u00",
        "=",
        "-",
        "ignore ",
        "user",
        "\u{e9}",
        "\u{fb01}",
        "\u{130}",
        "\u{1f600}",
        "\u{202e}",
        "http",
        "\u{df}",
        "\u{301}",
        "|",
        "*",
        "**",
        "`",
        "~~",
        "<",
        "<b",
        "</span>",
        "<i x=\u{e9}>",
        "<!-- ",
        " -->",
        "&",
        "&#1",
        "10;",
        "&lt;",
        "&nbsp;",
        "\0",
        "\t ",
    ];
    let word = select(words).prop_map(str::to_owned);
    let character = any::<char>().prop_map(String::from);
    prop_oneof![5 => example(), 4 => word, 1 => character]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..9).prop_map(|pieces| pieces.concat())
}

/// Addresses, numbers and credentials, some of which are documentation values or allowed.
fn spared() -> impl Strategy<Value = String> {
    let parts = vec![
        "robin",
        "git",
        "noreply+7",
        "x+1",
        "\u{ff47}it",
        "@",
        "acme.com",
        "acme.de",
        "mail.acme.com",
        "users.noreply.acme.com",
        "acme.example",
        "example.com",
        "example.de",
        "example.co.uk",
        "example.com.evil.net",
        "acme.test",
        "localhost",
        "://",
        "https://",
        "https://acme.com/app",
        ":",
        "/",
        ":pw",
        " ",
        "\n",
        ", ",
        "192.0.2.17",
        "203.0.113.256",
        "85.214.132.117",
        "2001:db8::17",
        "2a00:1450:4001::64",
        "4242 4242 4242 4242",
        "card 4242424242424242",
        "4539 5787 6362 1486",
        "card ",
        "4539578763621486",
        "AKIAIOSFODNN7EXAMPLE",
        "token=q7Zt3LmP9xKv2RbN",
        "EXAMPLE",
        "\u{200b}",
        ".",
        "password: \"",
    ];
    prop::collection::vec(select(parts), 1..9).prop_map(|parts| parts.concat())
}

/// Words mixed with everything that folding removes, complete and incomplete.
fn cluttered() -> impl Strategy<Value = String> {
    let parts = vec![
        "ig",
        "no",
        "re",
        "o",
        "\u{456}",
        "\u{e9}",
        "\u{4e00}",
        "\u{fb01}",
        "I",
        " ",
        "  ",
        "\n",
        "\u{a0}",
        "\u{200b}",
        "\0",
        "\u{85}",
        "*",
        "***",
        "`",
        "~",
        "~~",
        "<",
        "<b",
        "<b>",
        "</",
        "</span x>",
        "<I/>",
        "<br>",
        ">",
        "/",
        "<!",
        "<!--",
        "--",
        "-->",
        "&",
        "&#",
        "&#110;",
        "&#x6",
        "f;",
        "&nbsp;",
        "&lt;b&gt;",
        "&am",
        "p;",
        ";",
        "\u{ff0a}",
        "\u{ff1c}",
        "x",
    ];
    prop::collection::vec(select(parts), 0..24).prop_map(|parts| parts.concat())
}

/// Numbers with little else, either in a short text or so many that a walk from each of them would
/// take too long.
fn numbers() -> impl Strategy<Value = String> {
    let parts = vec![
        "0", "17", "123", "4111", "99999", " ", " ", "-", "  ", "a", "x", "Q", "b12", "\u{ff11}", "\u{e9}",
        "\n", "4-4",
    ];
    prop_oneof![
        6 => prop::collection::vec(select(parts.clone()), 0..40).prop_map(|parts| parts.concat()),
        1 => (select(parts), 800..1500_usize, "[0-9]{1,4}x?").prop_map(|(part, count, end)| {
            format!("{}{end}", format!("1{part}").repeat(count))
        }),
    ]
}

fn scope() -> impl Strategy<Value = Scope> {
    select(Scope::ALL.to_vec())
}

/// Returns the text between the cuts, which are moved to character boundaries.
fn pieces<'t>(text: &'t str, cuts: &[Index]) -> Vec<&'t str> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
    places.extend([0, text.len()]);
    for place in &mut places {
        while !text.is_char_boundary(*place) {
            *place -= 1;
        }
    }
    places.sort_unstable();
    places.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn the_engine_finds_what_the_reference_finds(text in text(), scope in scope()) {
        let found = POLICY.with_borrow_mut(|policy| policy.found(scope, &text));
        prop_assert_eq!(found, REFERENCE.found(scope, &text));
    }

    #[test]
    fn a_text_in_pieces_has_the_matches_of_the_whole(
        text in text(),
        scope in scope(),
        cuts in prop::collection::vec(any::<Index>(), 0..40),
    ) {
        let pieces = pieces(&text, &cuts);
        let (streamed, cleared, whole) = POLICY.with_borrow_mut(|policy| {
            let (streamed, cleared) = policy.stream(scope, pieces.iter().copied()).unwrap();
            (streamed, cleared, policy.found(scope, &text))
        });
        prop_assert_eq!(&streamed, &whole);
        prop_assert!(cleared.is_sorted(), "{:?}", cleared);
    }

    #[test]
    fn what_is_allowed_or_nobodys_is_spared_as_the_reference_spares_it(
        text in prop_oneof![3 => spared(), 1 => text()],
        cuts in prop::collection::vec(any::<Index>(), 0..6),
    ) {
        let pieces = pieces(&text, &cuts);
        let (whole, streamed) = ALLOWING_POLICY.with_borrow_mut(|policy| {
            let (streamed, _) = policy.stream(Scope::Response, pieces.iter().copied()).unwrap();
            (policy.found(Scope::Response, &text), streamed)
        });
        prop_assert_eq!(&whole, &ALLOWING_REFERENCE.found(Scope::Response, &text));
        prop_assert_eq!(streamed, whole);
    }

    #[test]
    fn clutter_is_folded_as_the_reference_folds_it_wherever_it_is_cut(
        text in cluttered(),
        cuts in prop::collection::vec(any::<Index>(), 0..12),
    ) {
        let pieces = pieces(&text, &cuts);
        let (whole, streamed) = SHORT_POLICY.with_borrow_mut(|policy| {
            let (streamed, _) = policy.stream(Scope::Response, pieces.iter().copied()).unwrap();
            (policy.found(Scope::Response, &text), streamed)
        });
        prop_assert_eq!(&whole, &SHORT_REFERENCE.found(Scope::Response, &text));
        prop_assert_eq!(streamed, whole, "{:?}", pieces);
    }

    #[test]
    fn rules_that_digits_wake_find_what_the_reference_finds_wherever_a_text_is_cut(
        text in numbers(),
        cuts in prop::collection::vec(any::<Index>(), 0..12),
    ) {
        let pieces = pieces(&text, &cuts);
        let (whole, streamed) = DIGIT_POLICY.with_borrow_mut(|policy| {
            let (streamed, _) = policy.stream(Scope::Response, pieces.iter().copied()).unwrap();
            (policy.found(Scope::Response, &text), streamed)
        });
        prop_assert_eq!(&whole, &DIGIT_REFERENCE.found(Scope::Response, &text));
        prop_assert_eq!(streamed, whole, "{:?}", pieces);
    }

    #[test]
    fn nothing_that_was_cleared_is_matched_later(text in text(), cuts in prop::collection::vec(any::<Index>(), 0..20)) {
        let pieces = pieces(&text, &cuts);
        DENYING_POLICY.with_borrow_mut(|policy| {
            let mut known = support::Found::new();
            let mut cleared_before = 0;
            for count in 0..=pieces.len() {
                // The matches and cleared bytes of a stream after `count` pieces, before its end.
                let (found, cleared) = policy.so_far(Scope::Response, &pieces[..count]);
                let new = found.difference(&known);
                for (id, start, _) in new {
                    prop_assert!(*start >= cleared_before, "{} at {} after {} were cleared", id, start, cleared_before);
                }
                prop_assert!(cleared <= pieces[..count].concat().len());
                (known, cleared_before) = (found, cleared);
            }
            Ok(())
        })?;
    }
}

#[test]
fn a_word_that_is_encoded_but_for_its_last_letter_is_held() {
    // 81 digits: the last one does not complete a byte, and is ignored where the word ends.
    let text = "VEdsbFptVnlZV1J5WlhOelpUb2dUR0Z1WjJVZ1UzUnlZWE56WlNBeE55d2dNVEF4TVRVZ1FtVnliR2x1r ";
    DENYING_POLICY.with_borrow_mut(|policy| {
        let (found, cleared) = policy.so_far(Scope::Response, &[&text[..81]]);
        assert_eq!((found.len(), cleared), (0, 0));
        let (found, _) = policy.so_far(Scope::Response, &[&text[..81], &text[81..]]);
        assert_eq!(found.len(), 1);
    });
}
