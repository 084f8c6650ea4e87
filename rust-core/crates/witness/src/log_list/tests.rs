#![allow(clippy::unwrap_used, reason = "a test may stop at the first failure")]

use super::*;
use proofgate_ledger::SigningKey;

fn vkey(name: &str) -> String {
    SigningKey::generate(name, [5; 32])
        .unwrap()
        .verifying_key()
        .to_text()
}

#[test]
fn a_list_is_read_with_what_it_may_leave_out() {
    let (one, two) = (vkey("one.example"), vkey("two.example"));
    let list = format!(
        "# made by hand\nlogs/v0\n\nvkey {one}\nqpd 86400\ncontact nobody (at) one.example\n\n  vkey {two}\n\torigin something-else\n"
    );
    let logs = parse_log_list(&list).unwrap();
    assert_eq!(logs[0].origin, "one.example");
    assert_eq!(logs[1].origin, "something-else");
    assert_eq!(logs[1].key.name(), "two.example");
    assert_eq!(parse_log_list("logs/v0").unwrap(), []);
}

#[test]
fn what_is_no_list_is_refused_with_its_line() {
    let one = vkey("one.example");
    for (list, line) in [
        (String::new(), 1),
        (format!("vkey {one}"), 1),
        ("logs/v0\norigin x".to_owned(), 2),
        ("logs/v0\nvkey x".to_owned(), 2),
        (format!("logs/v0\nvkey {one}\nqpd 0"), 3),
        (format!("logs/v0\nvkey {one}\nqpd 9\norigin x"), 4),
        (format!("logs/v0\nvkey {one}\ncontact"), 3),
        (format!("logs/v0\nvkey {one}\nbastion x"), 3),
        (format!("logs/v0\nvkey {one}\nvkey {one}"), 3),
    ] {
        match parse_log_list(&list) {
            Err(WitnessError::LogList { line: at, .. }) => assert_eq!(at, line, "{list}"),
            other => unreachable!("{list}: {other:?}"),
        }
    }
}
