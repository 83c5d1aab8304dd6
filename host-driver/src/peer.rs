//! Channels to other nodes: opened, kept open, opened again after they went down.

use nic_regs::admin::{AdminStatus, PeerState};
use nic_regs::limits::PEER_COUNT;

use crate::admin::Admin;
use crate::error::{Error, Result};

/// Pause before a dead channel is tried again.
const REOPEN_PAUSE_NS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
struct Peer {
    wanted: bool,
    state: PeerState,
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
    /// All closed.
    #[must_use]
    pub const fn new(seed: u64, credits: u8) -> Self {
        let closed = Peer { wanted: false, state: PeerState::Closed, reopen_at: 0 };
        Self { peers: [closed; PEER_COUNT], epoch: Epochs::new(seed), credits }
    }

    /// The state of the channel to `node`, as the last event told it.
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
        let Some(peer) = self.peers.get_mut(usize::from(node)) else { return Ok(()) };
        peer.wanted = true;
        if peer.state == PeerState::Closed {
            let epoch = self.epoch.next_u32();
            admin.peer_open(node, epoch, self.credits)?;
            self.peers[usize::from(node)].state = PeerState::Opening;
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
                // It went down by itself, and the event that tells of it is on its way.
                Err(Error::Command { status: AdminStatus::BadState, .. }) => {}
                done => done?,
            }
            self.peers[usize::from(node)].state = PeerState::Closed;
        }
        Ok(())
    }

    /// The device says that the channel is open.
    pub fn up(&mut self, node: u8) {
        if let Some(peer) = self.peers.get_mut(usize::from(node)) {
            peer.state = PeerState::Open;
        }
    }

    /// The device says that the channel is closed.
    pub fn down(&mut self, node: u8, now_ns: u64) {
        if let Some(peer) = self.peers.get_mut(usize::from(node)) {
            peer.state = PeerState::Closed;
            peer.reopen_at = now_ns + REOPEN_PAUSE_NS;
        }
    }

    /// The card is gone; the channel is not wanted any more.
    pub fn lost(&mut self, node: u8) {
        if let Some(peer) = self.peers.get_mut(usize::from(node)) {
            (peer.wanted, peer.state) = (false, PeerState::Closed);
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
