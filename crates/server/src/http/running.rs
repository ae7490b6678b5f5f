//! The running requests on the page: progress, and how the stages spend their time. The page's script updates
//! both, by the classes and attributes given here.

use maud::{Markup, html};
use serde_json::Value as Json;
use windlass_base::size::counted;

/// The stages of a backup in the order of the data; a restore has them in reverse.
const STAGES: [&str; 3] = ["read", "transform", "write"];

/// Parts of a stage's bar: the style's class, and the counter.
const PARTS: [(&str, &str); 3] = [
    ("busy", "busy_time"),
    ("before", "wait_input_time"),
    ("behind", "wait_output_time"),
];

/// The requests that have a progress, and the number of others.
pub(super) fn section(requests: &Json) -> Markup {
    let all = requests.as_array().map(Vec::as_slice).unwrap_or_default();
    let (told, others): (Vec<&Json>, Vec<&Json>) =
        all.iter().partition(|request| has_progress(request));
    html! {
        section id="running" {
            h2 { "Running now" }
            @if told.is_empty() { p class="quiet" { "No backup, restore or verification is running." } }
            @if told.iter().any(|request| request["stages"].is_object()) {
                ul class="legend" {
                    @for (class, name) in [
                        ("busy", "at work"),
                        ("before", "waiting for input"),
                        ("behind", "waiting for room in the next stage"),
                    ] {
                        li {
                            svg aria-hidden="true" width="14" height="14" viewBox="0 0 14 14" {
                                rect class=(class) x="1" y="1" width="12" height="12" {}
                            }
                            span { (name) }
                        }
                    }
                }
            }
            @for request in &told { (one(request)) }
            @if !others.is_empty() {
                p class="quiet" { "Running of sessions besides: " (counted(others.len(), "request")) "." }
            }
        }
    }
}

/// Whether a request says how far it is.
fn has_progress(request: &Json) -> bool {
    request["percent_complete"].is_number()
}

fn one(request: &Json) -> Markup {
    let text = |key: &str| request[key].as_str().unwrap_or_default();
    let percent = request["percent_complete"].as_f64().unwrap_or(0.0);
    html! {
        div class="request" data-request=(key(request)) {
            div class="request-head" {
                strong { (text("command")) }
                span { (text("database_name")) }
                span class="soft" { "session " (request["session_id"]) ", since " (text("start_time").get(..19).unwrap_or_default()) }
            }
            progress max="100" value=(format!("{percent:.2}")) aria-label=(format!("{} {}", text("command"), text("database_name"))) {}
            div class="request-text" { (shown(request)) }
            @if request["stages"].is_object() { (stages(&request["stages"])) }
        }
    }
}

/// What tells a request from others, also for the script.
fn key(request: &Json) -> String {
    format!("{}-{}", request["session_id"], request["request_id"])
}

fn stages(stages: &Json) -> Markup {
    html! {
        div class="stages" {
            @for name in STAGES {
                @let shares = shares(&stages[name]);
                div class="stage" data-stage=(name) {
                    span { (name) }
                    svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
                        rect class="idle" x="0" y="0" width="100" height="10" {}
                        @for (index, (class, _)) in PARTS.iter().enumerate() {
                            rect class=(class) y="0" height="10"
                                x=(format!("{:.2}", shares.iter().take(index).sum::<f64>()))
                                width=(format!("{:.2}", shares[index])) {}
                        }
                    }
                    span class="share" { (format!("{:.0} %", shares[0])) }
                }
            }
        }
    }
}

/// How a stage's threads spend their time, in percent.
fn shares(stage: &Json) -> [f64; 3] {
    let times = PARTS.map(|(_, counter)| stage[counter].as_f64().unwrap_or(0.0));
    let whole = times.iter().sum::<f64>().max(1.0);
    times.map(|time| time * 100.0 / whole)
}

/// A request in one line: how much, how fast, how long still.
pub(super) fn shown(request: &Json) -> String {
    let number = |key: &str| request[key].as_f64();
    let Some(percent) = number("percent_complete") else {
        return String::new();
    };
    let mut parts = vec![format!("{percent:.1} %")];
    if let (Some(done), Some(total)) = (number("done_bytes"), number("total_bytes")) {
        let mb = |bytes: f64| bytes / f64::from(1 << 20);
        parts.push(format!("{:.1} of {:.1} MB", mb(done), mb(total)));
        let elapsed = number("total_elapsed_time").unwrap_or(0.0) / 1000.0;
        if elapsed > 0.0 {
            parts.push(format!("{:.1} MB/s", mb(done) / elapsed));
        }
        let stored = number("stored_bytes").unwrap_or(0.0);
        if stored > 0.0 {
            parts.push(format!("ratio {:.2}", done / stored));
        }
        let left = number("estimated_completion_time").unwrap_or(0.0) / 1000.0;
        if done > 0.0 && percent < 100.0 {
            parts.push(format!("{} left", duration(left)));
        }
    }
    parts.join(", ")
}

/// A duration for people.
pub(super) fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..120 => format!("{whole} s"),
        120..7200 => format!("{} min", whole / 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_says_how_far_it_is_and_what_its_stages_wait_for() {
        let stage = |busy: u64| json!({ "busy_time": busy, "wait_input_time": 100 - busy, "wait_output_time": 0 });
        let request = json!({
            "session_id": 57, "request_id": 3, "command": "BACKUP DATABASE", "database_name": "<b>",
            "start_time": "2026-11-23 10:00:00.000", "percent_complete": 25.0, "total_elapsed_time": 2000,
            "estimated_completion_time": 6000, "done_bytes": 50 << 20, "total_bytes": 200 << 20,
            "stored_bytes": 25 << 20,
            "stages": { "read": stage(25), "transform": stage(50), "write": stage(100) },
        });
        assert_eq!(
            shown(&request),
            "25.0 %, 50.0 of 200.0 MB, 25.0 MB/s, ratio 2.00, 6 s left"
        );
        let page =
            section(&json!([request, { "session_id": 58, "command": "EXECUTE" }])).into_string();
        for part in [
            r#"data-request="57-3""#,
            r#"value="25.00""#,
            "&lt;b&gt;",
            r#"<rect class="before" y="0" height="10" x="25.00" width="75.00">"#,
            "Running of sessions besides: 1 request.",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
        assert!(section(&json!([])).into_string().contains("No backup"));
    }
}
