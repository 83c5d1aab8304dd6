//! Exchanges of messages on one transport: what the end that measures does, and what the other end does.
//!
//! An [`Exchange`] is one, and as text the request by which the other process learns of it.

use std::time::Duration;

use super::file;
use super::transport::Transport;
use crate::Failure;

/// Bytes of a credit.
const CREDIT: usize = 4;

/// An exchange of messages of a length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exchange {
    /// Each message comes back; so many rounds.
    Pong { length: usize, rounds: u32 },
    /// So many messages in one direction, of which `window` may be under way.
    Sink { length: usize, count: u32, window: u32 },
    /// So many messages in each direction, of which half of `window` may be under way.
    Both { length: usize, count: u32, window: u32 },
    /// So many remote calls with an argument of this length: a request and its answer as SunRPC has them,
    /// of which the argument is what the request has more.
    Call { argument: usize, rounds: u32 },
    /// A file of so many bytes, by messages of this length, and an answer when it has been written.
    File { length: usize, bytes: u32 },
}

/// Bytes of a request of SunRPC with no argument, and of its answer (SOVIA, section 5.4).
const REQUEST: usize = 44;
const ANSWER: usize = 28;

impl Exchange {
    /// Its words in a request.
    pub(super) fn to_text(self) -> String {
        match self {
            Self::Pong { length, rounds } => format!("pong {length} {rounds}"),
            Self::Sink { length, count, window } => format!("sink {length} {count} {window}"),
            Self::Both { length, count, window } => format!("both {length} {count} {window}"),
            Self::Call { argument, rounds } => format!("call {argument} {rounds}"),
            Self::File { length, bytes } => format!("file {length} {bytes}"),
        }
    }

    /// What [`Self::to_text`] has written; None if it is no exchange.
    pub(super) fn from_words(words: &[&str]) -> Option<Self> {
        let (name, numbers) = words.split_first()?;
        let numbers: Vec<u32> =
            numbers.iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let length = usize::try_from(*numbers.first()?).ok()?;
        Some(match (*name, &numbers[1..]) {
            ("pong", &[rounds]) => Self::Pong { length, rounds },
            ("sink", &[count, window]) => Self::Sink { length, count, window },
            ("both", &[count, window]) => Self::Both { length, count, window },
            ("call", &[rounds]) => Self::Call { argument: length, rounds },
            ("file", &[bytes]) => Self::File { length, bytes },
            _ => return None,
        })
    }

    /// Most bytes of a message.
    pub(super) const fn length(self) -> usize {
        match self {
            Self::Pong { length, .. }
            | Self::Sink { length, .. }
            | Self::Both { length, .. }
            | Self::File { length, .. } => length,
            Self::Call { argument, .. } => REQUEST + argument,
        }
    }

    /// Rounds, messages, or files.
    pub(crate) const fn count(self) -> u32 {
        match self {
            Self::Pong { rounds: count, .. }
            | Self::Sink { count, .. }
            | Self::Both { count, .. }
            | Self::Call { rounds: count, .. } => count,
            Self::File { .. } => 1,
        }
    }

    /// The same with another number of rounds or messages.
    pub(super) const fn with_count(self, count: u32) -> Self {
        match self {
            Self::Pong { length, .. } => Self::Pong { length, rounds: count },
            Self::Sink { length, window, .. } => Self::Sink { length, count, window },
            Self::Both { length, window, .. } => Self::Both { length, count, window },
            Self::Call { argument, .. } => Self::Call { argument, rounds: count },
            Self::File { .. } => self,
        }
    }

    /// The end that measures, which sends first.
    pub(super) fn first(self, transport: &mut dyn Transport) -> Result<(), Failure> {
        match self {
            Self::Pong { length, rounds } => ping(transport, length, rounds),
            Self::Sink { length, count, window } => stream(transport, length, count, window),
            Self::Both { length, count, window } => both(transport, length, count, window),
            Self::Call { argument, rounds } => {
                rounds_of(transport, (REQUEST + argument, ANSWER), rounds)
            }
            Self::File { length, bytes } => {
                file::send(transport, &file::source(bytes)?, length, bytes)
            }
        }
    }

