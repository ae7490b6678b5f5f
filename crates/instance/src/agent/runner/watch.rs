//! The thread of an agent: what is due, what is asked for, and the start of jobs.

use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use windlass_catalog::{
    ActivityRecord, AgentTables, Catalog, Error as CatalogError, HistoryRecord, JobRecord,
    RequestRecord, ServerRecord,
};

use super::{Options, Shared};
use crate::Failure;
use crate::agent::execution::{Context, Factory, Run, Source, Stopper, interrupted, starting};
use crate::agent::{Now, schedule_link, text};

/// The schedules that start with the agent.
const AT_START: i64 = 64;

pub(super) struct Watch {
    context: Context,
    shared: Arc<Shared>,
    catalog: Catalog,
    started: Timestamp,
    /// What the catalog's number of changes was at the last look.
    seen: Option<i64>,
    /// When something is due.
    next: Option<Timestamp>,
}

/// A job to start.
struct Start {
    job: JobRecord,
    source: Source,
    first: Option<i64>,
}

impl Watch {
    /// Begins to watch: notes what the last agent left, and starts the jobs that start with the agent.
    pub(super) fn begin(
        folder: &Path,
        factory: Factory,
        options: Options,
        shared: Arc<Shared>,
    ) -> Result<Self, Failure> {
        let started = options.clock.now();
        let mut watch = Self {
            context: Context {
                folder: folder.to_owned(),
                factory,
                options,
                session_id: 0,
            },
            shared,
            catalog: Catalog::open(folder)?,
            started,
            seen: None,
            next: None,
        };
        let at_start = watch.open_session()?;
        watch.start_all(at_start);
        Ok(watch)
    }

    fn now(&self) -> Now {
        let clock = &self.context.options.clock;
        Now {
            at: clock.now(),
            zone: clock.zone(),
        }
    }

    fn open_session(&mut self) -> Result<Vec<Start>, CatalogError> {
        let now = self.now();
        let limits = self.context.options.history;
        let context = &self.context;
        let (session_id, starts, broken) = self.catalog.change_agent(|tables| {
            let mut broken = Vec::new();
            for activity in tables.activity()? {
                let job = tables.job(&activity.job_id)?;
                let is_open = activity.start_execution_date.is_some()
                    && activity.stop_execution_date.is_none();
                if let Some(job) = job.filter(|_| is_open) {
                    let record = interrupted(context, &job, &activity);
                    note_interrupted(tables, &record, &activity, &now, limits)?;
                    broken.push((job, record));
                }
            }
            // Requests to an agent that is gone are void.
            if let Some(last) = tables.requests()?.last() {
                tables.answered(last.request_id)?;
            }
            let session_id = tables.begin_session(&now.text())?;
            // The zone may have changed: what is to come is computed again, what was missed is not.
            for link in tables.links()? {
                if link.next_run.is_some_and(|next| next > now.at.as_second())
                    && let Some(job) = tables.job(&link.job_id)?
                {
                    schedule_link(tables, job.enabled, &link, &now)?;
                }
            }
            Ok::<_, CatalogError>((session_id, at_start(tables)?, broken))
        })?;
        self.context.session_id = session_id;
        for (job, record) in broken {
            tracing::error!(job = %job.name, message = %record.message, "a job was interrupted");
            if let Some(hook) = &self.context.options.on_failure {
                hook.call(&job, &record, None);
            }
        }
        Ok(starts)
    }

    /// Watches until the agent is stopped.
    pub(super) fn run(&mut self) {
        loop {
            if let Err(error) = self.look() {
                tracing::error!(%error, "the agent cannot read its jobs");
                self.seen = None;
            }
            let state = self.shared.state();
            if state.is_stopping {
                return;
            }
            let waited = self
                .shared
                .changed
                .wait_timeout(state, self.pause())
                .unwrap_or_else(PoisonError::into_inner);
            if waited.0.is_stopping {
                return;
            }
        }
    }

    /// Until the next look.
    fn pause(&self) -> Duration {
        let poll = self.context.options.poll;
        let left = self.next.and_then(|next| {
            let left = next.duration_since(self.context.options.clock.now());
            Duration::try_from(left).ok()
        });
        left.map_or(poll, |left| left.clamp(Duration::from_millis(1), poll))
    }

    fn look(&mut self) -> Result<(), CatalogError> {
        let seen = self.catalog.data_version()?;
        let now = self.now();
        let is_due = self.next.is_some_and(|next| next <= now.at);
        if self.seen == Some(seen) && !is_due {
            return Ok(());
        }
        let requests = self.catalog.agent().requests()?;
        let due = self.due(&now)?;
        self.start_all(due);
        let last = requests.last().map(|request| request.request_id);
        for request in requests {
            self.answer(request)?;
        }
        // Only now: a job is either asked for or runs, so that nobody starts it twice.
        if let Some(last) = last {
            self.catalog.change_agent(|tables| tables.answered(last))?;
        }
        let links = self.catalog.agent().links()?;
        let next = links.iter().filter_map(|link| link.next_run).min();
        self.next = next.and_then(|next| Timestamp::from_second(next).ok());
        self.seen = Some(seen);
        Ok(())
    }

