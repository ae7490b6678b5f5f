//! One run of a job: its steps in their order, what it leaves in the history, its outcome.
//!
//! Each step has a session of its own. It fails with its first error: the batch runs on as batches do, the batches
//! after it do not.

mod recorder;
mod report;

pub(super) use self::report::{interrupted, starting};

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use windlass_base::message::table;
use windlass_catalog::{Catalog, Error as CatalogError, HistoryRecord, JobRecord, StepRecord};

use self::recorder::Recorder;
use super::Options;
use super::procedure::ROWS_IN_HISTORY;
use crate::{Failure, Principal, Session};

/// Gives the sessions of steps.
pub(super) type Factory = Arc<dyn Fn() -> Result<Session, Failure> + Send + Sync>;

/// What every run needs.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) folder: PathBuf,
    pub(super) factory: Factory,
    pub(super) options: Options,
    /// The number of this start of the agent.
    pub(super) session_id: i64,
}

/// Who asked for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    User(String),
    /// A schedule by number and name, and when it was due if no agent ran then.
    Schedule {
        schedule_id: i64,
        name: String,
        missed: Option<String>,
    },
    /// A schedule that starts with the agent.
    Start {
        schedule_id: i64,
        name: String,
    },
}

/// Stops a run from outside.
#[derive(Debug, Default)]
pub(super) struct Stopper {
    is_stopped: AtomicBool,
    inner: Mutex<Stopping>,
}

#[derive(Debug, Default)]
struct Stopping {
    by: Option<String>,
    /// Stops the statement that runs.
    statement: Option<Arc<AtomicBool>>,
}

impl Stopper {
    fn inner(&self) -> MutexGuard<'_, Stopping> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the run in somebody's name.
    pub(super) fn stop(&self, by: &str) {
        let mut inner = self.inner();
        inner.by.get_or_insert_with(|| by.to_owned());
        self.is_stopped.store(true, Ordering::Relaxed);
        if let Some(statement) = &inner.statement {
            statement.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    fn attach(&self, statement: Arc<AtomicBool>) {
        let mut inner = self.inner();
        if self.is_stopped() {
            statement.store(true, Ordering::Relaxed);
        }
        inner.statement = Some(statement);
    }

    fn detach(&self) {
        self.inner().statement = None;
    }
}

/// How a step or a job ended; the numbers are those of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Failed = 0,
    Succeeded = 1,
    Retried = 2,
    Cancelled = 3,
}

/// One attempt at a step.
struct Attempt {
    outcome: Outcome,
    recorder: Recorder,
    started: Timestamp,
}

/// Where a run goes after a step.
enum Then {
    Step(i64),
    End(Outcome),
    /// The step to go to does not exist.
    Lost(i64),
}

/// A run.
pub(super) struct Run<'a> {
    context: &'a Context,
    job: &'a JobRecord,
    source: &'a Source,
    stopper: &'a Stopper,
    catalog: Catalog,
    started: Timestamp,
    /// The last step of it, and the history of the last that failed.
    last: Option<StepRecord>,
    failed: Option<HistoryRecord>,
}

impl<'a> Run<'a> {
    /// Runs a job from a step, by default its first.
    ///
    /// # Errors
    /// That what happened cannot be stored.
    pub(super) fn execute(
        context: &'a Context,
        job: &'a JobRecord,
        source: &'a Source,
        stopper: &'a Stopper,
        first: Option<i64>,
    ) -> Result<(), CatalogError> {
        let mut run = Self {
            context,
            job,
            source,
            stopper,
            catalog: Catalog::open(&context.folder)?,
            started: context.options.clock.now(),
            last: None,
            failed: None,
        };
        let steps = run.catalog.agent().steps(&job.job_id)?;
        let mut id = first.unwrap_or(job.start_step_id);
        let (outcome, lost) = loop {
            let Some(step) = steps.iter().find(|step| step.step_id == id) else {
                break (Outcome::Failed, Some(id));
            };
            let outcome = run.step(step)?;
            match after(step, outcome, &steps) {
                Then::Step(next) => id = next,
                Then::End(outcome) => break (outcome, None),
                Then::Lost(next) => break (Outcome::Failed, Some(next)),
            }
        };
        run.end(outcome, lost)
    }

