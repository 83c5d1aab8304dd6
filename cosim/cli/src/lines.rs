//! Lines that a command prints while it must not wait for who reads them, nor end because nobody
//! does. A thread writes them; what it has no room for is left out and counted.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::Duration;

/// Lines that wait for a reader.
const WAITING_MAX: usize = 256;
/// How long the end of a command waits for its last lines to be read.
const END_BOUND: Duration = Duration::from_secs(1);

/// Where lines go.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    sender: SyncSender<String>,
    lost: Arc<AtomicU64>,
}

/// Ends when all lines are written and their [`Lines`] are gone.
#[derive(Debug)]
pub(crate) struct Written(Receiver<()>);

impl Lines {
    /// To standard output or standard error. It is written to without the lock of the standard
    /// library, which a writer that waits would keep from others.
    ///
    /// # Errors
    /// No descriptor or no thread for it.
    pub(crate) fn to(output: impl AsFd) -> io::Result<(Self, Written)> {
        Self::start(std::fs::File::from(output.as_fd().try_clone_to_owned()?))
    }

    fn start(mut output: impl Write + Send + 'static) -> io::Result<(Self, Written)> {
        let (sender, lines) = sync_channel::<String>(WAITING_MAX);
        let (at_end, written) = channel();
        let lost = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&lost);
        std::thread::Builder::new().name("viaduct-lines".to_owned()).spawn(move || {
            // Nobody may be there to read.
            for line in lines {
                let _ = output.write_all(line.as_bytes());
                let lost = count.swap(0, Ordering::Relaxed);
                if lost > 0 {
                    let _ = writeln!(output, "({lost} lines are left out)");
                }
            }
            drop(at_end);
        })?;
        Ok((Self { sender, lost }, Written(written)))
    }

    /// Prints a line, some time.
    pub(crate) fn say(&self, line: &impl core::fmt::Display) {
        if self.sender.try_send(format!("{line}\n")).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Written {
    /// Waits until all is written, but not for ever.
    pub(crate) fn wait(self) {
        let _ = self.0.recv_timeout(END_BOUND);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An output that takes nothing before it is asked to.
    struct Stuck {
        go: Receiver<()>,
        taken: SyncSender<Vec<u8>>,
    }

    impl Write for Stuck {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            let _ = self.go.recv();
            let _ = self.taken.send(data.to_vec());
            Ok(data.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_wait_for_nobody_and_what_is_left_out_is_counted() {
        let (release, go) = channel();
        let (taken, output) = sync_channel(1000);
        let (lines, written) = Lines::start(Stuck { go, taken }).unwrap();
        (0..1000).for_each(|number| lines.say(&number));
        drop((release, lines));
        written.wait();
        let text: Vec<u8> = output.iter().flatten().collect();
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with("0\n") && text.contains("lines are left out)\n"), "{text}");
        assert!(text.contains("\n255\n") && !text.contains("\n999\n"), "{text}");
    }

    #[test]
    fn lines_that_nobody_reads_are_no_error() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let (lines, written) = Lines::to(writer).unwrap();
        (0..3).for_each(|number| lines.say(&number));
        drop(lines);
        written.wait();
    }
}
