//! The controller against simulated sources, processors and devices.

use super::*;

/// Bytes of the database in a chunk.
const CHUNK: f64 = 4.0 * 1024.0 * 1024.0;
const MB: f64 = 1024.0 * 1024.0;

/// Length of a step of the simulation, in seconds.
const STEP: f64 = 0.0005;

/// The machine, which may change while the backup runs.
struct Machine {
    threads: usize,
    /// MB of the database per second.
    source: f64,
    /// MB per second of the device, by time.
    device: Box<dyn Fn(f64) -> f64>,
    /// Cores available to the backup, by time.
    processors: Box<dyn Fn(f64) -> f64>,
    /// MB per second of one core at each effort.
    speed: [f64; Effort::COUNT],
    /// MB per second of all work besides compression.
    checks: f64,
    ratio: [f64; Effort::COUNT],
}

impl Machine {
    fn plain() -> Self {
        Self {
            threads: 2,
            source: 1500.0,
            device: Box::new(|_| 900.0),
            processors: Box::new(|_| 2.0),
            speed: [400.0, 320.0, 95.0, 35.0],
            checks: 3000.0,
            ratio: [4.04, 4.40, 5.03, 5.23],
        }
    }
}

#[derive(Clone, Copy)]
enum Policy {
    Fixed(Effort),
    Adaptive(Goal),
}

#[derive(Debug, Default)]
struct Outcome {
    seconds: f64,
    stored: f64,
    chunks: [u64; Effort::COUNT],
    /// Chunks of each effort among the last tenth.
    late: [u64; Effort::COUNT],
    threads: usize,
}

/// A chunk in a thread: seconds of the compressor and in total, how much is done, and the remaining
/// size.
struct Job {
    effort: Effort,
    encoding: f64,
    all: f64,
    done: f64,
    stored: f64,
    wall: f64,
}

struct Simulation<'a> {
    machine: &'a Machine,
    controller: Controller,
    policy: Policy,
    frames_total: u64,
    frames_read: u64,
    frames_begun: u64,
    read_ahead: f64,
    jobs: Vec<Option<Job>>,
    queue: std::collections::VecDeque<f64>,
    writing: f64,
    window: Sample,
    noise: u32,
    outcome: Outcome,
}

/// Frames queued between reading and compressing, and payloads between compressing and writing.
const QUEUE: usize = 4;

impl<'a> Simulation<'a> {
    fn run(machine: &'a Machine, megabytes: f64, policy: Policy) -> Outcome {
        let goal = match policy {
            Policy::Adaptive(goal) => goal,
            Policy::Fixed(_) => Goal::Fast,
        };
        let controller = Controller::new(Bounds {
            goal,
            threads_max: machine.threads,
            adapts_level: matches!(policy, Policy::Adaptive(_)),
            adapts_threads: matches!(policy, Policy::Adaptive(_)),
        });
        let mut simulation = Self {
            machine,
            controller,
            policy,
            frames_total: (megabytes * MB / CHUNK) as u64,
            frames_read: 0,
            frames_begun: 0,
            read_ahead: 0.0,
            jobs: (0..machine.threads).map(|_| None).collect(),
            queue: std::collections::VecDeque::new(),
            writing: 0.0,
            window: Sample::default(),
            noise: 1,
            outcome: Outcome::default(),
        };
        let mut time = 0.0;
        while !simulation.is_done() {
            simulation.step(time);
            time += STEP;
            assert!(time < 3600.0, "the simulation does not come to its end");
        }
        simulation.outcome.seconds = time;
        simulation.outcome.threads = simulation.controller.threads();
        simulation.outcome
    }

    fn is_done(&self) -> bool {
        let idle = self.jobs.iter().all(Option::is_none);
        self.frames_begun == self.frames_total
            && idle
            && self.queue.is_empty()
            && self.writing <= 0.0
    }

    /// A factor within 10 % of 1.
    fn noisy(&mut self) -> f64 {
        self.noise = self
            .noise
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        0.9 + 0.2 * f64::from(self.noise >> 8) / f64::from(1 << 24)
    }

