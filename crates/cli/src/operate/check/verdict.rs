//! States, reasons, and their output.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use windlass_base::message::table;
use windlass_base::size::counted;

use super::Limits;

/// A state of monitoring systems; smaller is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Ok,
    Unknown,
    Warning,
    Critical,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Unknown => "UNKNOWN",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
        }
    }

    pub(super) fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Critical => 2,
            Self::Unknown => 3,
        }
    }
}

/// Why the state is not OK.
#[derive(Debug, Clone)]
pub(super) struct Reason {
    pub(super) state: State,
    /// The kind of reason: a word for programs.
    pub(super) kind: &'static str,
    /// A value: seconds, a count, or a message's number.
    pub(super) number: Option<i64>,
    /// The reason in words.
    pub(super) text: String,
}

impl Reason {
    pub(super) fn new(state: State, kind: &'static str, text: impl Into<String>) -> Self {
        Self {
            state,
            kind,
            number: None,
            text: text.into(),
        }
    }

    /// Judges the age, in seconds, of the newest restorable backup that is not dated in the future.
    pub(super) fn of_age(age: Option<i64>, has_ahead: bool, limits: Limits) -> Option<Self> {
        match age {
            None if has_ahead => Some(Self::new(
                State::Critical,
                "nothing-restorable",
                "has no backup that can be restored, except what is dated in the future",
            )),
            None => Some(Self::new(
                State::Critical,
                "nothing-restorable",
                "has no backup that can be restored",
            )),
            Some(age) if age > limits.rpo => {
                let text = format!(
                    "the newest restorable backup started {} ago, more than {}",
                    duration(age),
                    duration(limits.rpo)
                );
                Some(Self::new(State::Critical, "rpo-missed", text).numbered(age))
            }
            Some(_) => None,
        }
    }

    /// That the dates of backups contradict their log, so that no restore chooses one of them.
    pub(super) fn contradicted(one: &str, other: &str) -> Self {
        let message = table::order_contradicted(one, other);
        let text = format!(
            "which state is the newest cannot be told: by its date, {one} is older than {other}, but not by its \
             LSN or by what was known when it was made; choose a set, or make a new full backup"
        );
        Self::new(State::Warning, "order-contradicted", text).numbered(message.number.into())
    }

    pub(super) fn numbered(self, number: i64) -> Self {
        Self {
            number: Some(number),
            ..self
        }
    }
}

/// A database, or something else that is checked.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    /// Its name; `None` if it is not a database.
    pub(super) database: Option<String>,
    pub(super) reasons: Vec<Reason>,
    /// Seconds since the start of the newest restorable backup.
    pub(super) age: Option<i64>,
    /// Additional values: name and value.
    pub(super) counts: Vec<(&'static str, u64)>,
}

impl Subject {
    pub(super) fn new(database: Option<&str>) -> Self {
        Self {
            database: database.map(str::to_owned),
            reasons: Vec::new(),
            age: None,
            counts: Vec::new(),
        }
    }

    fn state(&self) -> State {
        let states = self.reasons.iter().map(|reason| reason.state);
        states.max().unwrap_or(State::Ok)
    }
}

/// Everything that was checked.
#[derive(Debug, Clone)]
pub(super) struct Verdict {
    pub(super) subjects: Vec<Subject>,
}

impl Verdict {
    /// The verdict if nothing could be checked.
    pub(super) fn unknown(text: impl Into<String>) -> Self {
        let mut subject = Subject::new(None);
        subject
            .reasons
            .push(Reason::new(State::Unknown, "unreadable", text));
        Self {
            subjects: vec![subject],
        }
    }

    pub(super) fn state(&self) -> State {
        let states = self.subjects.iter().map(Subject::state);
        states.max().unwrap_or(State::Ok)
    }

