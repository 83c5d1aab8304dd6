//! The host port: memory that is not there on every kind of device; slow, unordered and faulty
//! hosts on the RTL, whose reads take time.

use nic_regs::admin::Opcode;
use nic_regs::counter::{Counter, ErrorCode};
use nic_regs::desc::status::{DESC_FLUSHED_ERROR, TRANSPORT_ERROR};
use nic_regs::desc::{DataSegment, status};
use nic_regs::doorbell::{Queue, TOKEN_OFFSET, Token};
use nic_regs::event::Kind;
use nic_regs::tpt::Handle;
use nic_regs::vi::{Reliability, State, StopReason};
use tests::bare::{Bare, ERROR_EVENTS, NOWHERE};
use tests::vi::{BareVi, DOMAIN, region_at};
use tests::{DeviceKind, on_every_kind};

const LEVELS: [Reliability; 3] =
    [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception];
/// A region whose bus addresses lead nowhere.
const LOST: Handle = Handle::new(900, 4);
const LOST_VA: u64 = 0x5555_0000_0000;

/// Two nodes, a VI under test, and one that must go on.
struct Case {
    bare: Bare,
    vis: [BareVi; 2],
    bystanders: [BareVi; 2],
}

impl Case {
    fn new(kind: DeviceKind, level: Reliability) -> Self {
        let mut bare = Bare::up(kind);
        bare.register();
        for node in 0..2 {
            let body = region_at(LOST_VA, NOWHERE, 0x1_0000, LOST);
            bare.ok(node, Opcode::RegionSet, LOST.index().into(), &body);
        }
        let vis = bare.connected(level, 9, 0);
        let bystanders = bare.connected(Reliability::Reception, 10, 1);
        bare.take_events(0, ERROR_EVENTS);
        bare.take_events(1, ERROR_EVENTS);
        Self { bare, vis, bystanders }
    }

    /// The ViError of a node: reason and status bits; `None` if the VI is connected still.
    #[track_caller]
    fn stop(&mut self, node: usize) -> Option<(u32, u32)> {
        let events = self.bare.take_events(node, ERROR_EVENTS);
        let state = self.bare.state(&self.vis[node]);
        let stopped = state == State::Error as u32;
        assert_eq!(events.len(), usize::from(stopped), "{events:?}");
        let event = events.first()?;
        assert_eq!((u32::from(event.kind), event.index), (Kind::ViError as u32, 9));
        Some((event.word1 & 0xff, event.word2))
    }

    /// The read was counted and logged; everything works again after a new connection.
    fn finish(mut self, node: usize) {
        let bare = &mut self.bare;
        assert!(bare.counter(node, Counter::ReadErrors) > 0);
        let log = bare.take_log(node);
        let code = u8::try_from(ErrorCode::ReadError as u32).unwrap();
        assert!(!log.is_empty() && log.iter().all(|record| record.code == code), "{log:?}");
        bare.assert_delivers(&mut self.bystanders, 9000);
        bare.reconnect(&mut self.vis, 2);
        bare.assert_delivers(&mut self.vis, 9000);
        bare.assert_no_stray_writes();
    }
}

fn data_that_cannot_be_read(kind: DeviceKind) {
    for level in LEVELS {
        let mut case = Case::new(kind, level);
        let bare = &mut case.bare;
        let recv_segment = case.vis[1].segment(0, 4096);
        let good = case.vis[0].segment(0, 64);
        let recvs = [0, 1].map(|_| case.vis[1].post(bare, Queue::Recv, &[recv_segment]));
        bare.bench.run(200);
        let lost = DataSegment { address: LOST_VA + 100, handle: LOST.0, length: 1000 };
        let bad = case.vis[0].post(bare, Queue::Send, &[good, lost]);
        let next = case.vis[0].post(bare, Queue::Send, &[good]);
        bare.settle();
        assert_eq!(bad.status(bare), status::DONE | TRANSPORT_ERROR, "{level:?}");
        if level == Reliability::Unreliable {
            assert_eq!(next.status(bare), status::DONE);
            assert_eq!(recvs.map(|recv| recv.is_done(bare)), [true, false]);
            assert_eq!((case.stop(0), case.stop(1)), (None, None));
        } else {
            assert_eq!(next.status(bare), 0);
            assert_eq!(recvs.map(|recv| recv.is_done(bare)), [false, false]);
            let reason = StopReason::HostRead as u32;
            assert_eq!(case.stop(0), Some((reason, DESC_FLUSHED_ERROR)));
            assert_eq!(case.stop(1).map(|stop| stop.0), Some(StopReason::Refused as u32));
        }
        case.finish(0);
    }
}

