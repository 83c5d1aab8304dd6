//! Channels to other nodes: opened, kept open, opened again after they went down.

use nic_regs::admin::{AdminStatus, PeerState};
use nic_regs::limits::{CREDITS_MAX, FRAME_CREDITS, PEER_COUNT};

use crate::admin::Admin;
use crate::error::{Error, Result};

/// Pause before a dead channel is tried again.
const REOPEN_PAUSE_NS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
struct Peer {
    wanted: bool,
    /// One of those among whom staging is divided from the start.
    expected: bool,
    state: PeerState,
    granted: u8,
    reopen_at: u64,
}

/// All peers of a NIC.
#[derive(Debug)]
pub struct Peers {
    peers: [Peer; PEER_COUNT],
    epoch: Epochs,
    credits: u8,
}

/// Random numbers for epochs and exchanges, from a seed that the caller or the OS gave.
#[derive(Debug)]
pub struct Epochs(u64);

impl Epochs {
    /// Starts from a seed; the same seed gives the same numbers.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A seed from the operating system.
    #[must_use]
    pub fn os_seed() -> u64 {
        use std::hash::{BuildHasher, RandomState};
        RandomState::new().hash_one(std::process::id())
    }

    /// The next number (SplitMix64).
    pub const fn next_u32(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 32) as u32
    }
}

impl Peers {
    /// All closed; `expected` are those that will be wanted at once, `credits` is the most that one
    /// is granted.
    #[must_use]
    pub fn new(seed: u64, credits: u8, expected: &[u8]) -> Self {
        let mut number = 0;
        let peers = [(); PEER_COUNT].map(|()| {
            let expected = expected.contains(&number);
            number += 1;
            let state = PeerState::Closed;
            Peer { wanted: false, expected, state, granted: 0, reopen_at: 0 }
        });
        Self { peers, epoch: Epochs::new(seed), credits }
    }

    /// The credits for `node`: its share of the staging memory, of what the others left, but enough
    /// for one frame. What is granted beyond the memory costs retransmissions, not the channel.
    fn grant(&self, node: u8) -> u8 {
        let others = self.peers.iter().enumerate().filter(|(at, _)| *at != usize::from(node));
        let others = others.filter(|(_, peer)| peer.expected || peer.state == PeerState::Open);
        let (count, granted) = others
            .fold((1, 0), |(count, sum), (_, peer)| (count + 1, sum + usize::from(peer.granted)));
        let share = (CREDITS_MAX / count).min(CREDITS_MAX.saturating_sub(granted));
        u8::try_from(share.max(FRAME_CREDITS)).map_or(self.credits, |share| share.min(self.credits))
    }

    /// The state of the channel to `node`, as the last event reported it.
    #[must_use]
    pub fn state(&self, node: u8) -> PeerState {
        self.peers.get(usize::from(node)).map_or(PeerState::Closed, |peer| peer.state)
    }

    /// Whether the channel to `node` is to be open.
    #[must_use]
    pub fn is_wanted(&self, node: u8) -> bool {
        self.peers.get(usize::from(node)).is_some_and(|peer| peer.wanted)
    }

    /// Wants the channel to `node` open from now on.
    ///
    /// # Errors
    /// A failed command.
    pub fn want(&mut self, admin: &Admin, node: u8) -> Result<()> {
        if let Some(peer) = self.peers.get_mut(usize::from(node)) {
            peer.wanted = true;
        }
        self.open(admin, node)
    }

    /// Opens the channel to `node`, which is not opened again if it goes down and nobody wants it.
    ///
    /// # Errors
    /// A failed command.
    pub(crate) fn open(&mut self, admin: &Admin, node: u8) -> Result<()> {
        let granted = self.grant(node);
        let Some(peer) = self.peers.get_mut(usize::from(node)) else { return Ok(()) };
        if peer.state == PeerState::Closed {
            admin.peer_open(node, self.epoch.next_u32(), granted)?;
            (peer.state, peer.granted) = (PeerState::Opening, granted);
        }
        Ok(())
    }

