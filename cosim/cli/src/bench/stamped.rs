//! An exchange of messages with stamps, and stamps as text, by which one process has those of the other.

use port::stamp::{self, Stage, Stamps};

use super::transport::Transport;
use crate::Failure;

/// The end of a transport that sends first, or second; the stamps of these stages in each round. They are collected
/// while a message is under way.
pub(super) fn exchange(
    transport: &mut dyn Transport,
    is_first: bool,
    (length, rounds): (usize, u32),
    wanted: [Stage; 2],
) -> Result<Vec<Stamps>, Failure> {
    let mut all = Vec::with_capacity(usize::try_from(rounds)?);
    let _ = stamp::take();
    stamp::choose(&wanted);
    let exchanged = (0..rounds).try_for_each(|number| {
        if is_first {
            transport.send(length, number)?;
            all.push(stamp::take());
            transport.receive(length)?;
        } else {
            let number = transport.receive(length)?;
            transport.send(length, number)?;
            all.push(stamp::take());
        }
        Ok::<(), Failure>(())
    });
    stamp::choose(&[]);
    exchanged.map(|()| all)
}

/// The stage with this number.
pub(super) fn stage(number: usize) -> Result<Stage, Failure> {
    let stage = Stage::ALL.get(number).copied();
    Ok(stage.ok_or_else(|| format!("there is no stage {number}"))?)
}

/// A line of text with stamps, from one process to the other.
pub(super) fn to_line(stamps: &Stamps) -> String {
    stamps.map(|stamp| stamp.to_string()).join(" ")
}

/// What [`to_line`] has written.
pub(super) fn from_line(line: &str) -> Result<Stamps, Failure> {
    let numbers: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    Ok(numbers.try_into().map_err(|_| format!("`{line}` has no stamps"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_pass_from_process_to_process_as_text() {
        let stamps: Stamps = core::array::from_fn(|i| i as u64 * 1_000_000_007);
        assert_eq!(from_line(&to_line(&stamps)).expect("it is a line of stamps"), stamps);
        from_line("1 2 3").expect_err("too few");
        from_line("error nothing").expect_err("no numbers");
    }
}