    fn step(&mut self, time: f64) {
        let step = Duration::from_secs_f64(STEP);
        self.window.elapsed += step;
        if self.frames_read < self.frames_total
            && self.frames_read - self.frames_begun < QUEUE as u64
        {
            self.read_ahead += self.machine.source * MB * STEP;
            self.window.read.busy += step;
            if self.read_ahead >= CHUNK {
                self.read_ahead -= CHUNK;
                self.frames_read += 1;
                self.window.read.bytes += CHUNK as u64;
            }
        }
        self.compress(time, step);
        if self.writing <= 0.0 {
            self.writing += self.queue.pop_front().unwrap_or(0.0);
        }
        if self.writing > 0.0 {
            let written = (self.machine.device)(time) * MB * STEP;
            self.writing -= written;
            self.window.written.bytes += written as u64;
            self.window.written.busy += step;
        }
        let chunks: u64 = self.window.by_effort.iter().map(|work| work.chunks).sum();
        if self.window.elapsed >= Duration::from_millis(25) && chunks >= 2 {
            self.controller.observe(&std::mem::take(&mut self.window));
        }
    }

    fn compress(&mut self, time: f64, step: Duration) {
        let working = self.jobs.iter().flatten().count().max(1) as f64;
        let share = ((self.machine.processors)(time) / working).min(1.0);
        for index in 0..self.jobs.len() {
            if self.jobs[index].is_none() && index < self.controller.threads() {
                self.begin(index);
            }
            let Some(job) = &mut self.jobs[index] else {
                self.window.idle += match index < self.controller.threads() {
                    true => step,
                    false => Duration::ZERO,
                };
                continue;
            };
            if job.done >= job.all {
                if self.queue.len() < QUEUE {
                    self.finish(index);
                } else {
                    self.window.idle += step;
                }
                continue;
            }
            job.done += STEP * share;
            job.wall += STEP;
            self.window.transformed.busy += step;
        }
    }

    fn begin(&mut self, index: usize) {
        if self.frames_begun == self.frames_read {
            return;
        }
        self.frames_begun += 1;
        let effort = match self.policy {
            Policy::Fixed(effort) => effort,
            Policy::Adaptive(_) => self.controller.next_effort(),
        };
        let (time, size) = (self.noisy(), self.noisy());
        let encoding = CHUNK / MB / self.machine.speed[effort.index()] * time;
        self.jobs[index] = Some(Job {
            effort,
            encoding,
            all: encoding + CHUNK / MB / self.machine.checks,
            done: 0.0,
            stored: CHUNK / self.machine.ratio[effort.index()] * size,
            wall: 0.0,
        });
        self.outcome.chunks[effort.index()] += 1;
        if self.frames_begun * 10 > self.frames_total * 9 {
            self.outcome.late[effort.index()] += 1;
        }
    }

    fn finish(&mut self, index: usize) {
        let Some(job) = self.jobs[index].take() else {
            return;
        };
        self.window.transformed.bytes += CHUNK as u64;
        self.window.by_effort[job.effort.index()].add(&Work {
            chunks: 1,
            raw_bytes: CHUNK as u64,
            stored_bytes: job.stored as u64,
            encoding: Duration::from_secs_f64(job.wall * job.encoding / job.all),
        });
        self.outcome.stored += job.stored;
        self.queue.push_back(job.stored);
    }
}

/// The adaptive run, and the fastest of the fixed runs.
fn compare(machine: &Machine, megabytes: f64) -> (Outcome, Outcome) {
    let adaptive = Simulation::run(machine, megabytes, Policy::Adaptive(Goal::Fast));
    let fixed =
        Effort::ALL.map(|effort| Simulation::run(machine, megabytes, Policy::Fixed(effort)));
    let best = fixed
        .into_iter()
        .min_by(|a, b| a.seconds.total_cmp(&b.seconds));
    (adaptive, best.unwrap())
}

fn within_a_tenth(machine: &Machine, megabytes: f64) -> Outcome {
    let (adaptive, best) = compare(machine, megabytes);
    assert!(
        adaptive.seconds <= best.seconds * 1.10,
        "{adaptive:?}\nthe best fixed: {best:?}"
    );
    adaptive
}

#[test]
fn on_a_plain_machine_it_is_as_fast_as_the_best_level_and_short_runs_too() {
    for megabytes in [100.0, 500.0, 2000.0, 10_000.0] {
        within_a_tenth(&Machine::plain(), megabytes);
    }
}

#[test]
fn a_slow_device_gets_stronger_compression_that_costs_no_time() {
    for rate in [10.0, 20.0, 40.0, 60.0, 80.0, 120.0] {
        let machine = Machine {
            device: Box::new(move |_| rate),
            ..Machine::plain()
        };
        let adaptive = within_a_tenth(&machine, 2000.0);
        let low = Simulation::run(&machine, 2000.0, Policy::Fixed(Effort::Low));
        assert!(
            adaptive.seconds <= low.seconds * 1.02,
            "{adaptive:?} {low:?}"
        );
        if rate < 50.0 {
            assert!(adaptive.stored < low.stored * 0.97, "{adaptive:?} {low:?}");
        }
    }
}

