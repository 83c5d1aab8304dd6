//! `udp:` and `eth:`, whose packets the kernel carries.

use port::stamp::Stage;

use super::path::{Category as C, Row, row};

/// The stages, in places of those that shared memory has.
pub(super) const ROWS: [Row; 13] = [
    row(Stage::Program, "program", C::User, "takes an earlier send back, writes the message"),
    row(Stage::Post, "post", C::User, "VIPL: queue locked, descriptor linked"),
    row(Stage::Doorbell, "doorbell", C::ProtocolSend, "port called, VI locked"),
    row(Stage::Descriptor, "descriptor", C::ProtocolSend, "read and checked"),
    row(Stage::Data, "data", C::ProtocolSend, "packet built, data copied into it"),
    row(Stage::Store, "send", C::SystemSend, "status, headers, system call; on loopback, delivery"),
    row(Stage::Return, "return", C::User, "the post returns"),
    row(Stage::Repost, "repost", C::User, "a receive posted"),
    row(Stage::Wire, "receive", C::SystemReceive, "network, system call that finds the packet"),
    row(Stage::Match, "match", C::ProtocolReceive, "packet in order, receive descriptor checked"),
    row(Stage::Write, "write", C::ProtocolReceive, "data copied to the receive buffer"),
    row(Stage::Status, "status", C::ProtocolReceive, "status of the receive written"),
    row(Stage::Poll, "poll", C::User, "VIPL finds the status, returns the descriptor"),
];

/// Whether a URL names such a device.
pub(super) fn is_one(url: &str) -> bool {
    ["udp:", "eth:"].iter().any(|scheme| url.starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_in_order_and_named_once() {
        assert!(ROWS.windows(2).all(|two| (two[0].stage as usize) < two[1].stage as usize));
        assert!(is_one("udp:10.0.0.1") && is_one("eth:eth0"));
        assert!(!is_one("kernel:udp") && !is_one("shm:"));
    }
}