    /// Closes the channel to `node` for good.
    ///
    /// # Errors
    /// A failed command.
    pub fn close(&mut self, admin: &Admin, node: u8) -> Result<()> {
        let Some(peer) = self.peers.get_mut(usize::from(node)) else { return Ok(()) };
        peer.wanted = false;
        if peer.state != PeerState::Closed {
            match admin.peer_close(node) {
                // It went down by itself, and the event that reports it is on its way.
                Err(Error::Command { status: AdminStatus::BadState, .. }) => {}
                done => done?,
            }
            let peer = &mut self.peers[usize::from(node)];
            (peer.state, peer.granted) = (PeerState::Closed, 0);
        }
        Ok(())
    }

    /// The device says that the channel is open.
    pub fn up(&mut self, node: u8) {
        if let Some(peer) = self.peers.get_mut(usize::from(node)) {
            peer.state = PeerState::Open;
        }
    }

    /// The device reports that the channel went down. `now` is the channel's state at present: unless
    /// it is Closed, the report is of an earlier opening, and the channel was opened again since.
    pub fn down(&mut self, node: u8, now: PeerState, now_ns: u64) {
        if let Some(peer) = self.peers.get_mut(usize::from(node)) {
            peer.state = now;
            if now == PeerState::Closed {
                (peer.granted, peer.reopen_at) = (0, now_ns + REOPEN_PAUSE_NS);
            }
        }
    }

    /// The card is absent; the channel is not wanted any more.
    pub fn lost(&mut self, node: u8) {
        if let Some(peer) = self.peers.get_mut(usize::from(node)) {
            (peer.wanted, peer.state, peer.granted) = (false, PeerState::Closed, 0);
        }
    }

    /// Opens again what is wanted and closed, after its pause. What fails is tried again after
    /// another one; whoever asks for a connection meanwhile sees that there is no channel.
    pub fn on_timer(&mut self, admin: &Admin, now_ns: u64) {
        for node in (0..=u8::MAX).take(PEER_COUNT) {
            let peer = self.peers[usize::from(node)];
            let due = peer.wanted && peer.state == PeerState::Closed && peer.reopen_at <= now_ns;
            if due && self.want(admin, node).is_err() {
                self.peers[usize::from(node)].reopen_at = now_ns + REOPEN_PAUSE_NS;
            }
        }
    }

    /// When [`Peers::on_timer`] has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        let closed = |peer: &&Peer| peer.wanted && peer.state == PeerState::Closed;
        self.peers.iter().filter(closed).map(|peer| peer.reopen_at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(peers: &mut Peers, node: u8) -> u8 {
        let granted = peers.grant(node);
        let peer = &mut peers.peers[usize::from(node)];
        (peer.state, peer.granted) = (PeerState::Open, granted);
        granted
    }

    #[test]
    fn staging_is_divided_among_the_peers() {
        let grants = |expected: &[u8], nodes: &[u8]| -> Vec<u8> {
            let mut peers = Peers::new(1, 64, expected);
            nodes.iter().map(|&node| open(&mut peers, node)).collect()
        };
        assert_eq!(grants(&[3], &[3]), [64]);
        assert_eq!(grants(&[1, 3], &[1, 3]), [32, 32]);
        assert_eq!(grants(&[0, 1, 3], &[3, 0, 1]), [21, 21, 21]);
        // Those that are not among the configured peers get what is left, and a frame's worth in any case.
        assert_eq!(grants(&[1, 3], &[1, 7, 3, 8]), [32, 21, 17, 17]);
        assert_eq!(grants(&[], &[5, 6]), [64, 17]);
        let all: Vec<u8> = (1..64).collect();
        assert_eq!(grants(&all, &all), [17; 63]);
    }

    #[test]
    fn what_a_peer_had_is_there_for_the_next() {
        let mut peers = Peers::new(1, 40, &[]);
        assert_eq!((open(&mut peers, 1), open(&mut peers, 2)), (40, 24));
        peers.down(1, PeerState::Closed, 0);
        assert_eq!(open(&mut peers, 3), 32);
        peers.lost(3);
        peers.lost(2);
        assert_eq!(open(&mut peers, 1), 40);
        assert_eq!(Peers::new(1, 8, &[]).grant(1), 8);
    }
}
