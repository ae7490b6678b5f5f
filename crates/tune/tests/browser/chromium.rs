//! A headless Chromium that inspects pages.
//!
//! Each page is in a frame of its width within one host page, because the browser's own window
//! cannot be as narrow as a phone. A script of the host, not of the page, measures the frames and
//! writes its findings into the host's document, which the browser prints.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

/// The reader's preferred colour scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Light,
    Dark,
}

/// A page at a width.
pub(crate) struct View {
    pub(crate) name: String,
    pub(crate) html: String,
    pub(crate) width: u32,
}

/// The observations.
pub(crate) struct Seen {
    pub(crate) views: Vec<Findings>,
    /// Console output of the pages, including errors of the browser.
    pub(crate) complaints: Vec<String>,
}

/// The observations of a page.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) name: String,
    /// Number of visible drawings.
    pub(crate) charts: u64,
    /// Texts in them.
    pub(crate) texts: u64,
    /// Pairs of overlapping texts.
    pub(crate) overlaps: Vec<String>,
    /// Texts that extend beyond their drawing.
    pub(crate) outside: Vec<String>,
    /// Texts in drawings with too little contrast to the page.
    pub(crate) faint: Vec<String>,
    /// Width of the page's content, and of its window.
    pub(crate) scroll_width: u64,
    pub(crate) inner_width: u64,
    /// Whether dark mode was requested.
    pub(crate) is_dark: bool,
    /// Relative luminance of the page and of its text, 0 to 1.
    pub(crate) paper: f64,
    pub(crate) ink: f64,
}

/// Time limit of the browser for all pages of a test.
const PATIENCE: Duration = Duration::from_secs(180);

/// Inspects pages. `None`, with a message, if there is no browser.
///
/// # Panics
/// If there is no browser although `CI` is set, or the browser fails.
pub(crate) fn look(views: &[View], scheme: Scheme) -> Option<Seen> {
    let Some(program) = find() else {
        assert!(
            std::env::var_os("CI").is_none(),
            "Chromium is not installed: apt-get install chromium, or name it with CHROMIUM"
        );
        eprintln!("SKIPPED: Chromium is not installed, so no page was looked at");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("host.html");
    std::fs::write(&host, host_page(views)).unwrap();
    let (document, log) = run(&program, folder.path(), &host, scheme);
    let found = document
        .split_once("<pre id=\"found\">")
        .and_then(|(_, rest)| rest.split_once("</pre>"))
        .unwrap_or_else(|| panic!("the browser printed no findings:\n{log}"))
        .0;
    let found: Json = serde_json::from_str(found).expect("findings");
    let complaints = log.lines().filter(|line| line.contains(":CONSOLE"));
    Some(Seen {
        views: found.as_array().unwrap().iter().map(findings).collect(),
        complaints: complaints.map(str::to_owned).collect(),
    })
}

fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        return Some(PathBuf::from(named));
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|program| program.is_file())
}

/// The browser's output: the document, and its log.
fn run(program: &Path, folder: &Path, host: &Path, scheme: Scheme) -> (String, String) {
    let (document, log) = (folder.join("document"), folder.join("log"));
    let dark = match scheme {
        Scheme::Dark => 0,
        Scheme::Light => 1,
    };
    let mut browser = Command::new(program)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
        ])
        .args(["--no-first-run", "--disable-background-networking"])
        .args([
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .arg(format!("--blink-settings=preferredColorScheme={dark}"))
        .args(["--enable-logging=stderr", "--window-size=1400,1000"])
        .args(["--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("file://{}", host.display()))
        .stdin(Stdio::null())
        .stdout(File::create(&document).unwrap())
        .stderr(File::create(&log).unwrap())
        .spawn()
        .expect("Chromium starts");
    let begun = Instant::now();
    while browser.try_wait().unwrap().is_none() {
        if begun.elapsed() > PATIENCE {
            browser.kill().ok();
            browser.wait().ok();
            panic!("Chromium did not end:\n{}", read(&log));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    (read(&document), read(&log))
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()
}

fn host_page(views: &[View]) -> String {
    let mut page = "<!DOCTYPE html><meta charset=utf-8><body>".to_owned();
    for view in views {
        let attribute = |text: &str| text.replace('&', "&amp;").replace('"', "&quot;");
        write!(
            page,
            "<iframe title=\"{}\" style=\"border:0;width:{}px;height:1000px\" srcdoc=\"{}\"></iframe>",
            attribute(&view.name),
            view.width,
            attribute(&view.html)
        )
        .unwrap();
    }
    page.push_str("<pre id=\"found\"></pre><script>");
    page.push_str(include_str!("look.js"));
    page.push_str("</script>");
    page
}

fn findings(found: &Json) -> Findings {
    let texts = |key: &str| {
        let texts = found[key].as_array().unwrap().iter();
        texts
            .map(|text| text.as_str().unwrap().to_owned())
            .collect()
    };
    let number = |key: &str| found[key].as_u64().unwrap();
    Findings {
        name: found["name"].as_str().unwrap().to_owned(),
        charts: number("charts"),
        texts: number("texts"),
        overlaps: texts("overlaps"),
        outside: texts("outside"),
        faint: texts("faint"),
        scroll_width: number("scrollWidth"),
        inner_width: number("innerWidth"),
        is_dark: found["dark"].as_bool().unwrap(),
        paper: found["paper"].as_f64().unwrap(),
        ink: found["ink"].as_f64().unwrap(),
    }
}
