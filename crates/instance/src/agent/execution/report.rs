//! What a run leaves: activity, history, the last outcome, a log entry, and the call of the hook.

use jiff::Timestamp;
use windlass_catalog::{
    ActivityRecord, Catalog, Error as CatalogError, HistoryRecord, JobRecord, ServerRecord,
    StepRecord,
};

use super::{Attempt, Context, Outcome, Run, Source};
use crate::agent::schedule::{duration_number, numbers};
use crate::agent::text;

/// The most characters of a message in the history.
const CHARACTERS_MAX: usize = 4000;

const OUTCOME_STEP: &str = "(Job outcome)";

impl Source {
    /// As outcomes tell it.
    fn text(&self) -> String {
        match self {
            Self::User(user) => format!("User {user}"),
            Self::Start { schedule_id, name } => format!("Start Sequence {schedule_id} ({name})"),
            Self::Schedule {
                schedule_id,
                name,
                missed: None,
            } => format!("Schedule {schedule_id} ({name})"),
            Self::Schedule {
                schedule_id,
                name,
                missed: Some(due),
            } => format!(
                "Schedule {schedule_id} ({name}), which was due at {due} while no agent ran"
            ),
        }
    }

    /// SQL Server's number of it.
    fn number(&self) -> &'static str {
        match self {
            Self::Schedule { .. } => "1",
            Self::Start { .. } => "3",
            Self::User(_) => "4",
        }
    }
}

impl Context {
    fn text(&self, at: Timestamp) -> String {
        text(at, &self.options.clock.zone())
    }

    /// A row without a message, of something that started then and ends now.
    fn history(&self, job: &JobRecord, started: Timestamp) -> HistoryRecord {
        let clock = &self.options.clock;
        let (run_date, run_time) = numbers(clock.zone().to_datetime(started));
        let seconds = (clock.now().as_second() - started.as_second()).max(0);
        HistoryRecord {
            instance_id: 0,
            job_id: job.job_id.clone(),
            step_id: 0,
            step_name: OUTCOME_STEP.to_owned(),
            sql_message_id: 0,
            sql_severity: 0,
            message: String::new(),
            run_status: 0,
            run_date,
            run_time,
            run_duration: duration_number(seconds),
            retries_attempted: 0,
            server: crate::Identity::of_instance(Some(&self.folder)).server,
        }
    }
}