#[test]
fn busy_processors_get_less_compression() {
    for processors in [0.2, 0.5, 1.0] {
        let machine = Machine {
            processors: Box::new(move |_| processors),
            ..Machine::plain()
        };
        let adaptive = within_a_tenth(&machine, 2000.0);
        assert!(adaptive.late[0] * 10 >= adaptive.late.iter().sum::<u64>() * 8);
    }
}

#[test]
fn it_does_not_stick_where_a_passing_trouble_drove_it() {
    let machine = Machine {
        device: Box::new(|time| if time < 10.0 { 20.0 } else { 900.0 }),
        ..Machine::plain()
    };
    let adaptive = within_a_tenth(&machine, 8000.0);
    assert!(
        adaptive.chunks[2] + adaptive.chunks[3] > 50,
        "it did climb: {adaptive:?}"
    );
    assert!(
        adaptive.late[2] + adaptive.late[3] <= adaptive.late.iter().sum::<u64>() / 20,
        "and came down: {adaptive:?}"
    );
    let machine = Machine {
        processors: Box::new(|time| if time < 10.0 { 0.2 } else { 2.0 }),
        device: Box::new(|_| 40.0),
        ..Machine::plain()
    };
    let adaptive = within_a_tenth(&machine, 4000.0);
    assert!(
        adaptive.late[2] > 0,
        "it climbs when there is time again: {adaptive:?}"
    );
}

#[test]
fn a_device_that_comes_and_goes_is_followed() {
    let machine = Machine {
        device: Box::new(|time| {
            if ((time / 3.0) as u64).is_multiple_of(2) {
                30.0
            } else {
                600.0
            }
        }),
        ..Machine::plain()
    };
    within_a_tenth(&machine, 6000.0);
}

#[test]
fn small_takes_its_time_but_not_more_than_it_may() {
    for device in [60.0, 900.0] {
        let machine = Machine {
            device: Box::new(move |_| device),
            ..Machine::plain()
        };
        let (fast, _) = compare(&machine, 4000.0);
        let small = Simulation::run(&machine, 4000.0, Policy::Adaptive(Goal::Small));
        assert!(small.stored < fast.stored * 0.95, "{small:?} {fast:?}");
        assert!(
            small.seconds <= fast.seconds * SMALL_FACTOR * 1.1,
            "{small:?} {fast:?}"
        );
    }
}

#[test]
fn gentle_never_takes_more_than_low() {
    let machine = Machine {
        device: Box::new(|_| 10.0),
        ..Machine::plain()
    };
    let gentle = Simulation::run(&machine, 2000.0, Policy::Adaptive(Goal::Gentle));
    assert_eq!(gentle.chunks[2] + gentle.chunks[3], 0, "{gentle:?}");
    assert_eq!(gentle.threads, 1, "one thread is enough for that device");
}

#[test]
fn time_is_not_spent_on_what_does_not_shrink() {
    let machine = Machine {
        device: Box::new(|_| 50.0),
        ratio: [1.0; Effort::COUNT],
        ..Machine::plain()
    };
    let adaptive = within_a_tenth(&machine, 2000.0);
    assert_eq!(adaptive.late[3], 0, "{adaptive:?}");
    assert!(
        adaptive.late[0] * 10 >= adaptive.late.iter().sum::<u64>() * 8,
        "{adaptive:?}"
    );
}

#[test]
fn threads_without_work_are_sent_away_and_called_back() {
    let many = || Machine {
        threads: 8,
        processors: Box::new(|_| 8.0),
        ..Machine::plain()
    };
    let starved = Machine {
        source: 100.0,
        ..many()
    };
    let outcome = Simulation::run(&starved, 4000.0, Policy::Adaptive(Goal::Gentle));
    assert!(outcome.threads <= 2, "{outcome:?}");
    let recovering = Machine {
        device: Box::new(|time| if time < 10.0 { 5.0 } else { 5000.0 }),
        ..many()
    };
    let low = Simulation::run(&recovering, 20_000.0, Policy::Fixed(Effort::Low));
    let outcome = Simulation::run(&recovering, 20_000.0, Policy::Adaptive(Goal::Gentle));
    assert!(outcome.threads >= 4, "{outcome:?}");
    assert!(outcome.seconds <= low.seconds * 1.10, "{outcome:?} {low:?}");
}
