use std::sync::Arc;

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use super::*;

const A_MICROSECOND: Timing = Timing {
    is_stream: false,
    microseconds: 1,
};
const ROUTE: Option<(&str, &str)> = Some(("large", "vendor"));

fn table(most: usize) -> (Traffic, Registry) {
    let shown = Arc::<PublishedSeries>::default();
    let mut registry = Registry::with_prefix("proofgate");
    registry.register_collector(Box::new(Arc::clone(&shown)));
    (Traffic::new(most, shown), registry)
}

/// Returns the values of the series whose lines start with `beginning`, each with the rest of its line.
fn told(traffic: &Traffic, registry: &Registry, beginning: &str) -> Vec<String> {
    traffic.publish();
    let mut exposition = String::new();
    text::encode(&mut exposition, registry).unwrap();
    let lines = exposition.lines().filter_map(|line| line.strip_prefix(beginning));
    let mut lines: Vec<_> = lines.map(str::to_owned).collect();
    lines.sort();
    lines
}

fn tokens(prompt: u64, completion: u64) -> Option<Usage> {
    Some(Usage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        ..Usage::default()
    })
}

#[test]
fn requests_and_tokens_count_for_their_tenant_model_and_provider() {
    let (traffic, registry) = table(10);
    for (tenant, prompt) in [("a", 3), ("b", 5), ("a", 7)] {
        let series = traffic.series(tenant, ROUTE);
        series.record_finished(Outcome::Complete, tokens(prompt, 1), None, A_MICROSECOND);
    }
    traffic
        .series("a", ROUTE)
        .record_rejection(RequestOutcome::Denied);
    let of_a = told(
        &traffic,
        &registry,
        r#"proofgate_requests_total{tenant="a",model="large",provider="vendor","#,
    );
    assert_eq!(
        of_a,
        [
            r#"outcome="client_disconnect"} 0"#,
            r#"outcome="complete"} 2"#,
            r#"outcome="denied"} 1"#,
            r#"outcome="failed"} 0"#,
            r#"outcome="refused"} 0"#,
        ]
    );
    let prompts = told(&traffic, &registry, "proofgate_prompt_tokens_total");
    assert_eq!(
        prompts,
        [
            r#"{tenant="a",model="large",provider="vendor"} 10"#,
            r#"{tenant="b",model="large",provider="vendor"} 5"#,
        ]
    );
    let answers = told(
        &traffic,
        &registry,
        r#"proofgate_completion_tokens_total{tenant="a""#,
    );
    assert_eq!(answers, [r#",model="large",provider="vendor"} 2"#]);
}

#[test]
fn a_duration_counts_for_its_model_and_not_for_its_tenant() {
    let (traffic, registry) = table(10);
    for (tenant, microseconds) in [("a", 15_000), ("b", 2_000_000)] {
        let series = traffic.series(tenant, ROUTE);
        series.record_first_byte(A_MICROSECOND);
        let took = Timing {
            is_stream: false,
            microseconds,
        };
        series.record_finished(Outcome::UpstreamError, None, None, took);
    }
    let labels = r#"{model="large",provider="vendor",stream="false"}"#;
    let name = |of: &str| format!("proofgate_{of}_seconds_count{labels} ");
    assert_eq!(told(&traffic, &registry, &name("request_duration")), ["2"]);
    assert_eq!(told(&traffic, &registry, &name("time_to_first_byte")), ["2"]);
    let sum = format!("proofgate_request_duration_seconds_sum{labels} ");
    assert_eq!(told(&traffic, &registry, &sum), ["2.015"]);
    let buckets = told(
        &traffic,
        &registry,
        "proofgate_request_duration_seconds_bucket{le=\"0.02\"",
    );
    let of_large = |rest: &str| format!(r#",model="large",provider="vendor",stream={rest}"#);
    assert_eq!(buckets, [of_large(r#""false"} 1"#), of_large(r#""true"} 0"#)]);
}

#[test]
fn streams_have_durations_of_their_own_and_a_report_adds_them_in_the_buckets_of_opentelemetry() {
    let (traffic, registry) = table(10);
    for (stream, microseconds) in [(false, 600), (true, 9_000), (true, 15_000)] {
        let took = Timing {
            is_stream: stream,
            microseconds,
        };
        traffic
            .series("a", ROUTE)
            .record_finished(Outcome::Complete, None, None, took);
    }
    let bucket = |le: &str| {
        let beginning = format!(r#"proofgate_request_duration_seconds_bucket{{le="{le}""#);
        told(&traffic, &registry, &beginning)
    };
    let labels = r#",model="large",provider="vendor",stream="#;
    let counts = |plain, stream| {
        [
            format!(r#"{labels}"false"}} {plain}"#),
            format!(r#"{labels}"true"}} {stream}"#),
        ]
    };
    assert_eq!(bucket("0.000625"), counts(1, 0));
    assert_eq!(bucket("0.01"), counts(1, 1));
    let report = serde_json::to_value(traffic.published.report()).unwrap();
    let durations = &report["models"][0]["exchange"];
    assert_eq!(durations["bounds"].as_array().unwrap().len(), 14);
    assert_eq!(durations["bounds"][0], 0.01);
    let counts: Vec<_> = durations["counts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|count| count.as_u64().unwrap())
        .collect();
    assert_eq!((counts.len(), &counts[..3]), (15, &[2, 1, 0][..]));
}

#[test]
fn what_comes_when_all_label_sets_are_taken_counts_for_other_tenants() {
    let (traffic, registry) = table(2);
    for number in 0..50 {
        let series = traffic.series(&format!("tenant-{number}"), ROUTE);
        series.record_finished(Outcome::Complete, tokens(1, 1), None, A_MICROSECOND);
    }
    let prompts = told(&traffic, &registry, "proofgate_prompt_tokens_total");
    assert_eq!(
        prompts,
        [
            r#"{tenant="(other)",model="large",provider="vendor"} 48"#,
            r#"{tenant="tenant-0",model="large",provider="vendor"} 1"#,
            r#"{tenant="tenant-1",model="large",provider="vendor"} 1"#,
        ]
    );
}

#[test]
fn a_tenant_that_is_named_other_counts_for_itself() {
    let (traffic, registry) = table(1);
    for tenant in ["other", "a", "b"] {
        traffic
            .series(tenant, None)
            .record_rejection(RequestOutcome::Refused);
    }
    let refused = told(&traffic, &registry, "proofgate_requests_total");
    let refused: Vec<_> = refused.iter().filter(|line| !line.ends_with(" 0")).collect();
    assert_eq!(
        refused,
        [
            r#"{tenant="(other)",model="",provider="",outcome="refused"} 2"#,
            r#"{tenant="other",model="",provider="",outcome="refused"} 1"#,
        ]
    );
}

#[test]
fn a_reload_keeps_the_counts_of_what_stays_and_makes_room_for_the_rest() {
    let (traffic, registry) = table(2);
    let stays = traffic.series("stays", ROUTE);
    stays.record_finished(Outcome::Complete, tokens(1, 1), None, A_MICROSECOND);
    for tenant in ["goes", "late"] {
        traffic
            .series(tenant, ROUTE)
            .record_finished(Outcome::Complete, tokens(1, 1), None, A_MICROSECOND);
    }
    traffic.reconfigure(2, |tenant| ["stays", "late"].contains(&tenant), |_, _| true);
    for tenant in ["stays", "late"] {
        traffic
            .series(tenant, ROUTE)
            .record_finished(Outcome::Complete, tokens(1, 1), None, A_MICROSECOND);
    }
    stays.record_finished(Outcome::Complete, tokens(1, 1), None, A_MICROSECOND);
    let prompts = told(&traffic, &registry, "proofgate_prompt_tokens_total");
    assert_eq!(
        prompts,
        [
            r#"{tenant="(other)",model="large",provider="vendor"} 1"#,
            r#"{tenant="late",model="large",provider="vendor"} 1"#,
            r#"{tenant="stays",model="large",provider="vendor"} 3"#,
        ]
    );
    traffic.reconfigure(2, |tenant| tenant == "stays", |model, _| model != "large");
    assert!(told(&traffic, &registry, "proofgate_prompt_tokens_total").is_empty());
    assert!(told(&traffic, &registry, "proofgate_request_duration_seconds_count").is_empty());
}

#[test]
fn a_model_that_changes_its_provider_has_series_of_both() {
    let (traffic, registry) = table(10);
    for provider in ["vendor", "spare"] {
        let series = traffic.series("a", Some(("large", provider)));
        series.record_finished(Outcome::Complete, None, None, A_MICROSECOND);
    }
    assert_eq!(
        told(&traffic, &registry, "proofgate_request_duration_seconds_count"),
        [
            r#"{model="large",provider="spare",stream="false"} 1"#,
            r#"{model="large",provider="spare",stream="true"} 0"#,
            r#"{model="large",provider="vendor",stream="false"} 1"#,
            r#"{model="large",provider="vendor",stream="true"} 0"#,
        ]
    );
}

#[test]
fn names_with_quotes_and_slashes_are_one_label_value() {
    let (traffic, registry) = table(10);
    traffic
        .series("team/a\"} 9\n", Some(("m\\", "p")))
        .record_finished(Outcome::Complete, tokens(1, 1), None, A_MICROSECOND);
    let told = told(&traffic, &registry, "proofgate_prompt_tokens_total");
    assert_eq!(told, [r#"{tenant="team/a\"} 9\n",model="m\\",provider="p"} 1"#]);
}

#[test]
fn tokens_that_no_model_can_have_used_do_not_end_the_count() {
    let (traffic, registry) = table(10);
    let series = traffic.series("a", ROUTE);
    series.record_finished(Outcome::Complete, tokens(u64::MAX, 1), None, A_MICROSECOND);
    series.record_finished(Outcome::Complete, tokens(1, 1), None, A_MICROSECOND);
    let prompts = told(&traffic, &registry, "proofgate_prompt_tokens_total{tenant=\"a\"");
    assert_eq!(
        prompts,
        [format!(
            r#",model="large",provider="vendor"}} {}"#,
            MAX_TOKENS + 1
        )]
    );
}

#[test]
fn series_are_shown_once_nobody_is_reading() {
    let (traffic, registry) = table(10);
    traffic
        .series("a", ROUTE)
        .record_finished(Outcome::Complete, None, None, A_MICROSECOND);
    let shown = Arc::clone(&traffic.published);
    let reading = shown.0.lock().unwrap();
    traffic.publish();
    assert!(reading.series.is_empty());
    drop(reading);
    assert_eq!(
        told(&traffic, &registry, "proofgate_request_duration_seconds_count"),
        [
            r#"{model="large",provider="vendor",stream="false"} 1"#,
            r#"{model="large",provider="vendor",stream="true"} 0"#,
        ]
    );
}

#[test]
fn costs_are_summed_as_integers_and_shown_as_dollars() {
    let (traffic, registry) = table(10);
    for (tenant, cost) in [("a", Some(1)), ("b", None), ("a", Some(1_500_000_000))] {
        traffic
            .series(tenant, ROUTE)
            .record_finished(Outcome::Complete, tokens(1, 1), cost, A_MICROSECOND);
    }
    let costs = told(&traffic, &registry, "proofgate_cost_dollars_total");
    assert_eq!(
        costs,
        [
            r#"{tenant="a",model="large",provider="vendor"} 1.500000001"#,
            r#"{tenant="b",model="large",provider="vendor"} 0.0"#,
        ]
    );
}