impl Run<'_> {
    /// Notes which step begins.
    pub(super) fn begin_step(&mut self, step: &StepRecord) -> Result<(), CatalogError> {
        let session_id = self.context.session_id;
        let now = self.context.text(self.context.options.clock.now());
        self.last = Some(step.clone());
        self.catalog
            .change_agent(|tables| tables.activity_at(session_id, &step.job_id, step.step_id, &now))
    }

    /// Notes an attempt at a step.
    pub(super) fn note_step(
        &mut self,
        step: &StepRecord,
        attempt: &Attempt,
        outcome: Outcome,
        retries: i64,
    ) -> Result<(), CatalogError> {
        let end = match attempt.outcome {
            Outcome::Succeeded => "The step succeeded.",
            Outcome::Cancelled => "The step was cancelled.",
            Outcome::Failed | Outcome::Retried => "The step failed.",
        };
        let user = crate::Identity::of_instance(Some(&self.context.folder)).user;
        let printed = attempt.recorder.text();
        let point = if printed.is_empty() { "" } else { "." };
        let message = format!("Executed as user: {user}. {printed}{point}  {end}");
        let (number, severity) = attempt.recorder.error.unwrap_or((0, 0));
        let record = HistoryRecord {
            step_id: step.step_id,
            step_name: step.step_name.clone(),
            sql_message_id: i64::from(number),
            sql_severity: i64::from(severity),
            message: message.chars().take(CHARACTERS_MAX).collect(),
            run_status: outcome as i64,
            retries_attempted: retries,
            ..self.context.history(self.job, attempt.started)
        };
        let ran = StepRecord {
            last_run_outcome: record.run_status,
            last_run_duration: record.run_duration,
            last_run_retries: retries,
            last_run_date: record.run_date,
            last_run_time: record.run_time,
            ..step.clone()
        };
        let limits = self.context.options.history;
        self.catalog.change_agent(|tables| {
            tables.add_history(&record, limits)?;
            tables.step_ran(&ran)
        })?;
        if outcome == Outcome::Failed {
            self.failed = Some(record);
        }
        Ok(())
    }

    /// Notes the outcome, and acts on it. `lost` is a step that does not exist.
    pub(super) fn end(&mut self, outcome: Outcome, lost: Option<i64>) -> Result<(), CatalogError> {
        let record = HistoryRecord {
            message: self.outcome_text(outcome, lost),
            run_status: outcome as i64,
            ..self.context.history(self.job, self.started)
        };
        let server = ServerRecord {
            job_id: self.job.job_id.clone(),
            last_run_outcome: record.run_status,
            last_outcome_message: Some(record.message.clone()),
            last_run_date: record.run_date,
            last_run_time: record.run_time,
            last_run_duration: record.run_duration,
        };
        let is_at = |level: i64| match outcome {
            Outcome::Succeeded => level & 1 != 0,
            _ => level & 2 != 0,
        };
        let context = self.context;
        let now = context.text(context.options.clock.now());
        let is_deleted = is_at(self.job.delete_level);
        let job_id = self.job.job_id.clone();
        self.catalog.change_agent(|tables| {
            let history = tables.add_history(&record, context.options.history)?;
            if tables.server(&job_id)?.is_some() {
                tables.put_server(&server)?;
            }
            let next = tables.links_of_job(&job_id)?;
            let next = next.iter().filter_map(|link| link.next_run).min();
            let next = next.and_then(|next| Timestamp::from_second(next).ok());
            let next = next.map(|next| context.text(next));
            tables.activity_ended(context.session_id, &job_id, &now, history, next.as_deref())?;
            match is_deleted {
                true => tables.delete_job(&job_id, false),
                false => Ok(()),
            }
        })?;
        self.tell(outcome, &record, is_at(self.job.notify_level_eventlog));
        Ok(())
    }

    fn tell(&self, outcome: Outcome, record: &HistoryRecord, is_logged: bool) {
        let (job, message) = (&self.job.name, &record.message);
        match outcome {
            Outcome::Failed if is_logged => tracing::error!(%job, %message, "a job failed"),
            _ if is_logged => tracing::warn!(%job, %message, "a job ended"),
            _ => tracing::info!(%job, %message, "a job ended"),
        }
        if outcome == Outcome::Failed
            && let Some(hook) = &self.context.options.on_failure
        {
            hook.call(self.job, record, self.failed.as_ref());
        }
    }

    fn outcome_text(&self, outcome: Outcome, lost: Option<i64>) -> String {
        let by = self.source.text();
        let beginning = match outcome {
            Outcome::Succeeded => "The job succeeded.".to_owned(),
            Outcome::Cancelled => {
                let by = self.stopper.inner().by.clone().unwrap_or_default();
                format!("The job was stopped prior to completion by {by}.")
            }
            Outcome::Failed | Outcome::Retried => "The job failed.".to_owned(),
        };
        let missing = match lost {
            Some(id) => format!("  There is no step {id} to run."),
            None => String::new(),
        };
        let last = match &self.last {
            Some(step) => format!(
                "  The last step to run was step {} ({}).",
                step.step_id, step.step_name
            ),
            None => String::new(),
        };
        format!("{beginning}{missing}  The Job was invoked by {by}.{last}")
    }
}

/// Notes that a job starts, so that nobody starts it again.
pub(in crate::agent) fn starting(
    context: &Context,
    catalog: &mut Catalog,
    job: &JobRecord,
    source: &Source,
) -> Result<(), CatalogError> {
    let now = context.text(context.options.clock.now());
    let activity = ActivityRecord {
        session_id: context.session_id,
        job_id: job.job_id.clone(),
        run_requested_date: Some(now.clone()),
        run_requested_source: Some(source.number().to_owned()),
        start_execution_date: Some(now),
        last_executed_step_id: None,
        last_executed_step_date: None,
        stop_execution_date: None,
        job_history_id: None,
        next_scheduled_run_date: None,
    };
    tracing::info!(job = %job.name, by = %source.text(), "a job starts");
    catalog.change_agent(|tables| tables.put_activity(&activity))
}

/// Notes that the agent ended while a job ran, when the next agent starts.
pub(in crate::agent) fn interrupted(
    context: &Context,
    job: &JobRecord,
    activity: &ActivityRecord,
) -> HistoryRecord {
    let started = activity.start_execution_date.as_deref().unwrap_or("");
    let started = started.replace(' ', "T").parse::<jiff::civil::DateTime>();
    let zone = context.options.clock.zone();
    let started = started.ok().and_then(|at| zone.to_timestamp(at).ok());
    HistoryRecord {
        message: "The job failed.  The agent ended while the job ran; what its step had done is as a crash left it."
            .to_owned(),
        run_duration: 0,
        ..context.history(job, started.unwrap_or_else(|| context.options.clock.now()))
    }
}
