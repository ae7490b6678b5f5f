//! The agent with a clock that tests set, on instances with sessions of their own.

mod remote;

use std::fmt::Write as _;
use std::time::Instant;

use jiff::SignedDuration;
use tempfile::TempDir;
use windlass_catalog::{ActivityRecord, Catalog, HistoryRecord, JobScheduleRecord};

use super::*;
use crate::{Collected, Instance};

/// The longest that a test waits.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
struct HandClock(Mutex<Timestamp>);

impl HandClock {
    fn advance(&self, minutes: i64) {
        let mut now = self.0.lock().unwrap();
        *now = now.checked_add(SignedDuration::from_mins(minutes)).unwrap();
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }

    fn zone(&self) -> TimeZone {
        TimeZone::UTC
    }
}

struct Place {
    folder: TempDir,
    clock: Arc<HandClock>,
}

impl Place {
    /// An instance whose clock shows a time in 2090, which no schedule of a test has missed.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        drop(Catalog::open(folder.path()).unwrap());
        let noon = "2090-01-01T12:00:00Z".parse().unwrap();
        Self {
            folder,
            clock: Arc::new(HandClock(Mutex::new(noon))),
        }
    }

    fn options(&self) -> Options {
        Options {
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            poll: Duration::from_millis(5),
            ..Options::default()
        }
    }

    fn start_with(&self, options: Options) -> Result<Agent, Failure> {
        let folder = self.folder.path().to_owned();
        start(self.folder.path(), move || session(&folder), options)
    }

    fn start(&self) -> Agent {
        self.start_with(self.options()).unwrap()
    }

    /// The numbers of the messages of a batch in msdb, without those of success.
    fn run(&self, text: &str) -> Vec<u32> {
        let mut session = session(self.folder.path()).unwrap();
        let mut sink = Collected::default();
        session.execute_batch("USE msdb", 1, &mut Collected::default());
        session.execute_batch(text, 1, &mut sink);
        let mut numbers = sink.numbers();
        numbers.retain(|number| *number != 14243);
        numbers
    }

    /// The same for a batch without errors.
    #[track_caller]
    fn well(&self, text: &str) {
        assert_eq!(self.run(text), [0u32; 0], "{text}");
    }

    /// Adds a job with these steps: name, command, further arguments.
    fn job(&self, name: &str, steps: &[(&str, &str, &str)]) {
        let mut text =
            format!("EXEC sp_add_job '{name}'\nEXEC sp_add_jobserver @job_name = '{name}'\n");
        for (step, command, further) in steps {
            let command = command.replace('\'', "''");
            writeln!(
                text,
                "EXEC sp_add_jobstep @job_name = '{name}', @step_name = '{step}', @command = '{command}'{further}"
            )
            .unwrap();
        }
        self.well(&text);
    }

    fn catalog(&self) -> Catalog {
        Catalog::open(self.folder.path()).unwrap()
    }

    /// The history, the oldest first.
    fn history(&self) -> Vec<HistoryRecord> {
        let mut history = self.catalog().agent().history(None).unwrap();
        history.reverse();
        history
    }

    /// Steps and outcomes of the history.
    fn outcomes(&self) -> Vec<(i64, i64)> {
        let history = self.history().into_iter();
        history.map(|row| (row.step_id, row.run_status)).collect()
    }

    /// Waits until so many jobs have ended.
    fn wait_for_ends(&self, count: usize) {
        self.wait(|| self.history().iter().filter(|row| row.step_id == 0).count() >= count);
    }

    fn wait(&self, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < PATIENCE, "{:#?}", self.history());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn wait_until_running(&self) {
        self.wait(|| {
            let activity = self.catalog().agent().activity().unwrap();
            activity
                .iter()
                .any(|activity| activity.last_executed_step_id.is_some())
        });
    }
}

fn session(folder: &Path) -> Result<Session, Failure> {
    Ok(Session::new(Instance::open(Some(folder))?))
}

const DAILY: &str = "@enabled = 1, @freq_type = 4, @freq_interval = 1, @active_start_date = 20900102, \
    @active_start_time = 20000";

const ENDLESS: &str = "DECLARE @i int = 0 WHILE 1 = 1 SET @i = 1 - @i";

