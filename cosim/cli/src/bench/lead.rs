//! Measurements by another pair of processes, whose TCP connections go by `libsovia.so`: this process's own
//! sockets are the kernel's.
//!
//! ```text
//!   this process ── a line a measurement ──► viaduct run viaduct bench lead ──► its peer
//! ```
//! A request is `open LARGEST KIND` or `measure TRANSPORT EXCHANGE` ([`Exchange`]); an answer is `error` and
//! why, or `ok` and a number: of the transport, or the time in nanoseconds.

use sovia::preload::LOG_VARIABLE;

use super::exchange::Exchange;
use super::processes::{Peer, Processes};
use super::transport::Kind;
use crate::Failure;

/// Which ends have the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preloaded {
    Both,
    /// The one that measures: no connection moves.
    One,
}

/// The pair, as this process sees it.
pub(super) struct Lead(Peer);

impl Lead {
    pub(super) fn start(preloaded: Preloaded) -> Result<Self, Failure> {
        let own = std::env::current_exe()?;
        let own = own.to_str().ok_or("the path of this program is no text")?;
        let alone = (preloaded == Preloaded::One).then_some("--alone");
        let arguments: Vec<&str> = ["run", own, "bench", "lead"].into_iter().chain(alone).collect();
        let mut lead = Self(Peer::start(&arguments)?);
        lead.0.answer()?;
        Ok(lead)
    }

    /// Opens a transport; its number.
    pub(super) fn open(&mut self, kind: &Kind, largest: usize) -> Result<usize, Failure> {
        self.0.request(&format!("open {largest} {kind}"))?;
        Ok(self.0.answer()?.parse()?)
    }

    /// [`Processes::measure`], there.
    pub(super) fn measure(&mut self, number: usize, exchange: Exchange) -> Result<f64, Failure> {
        self.0.request(&format!("measure {number} {}", exchange.to_text()))?;
        Ok(self.0.answer()?.parse()?)
    }
}

/// What the process does that has the library. `alone`: the other one has it not.
pub(crate) fn lead(alone: bool) -> Result<(), Failure> {
    let mut processes = if alone {
        // Without the first one alone the library would put it back.
        Processes::start_without(&["LD_PRELOAD", LOG_VARIABLE])?
    } else {
        Processes::start()?
    };
    println!("ok");
    for line in std::io::stdin().lines() {
        match serve(&line?, &mut processes) {
            Ok(number) => println!("ok {number}"),
            Err(why) => println!("error {}", why.to_string().replace('\n', " ")),
        }
    }
    Ok(())
}

fn serve(line: &str, processes: &mut Processes) -> Result<f64, Failure> {
    let unknown = || format!("`{line}` is no request");
    if let Some((largest, kind)) = line.strip_prefix("open ").and_then(|rest| rest.split_once(' '))
    {
        let number = processes.open(&kind.parse()?, largest.parse()?)?;
        return Ok(f64::from(u32::try_from(number)?));
    }
    let words: Vec<&str> = line.split(' ').collect();
    let ["measure", number, exchange @ ..] = &words[..] else { return Err(unknown().into()) };
    processes.measure(number.parse()?, Exchange::from_words(exchange).ok_or_else(unknown)?)
}
