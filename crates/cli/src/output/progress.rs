//! The progress bar on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use windlass_base::size::{Bytes, megabytes_per_second};
use windlass_instance::Progress;

/// A bar with percent, rate, ratio and time left. Draws nothing if standard error is not a
/// terminal.
#[derive(Debug)]
pub(super) struct Bar {
    bar: Option<ProgressBar>,
}

impl Bar {
    /// A bar that appears with the first progress.
    pub(super) fn new() -> Self {
        Self { bar: None }
    }

    pub(super) fn show(&mut self, progress: &Progress) {
        let bar = self.bar.get_or_insert_with(|| {
            // `stderr` draws at most 20 times a second, and not at all into a file.
            let bar = ProgressBar::with_draw_target(
                Some(progress.total_bytes),
                ProgressDrawTarget::stderr(),
            );
            if let Ok(style) = ProgressStyle::with_template(
                "{prefix} [{bar:30}] {percent:>3} %  {msg}  {eta} left",
            ) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_prefix(progress.operation);
            bar
        });
        let rate = megabytes_per_second(progress.done_bytes, progress.elapsed);
        let mut text = format!("{} {rate:.0} MB/s", Bytes(progress.done_bytes));
        if progress.stored_bytes > 0 {
            let ratio = progress.done_bytes as f64 / progress.stored_bytes as f64;
            text = format!("{text}  ratio {ratio:.2}");
        }
        bar.set_position(progress.done_bytes);
        bar.set_message(text);
    }

    /// Writes something else without disturbing the bar.
    pub(super) fn aside(&self, write: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Removes the bar permanently.
    pub(super) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
