//! What the reactor looks at: whether calls that would have waited would do so still.

use vipl::Nic;

use super::Connection;
use crate::reactor::Watched;

impl Watched for Connection {
    /// Takes packets that are there.
    fn proceeds(&self, [reads, writes]: [bool; 2]) -> [bool; 2] {
        let mut shared = self.lock();
        let has_new = self.drain(&mut shared, usize::MAX);
        if writes {
            self.absorb(&mut shared);
            let _ = shared.slots.reap(&self.vi);
        }
        if has_new {
            // Acknowledgements are due, or there is room for what waits.
            self.transmit(&mut shared);
        }
        let is_broken = shared.broken.is_some();
        [
            reads && (is_broken || shared.reads()),
            writes && (is_broken || shared.engine.has_room() && shared.slots.has_send(true)),
        ]
    }

    fn nic(&self) -> &Nic {
        self.device.nic()
    }
}
