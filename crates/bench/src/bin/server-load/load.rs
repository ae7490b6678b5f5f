//! The load: each session moves money between two accounts, enters it in a ledger, commits, and reads some accounts.
//!
//! What a session has been told is committed is counted in [`Board`]: a copy of the database has, for each
//! session, all that was acknowledged when its backup began and nothing that was asked for after its end.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Accounts, each of which begins with [`BALANCE`].
pub(crate) const ACCOUNTS: u64 = 100_000;
pub(crate) const BALANCE: u64 = 1000;

/// What runs beside the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Alone,
    Backup,
    Restore,
}

impl Phase {
    pub(crate) const ALL: [Self; 3] = [Self::Alone, Self::Backup, Self::Restore];
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Alone => "alone",
            Self::Backup => "with a backup",
            Self::Restore => "with a restore",
        })
    }
}

/// How much load there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) sessions: usize,
    pub(crate) reads: u32,
    pub(crate) lasts: Duration,
}

/// What sessions and those who watch them share.
#[derive(Debug)]
pub(crate) struct Board {
    phase: AtomicU8,
    ends: AtomicBool,
    /// For each session the number of its last transaction that was acknowledged, and of the last that was begun.
    counts: Vec<[AtomicU64; 2]>,
    /// Time in each phase, in microseconds, and when the present one began.
    spent: [AtomicU64; 3],
    epoch: Instant,
    since: AtomicU64,
}

impl Board {
    pub(crate) fn new(sessions: usize) -> Arc<Self> {
        Arc::new(Self {
            phase: AtomicU8::new(0),
            ends: AtomicBool::new(false),
            counts: (0..sessions).map(|_| <[AtomicU64; 2]>::default()).collect(),
            spent: Default::default(),
            epoch: Instant::now(),
            since: AtomicU64::new(0),
        })
    }

    /// Begins a phase; called by one thread.
    pub(crate) fn enter(&self, phase: Phase) {
        let now = self.epoch.elapsed().as_micros() as u64;
        let before = self.phase.swap(phase as u8, Ordering::SeqCst);
        let since = self.since.swap(now, Ordering::SeqCst);
        self.spent[usize::from(before)].fetch_add(now - since, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        self.enter(Phase::Alone);
        self.ends.store(true, Ordering::SeqCst);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ends.load(Ordering::SeqCst)
    }

    /// The last acknowledged transaction of each session.
    pub(crate) fn acknowledged(&self) -> Vec<u64> {
        let counts = self.counts.iter();
        counts
            .map(|[count, _]| count.load(Ordering::SeqCst))
            .collect()
    }

    /// The last transaction of each session that was begun.
    pub(crate) fn begun(&self) -> Vec<u64> {
        let counts = self.counts.iter();
        counts
            .map(|[_, count]| count.load(Ordering::SeqCst))
            .collect()
    }

    fn spent(&self, phase: Phase) -> Duration {
        Duration::from_micros(self.spent[phase as usize].load(Ordering::SeqCst))
    }
}

/// One transaction of a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) session: usize,
    pub(crate) number: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) amount: u64,
}

/// A connection of any system.
pub(crate) trait Connection {
    /// Commits a transfer; whether it was acknowledged.
    fn transfer(&mut self, transfer: &Transfer) -> anyhow::Result<bool>;

    /// Reads an account.
    fn read(&mut self, account: u64) -> anyhow::Result<()>;
}

/// What the sessions measured.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// Latencies of commits in microseconds, by phase.
    commits: [Vec<u32>; 3],
    reads: [u64; 3],
    spent: [Duration; 3],
    pub(crate) failed: u64,
}

/// The figures of a phase: rates per second, times in milliseconds.
pub(crate) struct Figures {
    pub(crate) commits: f64,
    pub(crate) reads: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) worst: f64,
    pub(crate) seconds: f64,
}

impl Measured {
    pub(crate) fn figures(&self, phase: Phase) -> Figures {
        let mut sorted = self.commits[phase as usize].clone();
        sorted.sort_unstable();
        let at = |share: f64| {
            let index = (sorted.len() as f64 * share) as usize;
            let value = sorted.get(index).or(sorted.last());
            f64::from(value.copied().unwrap_or(0)) / 1000.0
        };
        let seconds = self.spent[phase as usize].as_secs_f64();
        let rate = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
        Figures {
            commits: rate(sorted.len() as f64),
            reads: rate(self.reads[phase as usize] as f64),
            p50: at(0.5),
            p99: at(0.99),
            worst: at(1.0),
            seconds,
        }
    }

    fn add(&mut self, other: Self) {
        for (mine, theirs) in self.commits.iter_mut().zip(other.commits) {
            mine.extend(theirs);
        }
        for (mine, theirs) in self.reads.iter_mut().zip(other.reads) {
            *mine += theirs;
        }
        self.failed += other.failed;
    }
}

/// Runs the sessions until the board says that it ends.
pub(crate) fn run<C: Connection>(
    load: &Load,
    board: &Arc<Board>,
    connect: impl Fn(usize) -> anyhow::Result<C> + Sync,
    beside: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<Measured> {
    std::thread::scope(|scope| {
        let connect = &connect;
        let sessions: Vec<_> = (0..load.sessions)
            .map(|session| {
                scope.spawn(move || -> anyhow::Result<Measured> {
                    one(session, load, board, &mut connect(session)?)
                })
            })
            .collect();
        let outcome = beside();
        board.end();
        let mut all = Measured::default();
        for session in sessions {
            let measured = session
                .join()
                .map_err(|_| anyhow::anyhow!("a session panicked"))?;
            all.add(measured?);
        }
        outcome?;
        for phase in Phase::ALL {
            all.spent[phase as usize] = board.spent(phase);
        }
        Ok(all)
    })
}

fn one(
    session: usize,
    load: &Load,
    board: &Board,
    connection: &mut impl Connection,
) -> anyhow::Result<Measured> {
    let mut measured = Measured::default();
    let mut random = Random(session as u64 + 1);
    let [acknowledged, begun] = &board.counts[session];
    let mut number = 1;
    while !board.has_ended() {
        let transfer = Transfer {
            session,
            number,
            from: random.below(ACCOUNTS),
            to: random.below(ACCOUNTS),
            amount: 1 + random.below(9),
        };
        begun.store(number, Ordering::SeqCst);
        let phase = usize::from(board.phase.load(Ordering::SeqCst));
        let started = Instant::now();
        if connection.transfer(&transfer)? {
            acknowledged.store(number, Ordering::SeqCst);
            let micros = u32::try_from(started.elapsed().as_micros()).unwrap_or(u32::MAX);
            measured.commits[phase].push(micros);
            number += 1;
        } else {
            measured.failed += 1;
        }
        for _ in 0..load.reads {
            connection.read(random.below(ACCOUNTS))?;
            measured.reads[phase] += 1;
        }
    }
    Ok(measured)
}

/// The generator `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }
}
