//! Report pages in a browser: charts exist, nothing overlaps, scrolls sideways or logs an error, at
//! the width of a phone and of a desktop, in light and dark mode.
//!
//! Needs Chromium. Without it the tests say so and pass, except under `CI`, where they fail.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test stops at the first surprise and says what it skips"
)]

mod chromium;
mod gallery;
mod measured;

use chromium::{Findings, Scheme, View, look};

/// A phone and a desktop, in CSS pixels.
const WIDTHS: [u32; 2] = [400, 1200];

fn views(pages: &[(&str, String)]) -> Vec<View> {
    let view = |(name, html): &(&str, String), width: u32| View {
        name: format!("{name} at {width}"),
        html: html.clone(),
        width,
    };
    pages
        .iter()
        .flat_map(|page| WIDTHS.map(|width| view(page, width)))
        .collect()
}

/// Conditions that every page must meet.
#[track_caller]
fn check(findings: &Findings, scheme: Scheme) {
    let name = &findings.name;
    assert!(
        findings.overlaps.is_empty(),
        "{name}: {:#?}",
        findings.overlaps
    );
    assert!(
        findings.outside.is_empty(),
        "{name}: {:#?}",
        findings.outside
    );
    assert!(findings.charts > 0, "{name}: no charts");
    assert!(
        findings.texts > findings.charts,
        "{name}: charts without texts"
    );
    assert!(
        findings.scroll_width <= findings.inner_width,
        "{name}: {} wide in a window of {}",
        findings.scroll_width,
        findings.inner_width
    );
    assert_eq!(findings.is_dark, scheme == Scheme::Dark, "{name}");
    assert_eq!(
        findings.paper < 0.1,
        scheme == Scheme::Dark,
        "{name}: {}",
        findings.paper
    );
    let (light, dark) = (
        findings.paper.max(findings.ink),
        findings.paper.min(findings.ink),
    );
    assert!(
        (light + 0.05) / (dark + 0.05) > 7.0,
        "{name}: too little contrast"
    );
    assert!(findings.faint.is_empty(), "{name}: {:#?}", findings.faint);
}

/// Writes pages to the folder named by `WINDLASS_PAGES`, for visual inspection.
fn keep(pages: &[(&str, String)]) {
    if let Some(folder) = std::env::var_os("WINDLASS_PAGES") {
        for (name, html) in pages {
            let path = std::path::Path::new(&folder).join(format!("{name}.html"));
            std::fs::write(path, html).unwrap();
        }
    }
}

#[track_caller]
fn check_pages(pages: &[(&str, String)], schemes: &[Scheme]) {
    keep(pages);
    for scheme in schemes {
        let Some(seen) = look(&views(pages), *scheme) else {
            return;
        };
        assert_eq!(seen.complaints, [""; 0], "the console");
        assert_eq!(seen.views.len(), pages.len() * WIDTHS.len());
        for findings in &seen.views {
            check(findings, *scheme);
        }
    }
}

#[test]
fn pages_with_long_and_hostile_names_and_many_bars_look_well_by_day_and_by_night() {
    let pages = [
        ("hostile", gallery::hostile().to_html()),
        ("many", gallery::many().to_html()),
        ("plain", gallery::plain().to_html()),
    ];
    check_pages(&pages, &[Scheme::Light, Scheme::Dark]);
}

#[test]
fn the_pages_of_every_experiment_and_of_tune_look_well() {
    let pages = measured::pages();
    check_pages(&pages, &[Scheme::Light]);
}

#[test]
fn what_overlaps_leaves_scrolls_or_complains_is_found() {
    let page = |body: &str| {
        format!("<!DOCTYPE html><meta name=color-scheme content='light dark'><body>{body}")
    };
    let text = |x: u32, y: u32, text: &str| format!("<text x={x} y={y} font-size=13>{text}</text>");
    let chart = |texts: &str| page(&format!("<svg role=img width=300 height=60>{texts}</svg>"));
    let pages = [
        (
            "overlap",
            chart(&[text(10, 20, "throughput"), text(40, 24, "MS_XPRESS")].concat()),
        ),
        (
            "beside",
            chart(&[text(10, 20, "throughput"), text(150, 20, "MS_XPRESS")].concat()),
        ),
        ("outside", chart(&text(280, 20, "MS_XPRESS"))),
        ("wide", page("<div style='width:1400px'>wide</div>")),
        ("loud", page("<script>console.error('loud')</script>")),
    ];
    let Some(seen) = look(&views(&pages), Scheme::Light) else {
        return;
    };
    let found = |name: &str, width: u32| {
        let name = format!("{name} at {width}");
        seen.views.iter().find(|view| view.name == name).unwrap()
    };
    assert_eq!(found("overlap", 400).overlaps.len(), 1);
    assert_eq!(found("beside", 400).overlaps.len(), 0);
    assert_eq!(found("outside", 1200).outside.len(), 1);
    assert!(found("wide", 400).scroll_width > 400);
    assert!(seen.complaints.iter().any(|line| line.contains("loud")));
}
