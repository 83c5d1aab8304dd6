//! Sockets of the kernel, whose stages end with its trace events. They are what a device is compared
//! with, as the paper compares M-VIA with UDP.

use port::stamp::Stage;

use super::path::{Category as C, Ends, Row, Turn, row};
use super::trace::{Trace, Which, enter};
use crate::Failure;
use crate::bench::processes::Processes;
use crate::bench::transport::Kind;

/// What names a socket in the place of a device.
pub(super) const SCHEME: &str = "kernel:";

/// A socket by its name. None: it is none.
pub(super) fn kind(name: &str) -> Option<Kind> {
    match name.strip_prefix(SCHEME)? {
        "udp" => Some(Kind::Udp),
        "tcp" => Some(Kind::Tcp { blocking: false }),
        _ => None,
    }
}

/// The stages, in places of those that a device has.
pub(super) const ROWS: [Row; 6] = [
    row(Stage::Program, "program", C::User, "writes the message"),
    row(Stage::Descriptor, "send", C::ProtocolSend, "system call, socket, IP, up to the device"),
    row(Stage::Data, "device", C::SystemReceive, "loopback, soft interrupt"),
    row(Stage::Store, "receive", C::ProtocolReceive, "IP, up to the receiver's socket"),
    row(Stage::Wire, "polling", C::ProtocolReceive, "until the receiver's system call finds it"),
    row(Stage::Poll, "copy", C::ProtocolReceive, "copy, return of the system call"),
];

/// The event that ends a stage. None: the program's own stamp does.
const fn event(stage: Stage) -> Option<(&'static str, Which)> {
    let sent = Which::After(Stage::Program);
    match stage {
        Stage::Descriptor => Some(("net/net_dev_queue", sent)),
        Stage::Data => Some(("net/netif_receive_skb", sent)),
        Stage::Store => Some(("sock/sk_data_ready", sent)),
        Stage::Wire => Some(("skb/skb_copy_datagram_iovec", Which::Before(Stage::Poll))),
        _ => None,
    }
}

/// Measures a turn of a stage; why not, if its event cannot be traced.
pub(super) fn turn(
    processes: &mut Processes,
    trace: &Result<Trace, String>,
    (number, length, rounds): (usize, usize, u32),
    stage: Stage,
) -> Result<Result<Turn, String>, Failure> {
    let Some((name, which)) = event(stage) else {
        return Ok(Ok(processes.stamped(number, (length, rounds), Ends::wanted(stage))?));
    };
    let started = trace.as_ref().map_err(Clone::clone).and_then(|trace| {
        trace.start(name)?;
        Ok(trace)
    });
    let trace = match started {
        Ok(trace) => trace,
        Err(why) => return Ok(Err(why)),
    };
    // Events that belong to no message have a message's stamps to be found by.
    let mut turn = processes.stamped(number, (length, rounds), Ends::wanted(Stage::Program))?;
    let events = match trace.stop(name) {
        Ok(events) => events,
        Err(why) => return Ok(Err(why)),
    };
    for (rounds, process) in turn.iter_mut().zip(processes.ids()) {
        let own = events.iter().filter(|event| event.0 == process).map(|event| event.1);
        enter(rounds, &own.collect::<Vec<u64>>(), which, stage);
    }
    Ok(Ok(turn))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_have_names() {
        assert_eq!(kind("kernel:udp"), Some(Kind::Udp));
        assert_eq!(kind("kernel:tcp"), Some(Kind::Tcp { blocking: false }));
        assert_eq!((kind("kernel:sctp"), kind("udp:"), kind("shm:")), (None, None, None));
    }

    #[test]
    fn stages_between_the_programs_are_the_kernels() {
        let [first, .., last] = ROWS;
        assert!(event(first.stage).is_none() && event(last.stage).is_none());
        assert!(ROWS[1..5].iter().all(|row| event(row.stage).is_some()));
    }
}
