//! Packets: from the kernel to links, and from links to the kernel.

use std::sync::Arc;

use port::sync::lock;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use vipl::{INFINITE, Queue};

use crate::counters::Drop;
use crate::error::Error;
use crate::hello;
use crate::lane::Inner;
use crate::link::{Arrived, Link};
use crate::packet::Packet;

impl Inner {
    // --- from the kernel ---

    /// The thread of the packets.
    pub(crate) fn send(&self) {
        // One byte more, so that a packet which is too long is not taken for a shorter one.
        let mut buffer = vec![0; self.shared.mtu as usize + 1];
        while !self.is_stopped() {
            match rustix::io::read(&self.packets, &mut buffer[..]) {
                Ok(0) => return self.fail(Error::NoDevice),
                Ok(length) => self.route(&buffer[..length]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait_for_packets(),
                Err(Errno::BADFD) => return self.fail(Error::NoDevice),
                Err(why) => return self.fail(Error::Packets(why)),
            }
        }
    }

    fn wait_for_packets(&self) {
        let mut files = [&self.packets, &self.stop].map(|file| PollFd::new(file, PollFlags::IN));
        // Whatever it says, the next read says more.
        let _ = poll(&mut files, None);
    }

    /// Sends a packet to whom it is for, without ever waiting.
    fn route(&self, bytes: &[u8]) {
        let Some(packet) = Packet::parse(bytes) else {
            return self.counters.drop(Drop::SentMalformed);
        };
        if !self.networks.is_own(packet.source) {
            return self.counters.drop(Drop::SentForeign);
        }
        if self.networks.is_group(packet.destination) {
            // Sent to each: VIA has no broadcast.
            let mut state = lock(&self.state);
            let links: Vec<Arc<Link>> = state.table.everyone().cloned().collect();
            let news = state.table.want(None);
            drop(state);
            links.iter().for_each(|link| self.send_to(link, bytes));
            self.missed(news, links.is_empty());
            return;
        }
        let mut state = lock(&self.state);
        let link = state.table.route(packet.destination).cloned();
        let news = link.is_none() && state.table.want(Some(packet.destination));
        drop(state);
        match link {
            Some(link) => self.send_to(&link, bytes),
            None => self.missed(news, true),
        }
    }

    fn send_to(&self, link: &Link, bytes: &[u8]) {
        match link.send(bytes) {
            Ok(()) => self.counters.sent(bytes.len()),
            Err(why) => self.counters.drop(why),
        }
    }

    /// A packet was for somebody who is not connected.
    fn missed(&self, news: bool, dropped: bool) {
        if dropped {
            self.counters.drop(Drop::NoPeer);
        }
        if news {
            self.changed.notify_all();
        }
    }

    // --- to the kernel ---

    /// The thread of the completions.
    pub(crate) fn receive(&self) {
        let mut buffer = vec![0; self.shared.mtu as usize];
        loop {
            match self.shared.cq.wait(INFINITE) {
                Ok(entry) if entry.queue == Queue::Recv => {
                    // Without a link, it was closed meanwhile.
                    if let Some(link) = self.link(entry.vi.user_data()) {
                        self.take(&link, &mut buffer);
                    }
                }
                Ok(_) => {}
                // That the NIC is closed ends the lane.
                Err(code) => return self.fail(Error::Via(code.into())),
            }
        }
    }

    fn take(&self, link: &Arc<Link>, buffer: &mut [u8]) {
        match link.take(buffer) {
            Arrived::Nothing => {}
            Arrived::Packet(length, lost) => {
                self.counters.drop_many(Drop::Lost, lost);
                match self.deliver(link, &buffer[..length]) {
                    Ok(()) => self.counters.received(length),
                    Err(why) => self.counters.drop(why),
                }
            }
            Arrived::Hello(length) => match hello::parse(&buffer[..length]) {
                Some(mut addresses) => {
                    // Of others no packet goes here, and none is taken.
                    addresses.retain(|ip| self.networks.contains(*ip));
                    link.set_addresses(addresses);
                    self.greet(link);
                }
                None => self.counters.drop(Drop::Malformed),
            },
            Arrived::Unknown => self.counters.drop(Drop::Malformed),
            Arrived::Misplaced => self.counters.drop(Drop::Misplaced),
            Arrived::End => self.lost(link),
        }
    }

    fn deliver(&self, link: &Link, bytes: &[u8]) -> Result<(), Drop> {
        let packet = Packet::parse(bytes).ok_or(Drop::Malformed)?;
        let addresses = link.addresses().filter(|_| link.is_up()).ok_or(Drop::Early)?;
        if !addresses.contains(&packet.source) {
            return Err(Drop::Foreign);
        }
        match rustix::io::write(&self.packets, bytes) {
            Ok(_) => Ok(()),
            Err(_) => Err(Drop::Refused),
        }
    }
}
