//! The end of a VI.

use port::Queue;

use crate::objects::Vi;

impl Vi {
    /// Ends a VI for good, in whatever state it is: disconnects it, takes back what was posted, and destroys
    /// it. Afterwards the NIC touches none of its memory. For layers above, whose VIs end with what they
    /// belong to; of one that cannot be destroyed, nobody could say more than the NIC's error handler does.
    pub fn retire(&self) {
        let _ = self.disconnect();
        // What was flushed is the VI's until it is taken.
        for queue in [Queue::Recv, Queue::Send] {
            while self.done(queue).map_or_else(|error| error.descriptor.is_some(), |_| true) {}
        }
        let _ = self.destroy();
    }
}
