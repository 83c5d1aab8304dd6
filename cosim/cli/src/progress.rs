//! Progress on standard error, for what takes longer than two seconds.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use port::sync::lock;

use crate::Failure;

/// Longest time without a line.
const QUIET: Duration = Duration::from_secs(2);

/// Lines that say what is done and how far it is.
#[derive(Debug)]
pub(crate) struct Progress(Mutex<State>);

#[derive(Debug)]
struct State {
    what: String,
    last: Instant,
}

impl Default for Progress {
    fn default() -> Self {
        Self(Mutex::new(State { what: String::new(), last: Instant::now() }))
    }
}

impl Progress {
    /// Begins a new job, such as a measurement.
    pub(crate) fn start(&self, what: &str) {
        *lock(&self.0) = State { what: what.to_owned(), last: Instant::now() };
    }

    /// Prints how far the job is, if nothing was printed for two seconds; `state` is called only
    /// then.
    pub(crate) fn tick(&self, state: impl FnOnce() -> String) {
        let mut job = lock(&self.0);
        if job.last.elapsed() >= QUIET {
            job.last = Instant::now();
            eprintln!("{}: {}", job.what, state());
        }
    }
}

/// A job whose length is known: a bar on a terminal, elsewhere lines.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    lines: Progress,
    unit: &'static str,
}

impl Bar {
    /// A bar for a job of `length` units. `template` is one of [`ProgressStyle`].
    pub(crate) fn new(
        what: &str,
        length: u64,
        unit: &'static str,
        template: &str,
    ) -> Result<Self, Failure> {
        let style = ProgressStyle::with_template(template)?;
        let bar = ProgressBar::new(length).with_style(style).with_message(what.to_owned());
        let lines = Progress::default();
        lines.start(what);
        Ok(Self { bar, lines, unit })
    }

    /// `position` units of the job are done.
    pub(crate) fn set(&self, position: u64) {
        self.bar.set_position(position);
        if self.bar.is_hidden() {
            let length = self.bar.length().unwrap_or(position);
            self.lines.tick(|| format!("{position} of {length} {}", self.unit));
        }
    }

    /// Prints a line on standard output, above the bar.
    pub(crate) fn print(&self, line: &str) {
        self.bar.suspend(|| println!("{line}"));
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_printed_after_two_quiet_seconds_and_not_before() {
        let progress = Progress::default();
        progress.start("job");
        progress.tick(|| panic!("too early"));
        lock(&progress.0).last = Instant::now().checked_sub(QUIET).unwrap();
        let mut asked = 0;
        for _ in 0..2 {
            progress.tick(|| {
                asked += 1;
                "half".to_owned()
            });
        }
        assert_eq!(asked, 1);
    }
}
