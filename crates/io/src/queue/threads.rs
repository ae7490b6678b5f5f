//! Transfers executed by threads with blocking calls, where `io_uring` is not available.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use windlass_base::panic::contained;

use super::{Completion, Transfer};

/// As many threads as transfers may be in flight.
#[derive(Debug)]
pub(super) struct Threads {
    submissions: Option<Sender<Transfer>>,
    completions: Receiver<Completion>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    pub(super) fn new(depth: usize) -> Self {
        let (submissions, waiting) = channel();
        let (done, completions) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        // Fewer will do; if there is none, a transfer comes back.
        let handles = (0..depth)
            .map_while(|_| {
                let (waiting, done) = (Arc::clone(&waiting), done.clone());
                let thread = Builder::new().spawn(move || carry(&waiting, &done));
                thread.ok()
            })
            .collect();
        Self {
            submissions: Some(submissions),
            completions,
            handles,
        }
    }

    /// Passes a transfer to a free thread; returns it if no thread is left.
    pub(super) fn submit(&mut self, transfer: Transfer) -> Result<(), Box<Transfer>> {
        match &self.submissions {
            Some(submissions) => submissions.send(transfer).map_err(|back| Box::new(back.0)),
            None => Err(Box::new(transfer)),
        }
    }

    pub(super) fn wait(&mut self) -> Option<Completion> {
        self.completions.recv().ok()
    }
}

/// Executes one transfer after another until the queue is dropped.
fn carry(waiting: &Mutex<Receiver<Transfer>>, done: &Sender<Completion>) {
    loop {
        let next = waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok(mut transfer) = next else {
            return;
        };
        let carried = contained("thread that reads and writes files", || {
            transfer.complete(0)
        });
        let result = carried.unwrap_or_else(|panicked| Err(panicked.into()));
        if done.send(Completion { transfer, result }).is_err() {
            return;
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.submissions = None;
        for thread in self.handles.drain(..) {
            // A panic is reported with its transfer.
            drop(thread.join());
        }
    }
}
