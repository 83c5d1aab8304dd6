//! Frames for the receive engine, good and bad, and what happens to its VIs meanwhile.

use super::Bench;
use crate::post::Plan;
use cosim::random::Random;
use nic_model::desc::Operation;
use nic_regs::doorbell::Queue;
use nic_regs::frame::{Header, RdmaHeader, Type, flag};
use nic_regs::tpt::Handle;
use nic_regs::vi::State;

/// Spoils a frame of a message; true if it is lost.
fn spoil_message(random: &mut Random, header: &mut Header) -> bool {
    match random.below(14) {
        0 => header.src_node ^= 1,
        1 => header.src_vi ^= 0x100,
        2 => header.connection ^= 0x8000,
        3 => header.dst_vi += 1024,
        4 => header.flags ^= flag::SEQUENCED,
        5 => header.flags ^= flag::RECEPTION,
        6 => header.flags ^= flag::FIRST,
        7 => header.flags ^= flag::LAST,
        8 => header.word = random.below(1 << 32) as u32,
        9 => header.word = header.word.wrapping_sub(1),
        10 => header.sequence = header.sequence.wrapping_add(1),
        11 => header.sequence ^= 0x100,
        12 => header.kind = 9 + random.below(7) as u8,
        _ => return true,
    }
    false
}

/// The same for an RDMA write.
fn spoil_write(random: &mut Random, header: &mut Header, place: &mut RdmaHeader) -> bool {
    match random.below(12) {
        0 => place.total = place.total.wrapping_add(1),
        1 => place.total = place.total.wrapping_sub(1),
        2 => place.total = 0x40001 + random.below(9) as u32,
        3 => place.handle ^= 1 << random.below(32),
        4 => place.address = random.bits(),
        5 => header.flags ^= flag::SEQUENCED,
        6 => header.flags ^= flag::FIRST,
        7 => header.flags ^= flag::LAST,
        8 => header.sequence = header.sequence.wrapping_add(1),
        9 => header.connection ^= 1,
        _ => return true,
    }
    false
}

impl Bench {
    /// A message as its frames, perhaps with one thing wrong.
    pub(super) fn message(&mut self, number: u16, long: f64, faults: f64) {
        let random = &mut self.host.random;
        let bytes = match random.below(4) {
            _ if random.chance(long) => random.below(0x40100),
            0 => random.below(20),
            1 => random.below(300),
            _ => random.below(10_000),
        };
        let immediate = random.chance(0.3);
        self.send(number, bytes, None, immediate, faults);
    }

    /// An RDMA write as its frames, perhaps with one thing wrong.
    pub(super) fn write(&mut self, number: u16, faults: f64) {
        let random = &mut self.host.random;
        let index = self.vis[&number].targets[usize::from(random.chance(faults))];
        let region = self.host.region(index);
        let random = &mut self.host.random;
        let bytes = match random.below(3) {
            0 => random.below(20),
            1 => random.below(5000),
            _ => random.below(0x12000),
        };
        let slack = u64::from(region.length) - bytes + u64::from(random.chance(faults));
        let address = region.va_base + if slack == 0 { 0 } else { random.below(slack) };
        let address = if random.chance(faults) { address.wrapping_sub(0x12000) } else { address };
        let stale = u16::from(random.chance(faults));
        let handle = Handle::new(index, region.generation + stale).0;
        let immediate = random.chance(0.5);
        self.send(number, bytes, Some((address, handle)), immediate, faults);
    }