    /// The output line of a plugin: text, a bar, performance data.
    pub(super) fn to_line(&self, limits: Limits) -> String {
        let mut reasons: Vec<(State, String)> = Vec::new();
        for subject in &self.subjects {
            for reason in &subject.reasons {
                let text = match &subject.database {
                    Some(database) => format!("{database}: {}", reason.text),
                    None => reason.text.clone(),
                };
                reasons.push((reason.state, text));
            }
        }
        reasons.sort_by_key(|(state, _)| std::cmp::Reverse(*state));
        let words: Vec<String> = reasons.into_iter().map(|(_, text)| text).collect();
        let words = match words.as_slice() {
            [] => self.summary(),
            words => words.join("; "),
        };
        // A bar would start the performance data, and the output is one line.
        let words = words.replace('|', "/");
        let words: String = words
            .chars()
            .map(|one| if one.is_control() { ' ' } else { one })
            .collect();
        let state = self.state().name();
        let mut line = format!("WINDLASS {state} - {words}");
        let data = self.performance(limits);
        if !data.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(line, " | {}", data.join(" "));
        }
        line
    }

    fn summary(&self) -> String {
        let databases = self.subjects.iter();
        let databases: Vec<&Subject> = databases.filter(|one| one.database.is_some()).collect();
        let oldest = databases.iter().filter_map(|one| one.age).max();
        let oldest = oldest.map_or_else(String::new, |age| {
            format!(", the oldest of {}", duration(age))
        });
        format!(
            "{} with a restorable backup{oldest}",
            counted(databases.len(), "database")
        )
    }

    fn performance(&self, limits: Limits) -> Vec<String> {
        let mut data = Vec::new();
        for subject in &self.subjects {
            let label = |name: &str| match &subject.database {
                // In quotes, a label may contain anything except quotes and equals signs.
                Some(database) => {
                    let is_safe = |one: char| !matches!(one, '\'' | '=' | '|') && !one.is_control();
                    let database: String = database
                        .chars()
                        .map(|one| if is_safe(one) { one } else { '_' })
                        .collect();
                    format!("'{database} {name}'")
                }
                None => name.to_owned(),
            };
            if let Some(age) = subject.age {
                data.push(format!("{}={age}s;;{};0", label("age"), limits.rpo));
            }
            for (name, count) in &subject.counts {
                data.push(format!("{}={count};;;0", label(name)));
            }
        }
        data
    }

    pub(super) fn to_json(&self, limits: Limits) -> Json {
        let subject = |subject: &Subject| {
            let reasons = subject.reasons.iter().map(|reason| {
                json!({
                    "state": reason.state.name(),
                    "reason": reason.kind,
                    "number": reason.number,
                    "text": reason.text,
                })
            });
            let mut object = json!({
                "database": subject.database,
                "state": subject.state().name(),
                "age_seconds": subject.age,
                "reasons": reasons.collect::<Vec<_>>(),
            });
            for (name, count) in &subject.counts {
                object[*name] = json!(count);
            }
            object
        };
        json!({
            "state": self.state().name(),
            "code": self.state().code(),
            "rpo_seconds": limits.rpo,
            "verified_within_seconds": limits.verified_within,
            "checked": self.subjects.iter().map(subject).collect::<Vec<_>>(),
        })
    }
}

/// A duration in human-readable form.
pub(super) fn duration(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{:.1} h", seconds as f64 / 3600.0),
        _ => format!("{:.1} days", seconds as f64 / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            rpo: 86_400,
            verified_within: None,
            now: "2026-11-20 10:00:00".parse().unwrap(),
            now_utc: 0,
        }
    }

    #[test]
    fn a_line_has_the_worst_reason_first_and_data_that_plugins_understand() {
        let mut app = Subject::new(Some("it's|a=b"));
        app.age = Some(100);
        app.counts.push(("failures", 2));
        let reason = |state, text: &str| Reason::new(state, "x", text);
        app.reasons = vec![
            reason(State::Warning, "one\ntwo"),
            reason(State::Critical, "a|b"),
        ];
        let verdict = Verdict {
            subjects: vec![app],
        };
        assert_eq!(
            verdict.to_line(limits()),
            "WINDLASS CRITICAL - it's/a=b: a/b; it's/a=b: one two \
             | 'it_s_a_b age'=100s;;86400;0 'it_s_a_b failures'=2;;;0"
        );
        assert_eq!(verdict.state().code(), 2);
    }

    #[test]
    fn the_worst_state_counts_and_unknown_is_better_than_a_warning() {
        let codes = [State::Critical, State::Warning, State::Unknown, State::Ok];
        assert!(codes.is_sorted_by(|worse, better| worse > better));
        assert_eq!(codes.map(State::code), [2, 1, 3, 0]);
    }

    #[test]
    fn times_are_told_in_the_unit_that_fits() {
        let times = [5, 300, 9000, 200_000].map(duration);
        assert_eq!(times, ["5 s", "5 min", "2.5 h", "2.3 days"]);
    }
}