    /// The other end.
    pub(super) fn second(self, transport: &mut dyn Transport) -> Result<(), Failure> {
        match self {
            Self::Pong { length, rounds } => answer(transport, (length, length), rounds),
            Self::Sink { length, count, window } => sink(transport, length, count, window),
            Self::Both { length, count, window } => both(transport, length, count, window),
            Self::Call { argument, rounds } => {
                answer(transport, (REQUEST + argument, ANSWER), rounds)
            }
            Self::File { length, bytes } => file::receive(transport, length, bytes),
        }
    }
}

pub(super) fn ping(
    transport: &mut dyn Transport,
    length: usize,
    rounds: u32,
) -> Result<(), Failure> {
    rounds_of(transport, (length, length), rounds)
}

/// Messages that are answered by others of another length.
fn rounds_of(
    transport: &mut dyn Transport,
    (length, answer): (usize, usize),
    rounds: u32,
) -> Result<(), Failure> {
    for stamp in 0..rounds {
        transport.send(length, stamp)?;
        let back = transport.receive(answer)?;
        if length >= CREDIT && back != stamp {
            return Err(format!("message {stamp} came back as {back}").into());
        }
    }
    Ok(())
}

fn answer(
    transport: &mut dyn Transport,
    (length, answer): (usize, usize),
    rounds: u32,
) -> Result<(), Failure> {
    for _ in 0..rounds {
        let stamp = transport.receive(length)?;
        transport.send(answer, stamp)?;
    }
    // Nothing is received after the last one, which would send what waits for others.
    transport.flush()
}

fn stream(
    transport: &mut dyn Transport,
    length: usize,
    count: u32,
    window: u32,
) -> Result<(), Failure> {
    let mut credits = window;
    let mut taken = 0;
    let mut credit = |transport: &mut dyn Transport| -> Result<(), Failure> {
        taken += 1;
        transport.receive(CREDIT).map(drop)
    };
    for stamp in 0..count {
        if credits == 0 {
            credit(transport)?;
            credits += window / 2;
        }
        transport.send(length, stamp)?;
        credits -= 1;
    }
    // The credits that are left: one for each half of a window. With the last one, all are there.
    let left = count / (window / 2) - taken;
    (0..left).try_for_each(|_| transport.receive(CREDIT).map(drop))
}

fn sink(
    transport: &mut dyn Transport,
    length: usize,
    count: u32,
    window: u32,
) -> Result<(), Failure> {
    for stamp in 0..count {
        let found = transport.receive(length)?;
        if length >= CREDIT && found != stamp {
            return Err(format!("message {found} came instead of {stamp}").into());
        }
        if (stamp + 1).is_multiple_of(window / 2) {
            transport.send(CREDIT, found)?;
            transport.flush()?;
        }
    }
    Ok(())
}

/// Both ends do the same. An end sends half a window, and then half a window for each that it receives:
/// so the other end has sent no more than its buffers take.
fn both(
    transport: &mut dyn Transport,
    length: usize,
    count: u32,
    window: u32,
) -> Result<(), Failure> {
    let half = (window / 2).max(1).min(count);
    let (mut sent, mut received) = (0, 0);
    while received < count {
        let end = count.min(received + half);
        while sent < end {
            transport.send(length, sent)?;
            sent += 1;
        }
        while received < end {
            transport.receive(length)?;
            received += 1;
        }
    }
    Ok(())
}

pub(super) fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_passes_from_process_to_process_as_text() {
        for job in [
            Exchange::Pong { length: 0, rounds: 7 },
            Exchange::Sink { length: 4096, count: 16, window: 4 },
            Exchange::Both { length: 1, count: 16, window: 2 },
            Exchange::Call { argument: 0, rounds: 3 },
            Exchange::File { length: 4096, bytes: 145_864_380 },
        ] {
            let text = job.to_text();
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!(Exchange::from_words(&words), Some(job));
            assert_eq!(Exchange::from_words(&words[..2]), None, "too few numbers");
        }
        assert_eq!(Exchange::from_words(&["pong", "4", "x"]), None);
        assert_eq!(Exchange::from_words(&["open", "4", "5"]), None);
    }
}