#[test]
fn a_job_runs_when_it_is_due_and_is_due_again() {
    let place = Place::new();
    place.job("nightly", &[("greet", "PRINT 'good night'", "")]);
    let agent = place.start();
    // Defined while the agent runs.
    let text = format!("EXEC sp_add_jobschedule @job_name = 'nightly', @name = 'at two', {DAILY}");
    place.well(&text);
    place.clock.advance(13 * 60);
    std::thread::sleep(Duration::from_millis(100));
    assert!(place.outcomes().is_empty(), "it is not yet two");
    place.clock.advance(60);
    place.wait_for_ends(1);
    place.clock.advance(24 * 60);
    place.wait_for_ends(2);
    agent.stop(false);
    assert_eq!(place.outcomes(), [(1, 1), (0, 1), (1, 1), (0, 1)]);
    let history = place.history();
    assert_eq!(
        (history[1].run_date, history[1].run_time),
        (20_900_102, 20_000)
    );
    assert!(
        history[0]
            .message
            .contains("good night [SQLSTATE 01000] (Message 0).  The step succeeded.")
    );
    assert_eq!(
        history[1].message,
        "The job succeeded.  The Job was invoked by Schedule 1 (at two).  The last step to run was step 1 (greet)."
    );
    let next = place.catalog().agent().links().unwrap().remove(0);
    assert_eq!(
        (next.next_run_date, next.next_run_time),
        (20_900_104, 20_000)
    );
}

#[test]
fn runs_that_were_missed_while_no_agent_ran_are_made_up_for_once() {
    let place = Place::new();
    place.job("nightly", &[("greet", "PRINT 1", "")]);
    let text = format!("EXEC sp_add_jobschedule @job_name = 'nightly', @name = 'at two', {DAILY}");
    place.well(&text);
    place.clock.advance(10 * 24 * 60);
    let agent = place.start();
    place.wait_for_ends(1);
    std::thread::sleep(Duration::from_millis(100));
    agent.stop(false);
    assert_eq!(place.outcomes(), [(1, 1), (0, 1)]);
    let message = &place.history()[1].message;
    assert!(
        message.contains("which was due at 2090-01-02 02:00:00 while no agent ran"),
        "{message}"
    );
}

#[test]
fn a_job_that_is_disabled_or_has_no_server_does_not_run() {
    let place = Place::new();
    place.job("off", &[("a", "PRINT 1", "")]);
    place.job("nowhere", &[("a", "PRINT 1", "")]);
    place.job("on", &[("a", "PRINT 1", "")]);
    for name in ["off", "nowhere", "on"] {
        let text =
            format!("EXEC sp_add_jobschedule @job_name = '{name}', @name = '{name}', {DAILY}");
        place.well(&text);
    }
    let text = "EXEC sp_update_job @job_name = 'off', @enabled = 0
        EXEC sp_delete_jobserver @job_name = 'nowhere', @server_name = '(local)'";
    place.well(text);
    let agent = place.start();
    place.clock.advance(24 * 60);
    place.wait_for_ends(1);
    std::thread::sleep(Duration::from_millis(100));
    agent.stop(false);
    assert_eq!(place.outcomes(), [(1, 1), (0, 1)]);
    // Switched on again, it does not make up for the time it was off.
    place.well("EXEC sp_update_job @job_name = 'off', @enabled = 1");
    let links = place.catalog().agent().links().unwrap();
    assert!(links.iter().all(|link| link.next_run.is_some()));
}

#[test]
fn steps_go_where_their_outcomes_say() {
    let place = Place::new();
    place.job(
        "job",
        &[
            (
                "one",
                "SELECT * FROM nosuch",
                ", @on_fail_action = 4, @on_fail_step_id = 3",
            ),
            ("two", "PRINT 'never'", ""),
            (
                "three",
                "PRINT 'three'\nGO\nPRINT 'and more'",
                ", @on_success_action = 3",
            ),
            (
                "four",
                "SELECT * FROM nosuch\nGO\nPRINT 'not reached'",
                ", @on_fail_action = 2",
            ),
        ],
    );
    let agent = place.start();
    place.well("EXEC sp_start_job 'job'");
    place.wait_for_ends(1);
    assert_eq!(place.outcomes(), [(1, 0), (3, 1), (4, 0), (0, 0)]);
    let history = place.history();
    assert_eq!(
        (history[0].sql_message_id, history[0].sql_severity),
        (208, 16)
    );
    assert!(
        history[1].message.contains("and more"),
        "{}",
        history[1].message
    );
    assert!(
        !history[2].message.contains("reached"),
        "{}",
        history[2].message
    );
    assert!(
        history[3].message.contains("step 4 (four)"),
        "{}",
        history[3].message
    );
    place.well("EXEC sp_start_job 'job', @step_name = 'two'");
    place.wait_for_ends(2);
    assert_eq!(place.outcomes()[4..], [(2, 1), (0, 1)]);
    agent.stop(false);
    let steps = place.catalog().agent().steps(&history[0].job_id).unwrap();
    let ran: Vec<i64> = steps.iter().map(|step| step.last_run_outcome).collect();
    assert_eq!(ran, [0, 1, 1, 0]);
}