/// A VI of the lowest level that stopped by itself notifies its peer when it is disconnected; one that was notified
/// by the peer sends nothing.
fn the_peer_of_a_vi_that_stopped_by_itself_is_notified(kind: DeviceKind) {
    for queue in [Queue::Send, Queue::Recv] {
        let mut case = Case::new(kind, Reliability::Unreliable);
        let bare = &mut case.bare;
        let node = usize::from(queue == Queue::Recv);
        let token = Token { vi: 9, region: LOST.index(), offset_64: 2, segments: 1, queue };
        bare.doorbell(node, DOMAIN, TOKEN_OFFSET, token.to_bits());
        bare.bench.run(300);
        if queue == Queue::Recv {
            let segment = case.vis[0].segment(0, 64);
            case.vis[0].post(bare, Queue::Send, &[segment]);
        }
        bare.settle();
        assert_eq!(case.stop(node), Some((StopReason::HostRead as u32, TRANSPORT_ERROR)));
        assert_eq!(case.stop(1 - node), None);
        case.bare.ok(node, Opcode::ViDisconnect, 9, &[]);
        case.bare.settle();
        let reported = Some((StopReason::Disconnected as u32, DESC_FLUSHED_ERROR));
        assert_eq!(case.stop(1 - node), reported, "{queue:?}");
        case.bare.ok(1 - node, Opcode::ViDisconnect, 9, &[]);
        case.bare.settle();
        assert_eq!([0, 1].map(|node| case.bare.counter(node, Counter::Unmatched)), [0, 0]);
        case.finish(node);
    }
}

fn descriptors_that_cannot_be_read(kind: DeviceKind) {
    for level in LEVELS {
        for queue in [Queue::Send, Queue::Recv] {
            let mut case = Case::new(kind, level);
            let bare = &mut case.bare;
            let node = usize::from(queue == Queue::Recv);
            let token = Token { vi: 9, region: LOST.index(), offset_64: 2, segments: 1, queue };
            bare.doorbell(node, DOMAIN, TOKEN_OFFSET, token.to_bits());
            if queue == Queue::Recv {
                bare.bench.run(300);
                let segment = case.vis[0].segment(0, 64);
                case.vis[0].post(bare, Queue::Send, &[segment]);
            }
            bare.settle();
            let stop = Some((StopReason::HostRead as u32, TRANSPORT_ERROR));
            assert_eq!(case.stop(node), stop, "{level:?} {queue:?}");
            let far = case.stop(1 - node).map(|stop| stop.0);
            let refused = level != Reliability::Unreliable;
            assert_eq!(far, refused.then_some(StopReason::Refused as u32), "{level:?} {queue:?}");
            case.finish(node);
        }
    }
}

fn a_later_descriptor_that_cannot_be_read(kind: DeviceKind) {
    for level in LEVELS {
        let mut case = Case::new(kind, level);
        let bare = &mut case.bare;
        let recv = case.vis[1].segment(0, 64);
        case.vis[1].post(bare, Queue::Recv, &[recv]);
        bare.bench.run(200);
        let segment = case.vis[0].segment(0, 64);
        let (first, token) = case.vis[0].write(bare, Queue::Send, &[segment]);
        let next = Token { region: LOST.index(), offset_64: 3, ..token };
        first.link(bare, LOST_VA + 3 * 64, LOST);
        for token in [token, next] {
            bare.doorbell(0, DOMAIN, TOKEN_OFFSET, token.to_bits());
        }
        bare.settle();
        // The first is good, and is completed so, before the second stops the VI.
        assert_eq!(first.status(bare), status::DONE, "{level:?}");
        assert_eq!(case.stop(0), Some((StopReason::HostRead as u32, TRANSPORT_ERROR)));
        case.stop(1);
        case.finish(0);
    }
}

fn writes_to_memory_that_is_not_there_harm_nobody(kind: DeviceKind) {
    let mut case = Case::new(kind, Reliability::Reception);
    let bare = &mut case.bare;
    let lost = DataSegment { address: LOST_VA, handle: LOST.0, length: 8192 };
    let recv = case.vis[1].post(bare, Queue::Recv, &[lost]);
    bare.bench.run(200);
    let segment = case.vis[0].segment(0, 8192);
    let send = case.vis[0].post(bare, Queue::Send, &[segment]);
    bare.wait("a message to nowhere", |bare| send.is_done(bare) && recv.is_done(bare));
    assert_eq!((send.errors(bare), recv.errors(bare)), (0, 0));
    let stray = &bare.host(1).stray_writes;
    assert!(stray.iter().all(|at| (NOWHERE..NOWHERE + 8192).contains(at)), "{stray:x?}");
    bare.assert_delivers(&mut case.vis, 5000);
    bare.assert_delivers(&mut case.bystanders, 5000);
}

on_every_kind! {
    data_that_cannot_be_read,
    descriptors_that_cannot_be_read,
    the_peer_of_a_vi_that_stopped_by_itself_is_notified,
    a_later_descriptor_that_cannot_be_read,
    writes_to_memory_that_is_not_there_harm_nobody,
}