    /// The jobs that are due. Their next times are stored first, so that nothing runs twice.
    fn due(&mut self, now: &Now) -> Result<Vec<Start>, CatalogError> {
        let is_due = |next: Option<i64>| next.is_some_and(|next| next <= now.at.as_second());
        let links = self.catalog.agent().links()?;
        if !links.iter().any(|link| is_due(link.next_run)) {
            return Ok(Vec::new());
        }
        let started = self.started;
        self.catalog.change_agent(|tables| {
            let mut starts = Vec::new();
            for link in tables.links()? {
                let Some(due) = link.next_run.filter(|next| is_due(Some(*next))) else {
                    continue;
                };
                let Some(job) = tables.job(&link.job_id)? else {
                    continue;
                };
                schedule_link(tables, job.enabled, &link, now)?;
                let record = tables.schedule(link.schedule_id)?;
                if tables.server(&job.job_id)?.is_none() {
                    continue;
                }
                let due = Timestamp::from_second(due).unwrap_or(now.at);
                starts.push(Start {
                    source: Source::Schedule {
                        schedule_id: link.schedule_id,
                        name: record.map(|record| record.name).unwrap_or_default(),
                        missed: (due < started).then(|| text(due, &now.zone)),
                    },
                    job,
                    first: None,
                });
            }
            Ok(starts)
        })
    }

    fn answer(&mut self, request: RequestRecord) -> Result<(), CatalogError> {
        if request.is_stop {
            let state = self.shared.state();
            if let Some(stopper) = state.running.get(&request.job_id) {
                stopper.stop(&format!("User {}", request.user_name));
            }
            return Ok(());
        }
        let Some(job) = self.catalog.agent().job(&request.job_id)? else {
            return Ok(());
        };
        self.start_all(vec![Start {
            job,
            source: Source::User(request.user_name),
            first: request.start_step_id,
        }]);
        Ok(())
    }

    fn start_all(&mut self, starts: Vec<Start>) {
        for start in starts {
            self.start(start);
        }
    }

    /// Starts a job on a thread of its own, unless it runs.
    fn start(&mut self, start: Start) {
        let job_id = start.job.job_id.clone();
        let stopper = Arc::new(Stopper::default());
        {
            let mut state = self.shared.state();
            if state.is_stopping {
                return;
            }
            if state.running.contains_key(&job_id) {
                let (job, by) = (&start.job.name, &start.source);
                tracing::warn!(%job, ?by, "a job is not started: it is still running");
                return;
            }
            state.running.insert(job_id.clone(), Arc::clone(&stopper));
        }
        let ended = Ended {
            shared: Arc::clone(&self.shared),
            job_id,
        };
        if let Err(error) = starting(&self.context, &mut self.catalog, &start.job, &start.source) {
            tracing::error!(job = %start.job.name, %error, "the start of a job cannot be stored");
            return;
        }
        let context = self.context.clone();
        let spawned = std::thread::Builder::new()
            .name("windlass-job".to_owned())
            .spawn(move || {
                let ran = Run::execute(&context, &start.job, &start.source, &stopper, start.first);
                if let Err(error) = ran {
                    tracing::error!(job = %start.job.name, %error, "a run of a job cannot be stored");
                }
                drop(ended);
            });
        if let Err(error) = spawned {
            tracing::error!(%error, "a job has no thread to run on");
        }
    }
}

/// Ends a run, however it ends.
struct Ended {
    shared: Arc<Shared>,
    job_id: String,
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.shared.state().running.remove(&self.job_id);
        self.shared.changed.notify_all();
    }
}

fn at_start(tables: AgentTables<'_>) -> Result<Vec<Start>, CatalogError> {
    let mut starts = Vec::new();
    for link in tables.links()? {
        let record = tables.schedule(link.schedule_id)?;
        let record = record.filter(|record| record.enabled && record.freq_type == AT_START);
        let job = tables.job(&link.job_id)?.filter(|job| job.enabled);
        if let (Some(record), Some(job)) = (record, job)
            && tables.server(&job.job_id)?.is_some()
        {
            starts.push(Start {
                job,
                source: Source::Start {
                    schedule_id: record.schedule_id,
                    name: record.name,
                },
                first: None,
            });
        }
    }
    Ok(starts)
}

fn note_interrupted(
    tables: AgentTables<'_>,
    record: &HistoryRecord,
    activity: &ActivityRecord,
    now: &Now,
    limits: windlass_catalog::HistoryLimits,
) -> Result<(), CatalogError> {
    let history = tables.add_history(record, limits)?;
    let (session_id, job_id) = (activity.session_id, &activity.job_id);
    tables.activity_ended(session_id, job_id, &now.text(), history, None)?;
    if tables.server(job_id)?.is_none() {
        return Ok(());
    }
    tables.put_server(&ServerRecord {
        job_id: job_id.clone(),
        last_run_outcome: record.run_status,
        last_outcome_message: Some(record.message.clone()),
        last_run_date: record.run_date,
        last_run_time: record.run_time,
        last_run_duration: record.run_duration,
    })
}