#[test]
fn a_step_is_tried_again_after_its_interval() {
    let place = Place::new();
    place.job(
        "job",
        &[(
            "a",
            "SELECT * FROM nosuch",
            ", @retry_attempts = 2, @retry_interval = 5",
        )],
    );
    let agent = place.start();
    place.well("EXEC sp_start_job 'job'");
    place.wait(|| place.outcomes().len() == 1);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(place.outcomes(), [(1, 2)], "it waits");
    place.clock.advance(5);
    place.wait(|| place.outcomes().len() == 2);
    place.clock.advance(5);
    place.wait_for_ends(1);
    agent.stop(false);
    assert_eq!(place.outcomes(), [(1, 2), (1, 2), (1, 0), (0, 0)]);
    let retries: Vec<i64> = place
        .history()
        .iter()
        .map(|row| row.retries_attempted)
        .collect();
    assert_eq!(retries, [0, 1, 2, 0]);
    assert_eq!(place.history()[3].run_duration, 1000, "ten minutes");
}

#[test]
fn a_job_that_runs_is_not_started_again_and_can_be_stopped() {
    let place = Place::new();
    place.job("job", &[("a", ENDLESS, ""), ("b", "PRINT 1", "")]);
    let agent = place.start();
    assert_eq!(
        place.run("EXEC sp_stop_job 'job'"),
        [22022],
        "it does not run"
    );
    place.well("EXEC sp_start_job 'job'");
    assert_eq!(place.run("EXEC sp_start_job 'job'"), [22022], "it runs");
    place.wait_until_running();
    assert_eq!(agent.running(), 1);
    let text = format!("EXEC sp_add_jobschedule @job_name = 'job', @name = 'x', {DAILY}");
    place.well(&text);
    place.clock.advance(24 * 60);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(place.run("EXEC sp_stop_job 'job'"), [14254]);
    place.wait_for_ends(1);
    agent.stop(false);
    assert_eq!(place.outcomes(), [(1, 3), (0, 3)]);
    assert!(
        place.history()[1]
            .message
            .starts_with("The job was stopped prior to completion by User ")
    );
}

#[test]
fn an_agent_that_stops_waits_for_jobs_or_stops_them() {
    let place = Place::new();
    place.job("endless", &[("a", ENDLESS, "")]);
    let agent = place.start();
    place.well("EXEC sp_start_job 'endless'");
    place.wait_until_running();
    agent.stop(true);
    assert_eq!(place.outcomes(), [(1, 3), (0, 3)]);
    place.job(
        "retries",
        &[(
            "a",
            "SELECT * FROM nosuch",
            ", @retry_attempts = 1, @retry_interval = 1",
        )],
    );
    let agent = place.start();
    place.well("EXEC sp_start_job 'retries'");
    place.wait(|| place.outcomes().len() == 3);
    let clock = Arc::clone(&place.clock);
    let later = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        clock.advance(1);
    });
    agent.stop(false);
    assert_eq!(place.outcomes()[2..], [(1, 2), (1, 0), (0, 0)]);
    later.join().unwrap();
}

#[test]
fn one_agent_runs_the_jobs_of_an_instance_and_without_it_nothing_starts() {
    let place = Place::new();
    place.job("job", &[("a", "PRINT 1", "")]);
    assert_eq!(place.run("EXEC sp_start_job 'job'"), [22022]);
    let agent = place.start();
    let second = place.start_with(place.options()).unwrap_err();
    assert_eq!(second.messages[0].number, 50223);
    agent.stop(false);
    assert_eq!(place.run("EXEC sp_start_job 'job'"), [22022]);
    drop(place.start());
}

#[test]
fn a_job_can_start_with_the_agent_and_be_deleted_after_success() {
    let place = Place::new();
    place.job("once", &[("a", "PRINT 1", "")]);
    let text = "EXEC sp_update_job @job_name = 'once', @delete_level = 1
        EXEC sp_add_jobschedule @job_name = 'once', @name = 'boot', @freq_type = 64";
    place.well(text);
    let agent = place.start();
    place.wait_for_ends(1);
    agent.stop(false);
    assert!(place.catalog().agent().jobs().unwrap().is_empty());
    assert!(
        place.history()[1]
            .message
            .contains("Start Sequence 1 (boot)")
    );
}

