//! Tells an operator that a job failed: a command of the system, or a web service.
//!
//! Both get the same JSON object. A hook that fails is logged and changes nothing.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};
use windlass_catalog::{HistoryRecord, JobRecord};

/// What is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hook {
    /// A command for `/bin/sh`, with the object as its input.
    Command(String),
    /// The URL of a service that the object is posted to.
    Webhook(String),
}

impl Hook {
    /// The hook that a setting names: a URL, else a command.
    pub fn of(setting: &str) -> Self {
        let lower = setting.trim().to_ascii_lowercase();
        match lower.starts_with("https://") || lower.starts_with("http://") {
            true => Self::Webhook(setting.trim().to_owned()),
            false => Self::Command(setting.to_owned()),
        }
    }

    /// Calls it for a job that failed; `outcome` is its row of step 0, `step` that of the step that failed.
    pub(super) fn call(
        &self,
        job: &JobRecord,
        outcome: &HistoryRecord,
        step: Option<&HistoryRecord>,
    ) {
        let report = report(&job.name, &job.job_id, outcome, step);
        let called = match self {
            Self::Command(command) => run(command, job, &report),
            Self::Webhook(url) => windlass_device::post_json(url, report.to_string()),
        };
        if let Err(error) = called {
            tracing::error!(job = %job.name, %error, "the hook for jobs that fail has failed");
        }
    }
}

fn report(job: &str, job_id: &str, outcome: &HistoryRecord, step: Option<&HistoryRecord>) -> Json {
    json!({
        "job": job,
        "job_id": job_id,
        "server": outcome.server,
        "outcome": "failed",
        "run_date": outcome.run_date,
        "run_time": outcome.run_time,
        "run_duration": outcome.run_duration,
        "message": outcome.message,
        "step": step.map(|step| json!({
            "step_id": step.step_id,
            "step_name": step.step_name,
            "message_id": step.sql_message_id,
            "severity": step.sql_severity,
            "message": step.message,
        })),
    })
}

fn run(command: &str, job: &JobRecord, report: &Json) -> io::Result<()> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .env("WINDLASS_JOB", &job.name)
        .env("WINDLASS_JOB_ID", &job.job_id)
        // A hook must not send messages in the name of the service.
        .env_remove("NOTIFY_SOCKET")
        .stdin(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A hook that does not read its input is not an error.
        let _unread = writeln!(input, "{report}");
    }
    let status = child.wait()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("it ended with {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn record(step_id: i64, message: &str) -> HistoryRecord {
        HistoryRecord {
            instance_id: 0,
            job_id: "id".to_owned(),
            step_id,
            step_name: "step".to_owned(),
            sql_message_id: 3013,
            sql_severity: 16,
            message: message.to_owned(),
            run_status: 0,
            run_date: 20_261_123,
            run_time: 20_000,
            run_duration: 5,
            retries_attempted: 0,
            server: "SERVER".to_owned(),
        }
    }

    #[test]
    fn a_service_gets_the_report() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let service = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut part = [0; 4096];
            while !request.ends_with(b"}") {
                let count = stream.read(&mut part).unwrap();
                request.extend_from_slice(&part[..count]);
            }
            stream
                .write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
                .unwrap();
            String::from_utf8(request).unwrap()
        });
        let url = format!("http://{address}/jobs?token=1");
        let sent = windlass_device::post_json(
            &url,
            report(
                "nightly",
                "id",
                &record(0, "The job failed."),
                Some(&record(1, "BACKUP failed")),
            )
            .to_string(),
        );
        sent.unwrap();
        let request = service.join().unwrap();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /jobs?token=1 HTTP/1.1"), "{head}");
        assert!(head.contains("content-type: application/json"), "{head}");
        let body: Json = serde_json::from_str(body).unwrap();
        assert_eq!(
            (&body["job"], &body["step"]["message_id"]),
            (&json!("nightly"), &json!(3013))
        );
        // Nobody listens any more; the secret of the URL is not told.
        let failed = windlass_device::post_json(&url, String::new()).unwrap_err();
        assert!(!failed.to_string().contains("token"), "{failed}");
    }

    #[test]
    fn a_url_is_posted_to_and_anything_else_is_a_command() {
        let url = "https://example.com/hook";
        assert_eq!(
            Hook::of(&format!(" {url}\n")),
            Hook::Webhook(url.to_owned())
        );
        let command = "curl https://example.com";
        assert_eq!(Hook::of(command), Hook::Command(command.to_owned()));
    }
}