    /// Runs a step until an attempt succeeds or none is left.
    fn step(&mut self, step: &StepRecord) -> Result<Outcome, CatalogError> {
        self.begin_step(step)?;
        let mut retries = 0;
        loop {
            let attempt = self.attempt(step);
            let mut outcome = attempt.outcome;
            if outcome == Outcome::Failed && retries < step.retry_attempts {
                outcome = Outcome::Retried;
            }
            self.note_step(step, &attempt, outcome, retries)?;
            if outcome != Outcome::Retried {
                return Ok(outcome);
            }
            retries += 1;
            if !self.wait_minutes(step.retry_interval) {
                return Ok(Outcome::Cancelled);
            }
        }
    }

    fn attempt(&self, step: &StepRecord) -> Attempt {
        let started = self.context.options.clock.now();
        let mut recorder = Recorder::new(step.flags & ROWS_IN_HISTORY != 0);
        match self.session() {
            Ok(session) => self.run_command(session, step, &mut recorder),
            Err(failure) => recorder.refused(failure),
        }
        self.stopper.detach();
        let outcome = match (self.stopper.is_stopped(), recorder.has_failed()) {
            (true, _) => Outcome::Cancelled,
            (false, true) => Outcome::Failed,
            (false, false) => Outcome::Succeeded,
        };
        Attempt {
            outcome,
            recorder,
            started,
        }
    }

    /// The session of a step. What a remote session has made or changed runs with the rights of the job's owner; where that is no
    /// login, as an administrator from elsewhere.
    fn session(&self) -> Result<Session, Failure> {
        let mut session = (self.context.factory)()?;
        if self.catalog.agent().is_remote(&self.job.job_id)? {
            let owner = &self.job.owner_login_name;
            let principal = match self.catalog.login(owner)? {
                Some(_) => Principal::of_login(&self.catalog, owner)?
                    .ok_or_else(|| table::job_owner_disabled(owner))?,
                None => Principal::confined(owner),
            };
            session.act_as(principal)?;
        }
        Ok(session)
    }

    fn run_command(&self, mut session: Session, step: &StepRecord, recorder: &mut Recorder) {
        self.stopper.attach(session.cancel_flag());
        let database = step.database_name.replace(']', "]]");
        if !database.eq_ignore_ascii_case("master") {
            session.execute_batch(&format!("USE [{database}]"), 1, recorder);
        }
        'script: for batch in windlass_tsql::batch::split(&step.command) {
            for _ in 0..batch.count {
                if recorder.has_failed() || self.stopper.is_stopped() {
                    break 'script;
                }
                session.execute_batch(batch.text, batch.first_line, recorder);
            }
        }
        session.close(recorder);
    }

    /// Waits for the next attempt; false if the run is stopped meanwhile.
    fn wait_minutes(&self, minutes: i64) -> bool {
        let options = &self.context.options;
        let pause = SignedDuration::from_mins(minutes.clamp(0, i64::from(i32::MAX)));
        let until = options.clock.now().saturating_add(pause);
        let until = until.unwrap_or(Timestamp::MAX);
        while options.clock.now() < until {
            if self.stopper.is_stopped() {
                return false;
            }
            std::thread::sleep(options.poll);
        }
        !self.stopper.is_stopped()
    }
}

fn after(step: &StepRecord, outcome: Outcome, steps: &[StepRecord]) -> Then {
    let (action, target) = match outcome {
        Outcome::Succeeded => (step.on_success_action, step.on_success_step_id),
        Outcome::Cancelled => return Then::End(Outcome::Cancelled),
        Outcome::Failed | Outcome::Retried => (step.on_fail_action, step.on_fail_step_id),
    };
    let exists = |id| steps.iter().any(|step| step.step_id == id);
    match action {
        1 => Then::End(Outcome::Succeeded),
        3 if exists(step.step_id + 1) => Then::Step(step.step_id + 1),
        3 => Then::End(outcome),
        4 if exists(target) => Then::Step(target),
        4 => Then::Lost(target),
        _ => Then::End(Outcome::Failed),
    }
}