#[test]
fn a_failure_is_told_to_the_hook_and_success_is_not() {
    let place = Place::new();
    let told = place.folder.path().join("told.json");
    let command = format!(
        "cat >> '{}'; echo \"$WINDLASS_JOB\" >> '{0}'",
        told.display()
    );
    let mut options = place.options();
    options.on_failure = Some(Hook::of(&command));
    place.job("good", &[("a", "PRINT 1", "")]);
    place.job("bad", &[("step a", "SELECT * FROM nosuch", "")]);
    let agent = place.start_with(options).unwrap();
    place.well("EXEC sp_start_job 'good' EXEC sp_start_job 'bad'");
    place.wait_for_ends(2);
    agent.stop(false);
    let told = std::fs::read_to_string(told).unwrap();
    let (json, name) = told.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(name, "bad");
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(json["job"], "bad");
    assert_eq!(json["step"]["step_name"], "step a");
    assert_eq!(json["step"]["message_id"], 208);
}

#[test]
fn a_job_that_an_earlier_agent_left_running_has_failed() {
    let place = Place::new();
    place.job("job", &[("a", "PRINT 1", "")]);
    place.start().stop(false);
    let mut catalog = place.catalog();
    let job = catalog.agent().job_named("job").unwrap().unwrap();
    let record = ActivityRecord {
        session_id: 1,
        job_id: job.job_id.clone(),
        run_requested_date: None,
        run_requested_source: None,
        start_execution_date: Some("2090-01-01 11:00:00".to_owned()),
        last_executed_step_id: Some(1),
        last_executed_step_date: None,
        stop_execution_date: None,
        job_history_id: None,
        next_scheduled_run_date: None,
    };
    catalog
        .change_agent::<_, windlass_catalog::Error>(|tables| tables.put_activity(&record))
        .unwrap();
    let agent = place.start();
    assert_eq!(place.outcomes(), [(0, 0)]);
    assert_eq!(place.history()[0].run_time, 110_000);
    place.well("EXEC sp_start_job 'job'");
    place.wait_for_ends(2);
    agent.stop(false);
    let last = place
        .catalog()
        .agent()
        .server(&job.job_id)
        .unwrap()
        .unwrap();
    assert_eq!(last.last_run_outcome, 1);
}

#[test]
fn a_step_without_a_database_or_a_session_fails() {
    let place = Place::new();
    place.job("job", &[("a", "PRINT 1", ", @database_name = 'no such'")]);
    let agent = place.start();
    place.well("EXEC sp_start_job 'job'");
    place.wait_for_ends(1);
    agent.stop(false);
    assert_eq!(place.history()[0].sql_message_id, 911);
    let refuse = || Err(Failure::from(table::internal_consistency()));
    let agent = start(place.folder.path(), refuse, place.options()).unwrap();
    place.well("EXEC sp_start_job 'job'");
    place.wait_for_ends(2);
    agent.stop(false);
    assert_eq!(place.outcomes()[2..], [(1, 0), (0, 0)]);
}

#[test]
fn rows_of_a_step_are_in_the_history_if_it_wants_them() {
    let place = Place::new();
    place.job(
        "job",
        &[
            (
                "a",
                "SELECT 41 + 1 AS answer",
                ", @flags = 4, @on_success_action = 3",
            ),
            ("b", "SELECT 43", ""),
        ],
    );
    let agent = place.start();
    place.well("EXEC sp_start_job 'job'");
    place.wait_for_ends(1);
    agent.stop(false);
    let history = place.history();
    assert!(
        history[0].message.contains("answer\r\n42"),
        "{}",
        history[0].message
    );
    assert!(!history[1].message.contains("43"), "{}", history[1].message);
}

#[test]
fn the_catalog_keeps_when_a_job_is_due() {
    let place = Place::new();
    place.job("job", &[("a", "PRINT 1", "")]);
    let text = format!("EXEC sp_add_jobschedule @job_name = 'job', @name = 'x', {DAILY}");
    place.well(&text);
    let link = || -> JobScheduleRecord { place.catalog().agent().links().unwrap().remove(0) };
    assert_eq!(link().next_run_date, 20_900_102);
    place.well("EXEC sp_update_schedule @name = 'x', @active_start_time = 33000");
    assert_eq!(
        (link().next_run_date, link().next_run_time),
        (20_900_102, 33_000)
    );
    place.well("EXEC sp_update_schedule @name = 'x', @enabled = 0");
    assert_eq!((link().next_run, link().next_run_date), (None, 0));
}
