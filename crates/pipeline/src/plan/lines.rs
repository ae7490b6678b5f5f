//! A plan as a list of values with their reasons, for people and for programs. Each value is declared once,
//! in [`Plan::lines`].

use std::fmt;

use serde_json::{Map, Value as Json, json};
use windlass_base::size::Bytes;
use windlass_codec::Effort;
use windlass_source::TemporaryCopy;

use super::{Chosen, ChosenIoMethod, Plan};
use crate::request::Goal;

/// One value of a plan.
struct Line {
    /// The key in JSON; people read it with spaces and without the unit.
    key: &'static str,
    value: Value,
    because: String,
}

enum Value {
    Word(String),
    Count(usize),
    Bytes(usize),
    BytesPerSecond(u64),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => f.pad(word),
            Self::Count(count) => f.pad(&count.to_string()),
            Self::Bytes(bytes) => f.pad(&Bytes(*bytes as u64).to_string()),
            Self::BytesPerSecond(rate) => f.pad(&format!("{}/s", Bytes(*rate))),
        }
    }
}

impl Value {
    fn to_json(&self) -> Json {
        match self {
            Self::Word(word) => json!(word),
            Self::Count(count) => json!(count),
            Self::Bytes(bytes) => json!(bytes),
            Self::BytesPerSecond(rate) => json!(rate),
        }
    }
}

fn line(key: &'static str, value: Value, because: impl Into<String>) -> Line {
    let because = because.into();
    Line {
        key,
        value,
        because,
    }
}

fn count(key: &'static str, chosen: Chosen) -> Line {
    line(key, Value::Count(chosen.value), chosen.because)
}

fn bytes(key: &'static str, chosen: Chosen) -> Line {
    line(key, Value::Bytes(chosen.value), chosen.because)
}

fn io_method(key: &'static str, chosen: &ChosenIoMethod) -> Line {
    line(key, Value::Word(chosen.to_string()), &chosen.because)
}

fn temporary_copy(copied: &TemporaryCopy) -> Line {
    let (what, because) = match copied {
        TemporaryCopy::Clone => ("clone", "writers wait briefly".to_owned()),
        TemporaryCopy::Copy(folder) => (
            "copy",
            format!("in '{}': writers wait for a plain copy", folder.display()),
        ),
        TemporaryCopy::None(because) => ("none", format!("writers wait: {because}")),
    };
    line("temporary_copy", Value::Word(what.to_owned()), because)
}

impl Plan {
    fn lines(&self) -> Vec<Line> {
        let mut lines = vec![
            line(
                "compression",
                Value::Word(self.method()),
                self.level_reason(),
            ),
            line("goal", Value::Word(self.goal.name().to_owned()), ""),
            line("families", Value::Count(self.families), ""),
            line("mirrors", Value::Count(self.mirrors), ""),
            line("stripes", self.stripes().0, self.stripes().1),
            bytes("transfer_bytes", self.transfer_bytes),
            bytes("frame_bytes", self.frame_bytes),
            count("threads", self.threads),
            count("reads_in_flight", self.depth),
            count("writes_in_flight", self.write_depth),
        ];
        lines.extend(self.part_bytes.map(|part| bytes("part_bytes", part)));
        lines.extend(self.temporary_copy.as_ref().map(temporary_copy));
        lines.extend(self.limits.given().map(|limit| {
            let because = format!("{} as given", limit.option);
            line(
                limit.key,
                Value::BytesPerSecond(limit.bytes_per_second),
                because,
            )
        }));
        let priority = self.priority.as_ref();
        lines.extend(priority.map(|why| line("priority", Value::Word("low".to_owned()), why)));
        lines.push(io_method("reads_by", &self.reads_by));
        let writes_by = self.writes_by.as_ref();
        lines.extend(writes_by.map(|writes_by| io_method("writes_by", writes_by)));
        lines.extend([
            count("frame_buffers", self.frame_buffers),
            count("output_buffers", self.output_buffers),
            line(
                "codec_memory_bytes",
                Value::Bytes(self.codec_bytes),
                "for each thread",
            ),
        ]);
        lines.extend((self.sample_bytes > 0).then(|| {
            line(
                "sample_memory_bytes",
                Value::Bytes(self.sample_bytes),
                "expands a sample of the chunks before they are written",
            )
        }));
        lines.push(line(
            "memory_bytes",
            Value::Bytes(self.memory_bytes()),
            "upper bound of all of the above",
        ));
        lines
    }

    fn stripes(&self) -> (Value, &'static str) {
        let word = |word: &str| Value::Word(word.to_owned());
        match self.even {
            _ if self.families == 1 => (word("one"), ""),
            Some(because) => (word("even"), because),
            None => (
                word("by demand"),
                "the device that is free first takes the next chunk",
            ),
        }
    }

    fn level_reason(&self) -> String {
        match (self.adapts_level, self.goal) {
            (false, _) => String::new(),
            (true, Goal::Fast) => {
                "per chunk, as small as possible without taking longer".to_owned()
            }
            (true, Goal::Small) => {
                "per chunk, as small as possible within three times the shortest time".to_owned()
            }
            (true, Goal::Gentle) => format!(
                "per chunk, never above {}: leaves the cores to others",
                Effort::Low
            ),
        }
    }

    /// An object with `value` and, where there is one, `because` for each key.
    pub fn to_json(&self) -> Json {
        let entry = |line: Line| {
            let mut object = json!({ "value": line.value.to_json() });
            if !line.because.is_empty() {
                object["because"] = json!(line.because);
            }
            (line.key.to_owned(), object)
        };
        Json::Object(self.lines().into_iter().map(entry).collect::<Map<_, _>>())
    }
}

impl fmt::Display for Plan {
    /// A line for each value: name, value, reason.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.lines() {
            let name = line.key.strip_suffix("_bytes").unwrap_or(line.key);
            let name = name.replace('_', " ");
            match line.because.as_str() {
                "" => writeln!(f, "{name:<18}{}", line.value)?,
                because => writeln!(f, "{name:<18}{:<12}{because}", line.value)?,
            }
        }
        Ok(())
    }
}