    /// So many bytes as the frames of a message, or of an RDMA write to `target`.
    pub(super) fn send(
        &mut self,
        number: u16,
        bytes: u64,
        target: Option<(u64, u32)>,
        immediate: bool,
        faults: f64,
    ) {
        let random = &mut self.host.random;
        let vi = self.vis.get_mut(&number).unwrap();
        let total = u32::try_from(bytes).unwrap();
        let frames = bytes.div_ceil(4096).max(1);
        for frame in 0..frames {
            let length = (bytes - frame * 4096).min(4096);
            let mut place = target.map(|(address, handle)| RdmaHeader {
                address: address.wrapping_add(frame * 4096),
                handle,
                total,
            });
            let data = |random: &mut Random| (0..length).map(|_| random.below(256) as u8).collect();
            let message: Option<Vec<u8>> = target.is_none().then(|| data(random));
            let (first, last) = (frame == 0, frame + 1 == frames);
            let mut flags = if first { flag::FIRST } else { 0 };
            flags |= if last { flag::LAST } else { 0 };
            flags |= if last && immediate { flag::IMMEDIATE } else { 0 };
            flags |= if vi.level != 1 { flag::SEQUENCED } else { 0 };
            flags |= if vi.level == 4 { flag::RECEPTION } else { 0 };
            let word = match (last && immediate, first && !last && target.is_none()) {
                (true, _) => random.below(1 << 32) as u32,
                (_, true) => total,
                _ => 0,
            };
            let sequence = if vi.level == 1 || target.is_some() {
                u16::from(vi.message) << 8 | u16::try_from(frame).unwrap()
            } else {
                random.below(1 << 16) as u16
            };
            let kind = if target.is_some() { Type::RdmaWrite } else { Type::Data };
            let header_bytes = if target.is_some() { 16 } else { 0 };
            let mut header = Header {
                kind: kind as u8,
                length: u16::try_from(header_bytes + length).unwrap(),
                src_node: vi.peer,
                dst_vi: number,
                src_vi: vi.peer_vi,
                connection: vi.connection,
                flags,
                sequence,
                word,
                ..Header::default()
            };
            if random.chance(faults) {
                let lost = match &mut place {
                    None => spoil_message(random, &mut header),
                    Some(place) => spoil_write(random, &mut header, place),
                };
                if lost {
                    continue;
                }
            }
            let payload = message.unwrap_or_else(|| {
                let place = place.expect("an RDMA write").to_beats();
                let mut payload: Vec<u8> = place.into_iter().flat_map(u64::to_le_bytes).collect();
                payload.extend::<Vec<u8>>(data(random));
                payload
            });
            vi.left.push_back((header, payload));
        }
        vi.message = vi.message.wrapping_add(1);
    }

    /// Posts a read, if none waits, as if its request had been sent.
    pub(super) fn ask(&mut self, number: u16, plan: Plan) {
        let vi = self.vis.get_mut(&number).unwrap();
        let connected = matches!(vi.state, State::Connected);
        if !connected || vi.level == 1 || !vi.sends.has_space() {
            return;
        }
        if vi.reading.is_some() {
            // Posted behind it: Next of what was read may have to be read again.
            for _ in 0..2 {
                if vi.sends.has_space() {
                    vi.sends.post(&mut self.host, plan);
                }
            }
            return self.copy_posts();
        }
        if self.judged {
            return;
        }
        if vi.sends.count == 0 {
            if self.frames.is_empty() && self.trailing.is_empty() {
                vi.sends.rewind(&mut self.host);
            }
            vi.sends.post(&mut self.host, plan);
        }
        if self.host.random.chance(0.7) {
            vi.sends.post(&mut self.host, plan);
        }
        let total = match self.head(number, Queue::Send) {
            Ok(found)
                if matches!(found.operation, Operation::Read { .. }) && found.total <= 0x40000 =>
            {
                found.total as u32
            }
            _ => {
                let vi = self.vis.get_mut(&number).unwrap();
                // It would not have been asked for; the VI has stopped.
                vi.sends.clear();
                self.copy_posts();
                return;
            }
        };
        self.vis.get_mut(&number).unwrap().reading = Some((0, total));
        let mut left = total;
        loop {
            let length = left.min(4096);
            left -= length;
            self.response(number, length, left, plan.faults);
            if left == 0 {
                break;
            }
        }
        self.copy_posts();
    }

    /// Part of the answer to a read, perhaps with one thing wrong, or to none.
    pub(super) fn response(&mut self, number: u16, length: u32, left: u32, faults: f64) {
        let random = &mut self.host.random;
        let vi = self.vis.get_mut(&number).unwrap();
        let mut header = Header {
            kind: Type::ReadResponse as u8,
            length: length as u16,
            src_node: vi.peer,
            dst_vi: number,
            src_vi: vi.peer_vi,
            connection: vi.connection,
            // They say nothing.
            flags: flag::SEQUENCED | random.below(8) as u8 | (random.below(2) << 4) as u8,
            word: left,
            ..Header::default()
        };
        if random.chance(faults / 4.0) {
            match random.below(5) {
                0 => header.word = random.below(1 << 32) as u32,
                1 => header.word = header.word.wrapping_sub(1),
                2 => header.word += 1,
                3 => (header.length, header.word) = (0, length + left),
                _ => header.connection ^= 1,
            }
        }
        let payload = (0..header.length).map(|_| random.below(256) as u8).collect();
        vi.left.push_back((header, payload));
    }

    /// The peer reads this side's memory.
    pub(super) fn request(&mut self, number: u16, faults: f64) {
        let random = &mut self.host.random;
        let vi = self.vis.get_mut(&number).unwrap();
        let index = vi.targets[usize::from(!random.chance(faults))];
        let region = self.host.region(index);
        let random = &mut self.host.random;
        let total = if random.chance(0.2) { 0 } else { random.below(0x12000) };
        let slack = u64::from(region.length) - total + u64::from(random.chance(faults));
        let mut place = RdmaHeader {
            address: region.va_base + random.below(slack.max(1)),
            handle: Handle::new(index, region.generation).0,
            total: total as u32,
        };
        if random.chance(faults) {
            match random.below(4) {
                0 => place.total = 0x40001 + random.below(9) as u32,
                1 => place.total = random.below(1 << 32) as u32,
                2 => place.handle ^= 1 << random.below(32),
                _ => place.address = random.bits(),
            }
        }
        let header = Header {
            kind: Type::ReadRequest as u8,
            length: 16,
            src_node: vi.peer,
            dst_vi: number,
            src_vi: vi.peer_vi,
            connection: vi.connection,
            flags: flag::SEQUENCED | random.below(8) as u8,
            word: random.below(1 << 32) as u32,
            ..Header::default()
        };
        let payload = place.to_beats().iter().flat_map(|beat| beat.to_le_bytes()).collect();
        vi.left.push_back((header, payload));
    }

    pub(super) fn control(&mut self, number: u16) {
        let random = &mut self.host.random;
        let vi = self.vis.get_mut(&number).unwrap();
        let kind = match random.below(30) {
            0 => Type::Fin,
            1 => Type::ViRefuse,
            _ => Type::ViAck,
        };
        let header = Header {
            kind: kind as u8,
            src_node: vi.peer ^ u8::from(random.chance(0.1)),
            dst_vi: number,
            src_vi: vi.peer_vi,
            connection: vi.connection,
            flags: flag::SEQUENCED,
            word: random.below(13) as u32,
            ..Header::default()
        };
        vi.left.push_back((header, Vec::new()));
    }

    pub(super) fn out_of_band(&mut self) {
        let random = &mut self.host.random;
        let payload = (0..48).map(|_| random.below(256) as u8).collect();
        let header = Header {
            kind: Type::Message as u8,
            length: 48,
            src_node: random.below(64) as u8,
            dst_vi: random.below(64) as u16,
            ..Header::default()
        };
        self.frames.push_back((header, payload));
    }

    /// A stopped VI starts anew, with empty queues.
    pub(super) fn reconnect(&mut self, number: u16) {
        let vi = self.vis.get_mut(&number).unwrap();
        vi.left.clear();
        (vi.progress, vi.reading, vi.read_over, vi.answering) = (None, None, false, false);
        vi.state = State::Connected;
        vi.queue.clear();
        vi.sends.clear();
        vi.sends.find_again(&mut self.host);
        // Those that the engine has seen still come.
        let mut rest = self.frames.split_off(self.bases.len());
        rest.retain(|(header, _)| header.dst_vi != number);
        self.frames.append(&mut rest);
    }

    /// Now and then, behind a fence: what a descriptor names goes, or the descriptor itself.
    pub(super) fn spoil(&mut self, number: u16) {
        let vi = self.vis.get_mut(&number).unwrap();
        let reading = vi.reading.is_some();
        if !self.host.random.chance(if reading { 0.1 } else { 0.0005 }) {
            return;
        }
        if reading && self.host.random.chance(0.3) {
            vi.sends.lose(&mut self.host);
        } else if reading && self.host.random.chance(0.3) {
            vi.sends.corrupt(&mut self.host);
        }
        let at_sends = reading && self.host.random.chance(0.7);
        let revoke = self.host.random.chance(0.5);
        let good = self.head(number, if at_sends { Queue::Send } else { Queue::Recv }).is_ok();
        let vi = &self.vis[&number];
        let queue = if at_sends { &vi.sends } else { &vi.queue };
        if revoke {
            queue.revoke(&mut self.host);
        } else if good && queue.count > 0 {
            queue.shorten(&mut self.host);
        }
        self.copy_posts();
    }
}
