//! Windows and acknowledgements: how many packets of data each side may send (SOVIA, 3.2; Stream Sockets,
//! 3.1).

use crate::policy::FlowControl;

/// Both directions of one side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    control: FlowControl,
    /// The other side's window, and what is left of it.
    most: u16,
    left: u16,
    /// Own receives that were posted again, which the other side does not know of.
    due: u16,
    /// Packets of data that it may still send.
    theirs: u16,
    /// This side has asked for credits, which have not come.
    asked: bool,
    /// The other side has.
    is_asked: bool,
}

impl Flow {
    /// For a peer with a window of `most` packets.
    pub(crate) const fn new(control: FlowControl, most: u16) -> Self {
        Self { control, most, left: most, due: 0, theirs: most, asked: false, is_asked: false }
    }

    /// Packets of data that may be sent, and how many that is at most.
    pub(crate) const fn credits(&self) -> [u16; 2] {
        [self.left, self.most]
    }

    /// Whether a packet of data may be sent.
    pub(crate) const fn may_send(&self) -> bool {
        self.left > 0
    }

    /// A packet of data is sent. Gives the acknowledgements that go with it.
    pub(crate) const fn send(&mut self) -> u16 {
        self.left -= 1;
        match self.control {
            FlowControl::Window { .. } => self.take(),
            FlowControl::Credits { .. } => 0,
        }
    }

    /// Acknowledgements that go with any packet of this side.
    pub(crate) const fn take(&mut self) -> u16 {
        self.theirs += self.due;
        core::mem::replace(&mut self.due, 0)
    }

    /// A packet of data has come. False: the other side may not send one.
    pub(crate) const fn arrive(&mut self) -> bool {
        let may = self.theirs > 0;
        self.theirs = self.theirs.saturating_sub(1);
        may
    }

    /// Acknowledgements have come. False: more than there can be.
    pub(crate) fn acknowledge(&mut self, count: u16) -> bool {
        let left = self.left.saturating_add(count);
        self.left = left.min(self.most);
        left <= self.most
    }

    /// A receive was posted again.
    pub(crate) const fn repost(&mut self) {
        self.due += 1;
    }

    /// Whether acknowledgements are to be sent although nothing else is, if `more` receives were posted.
    pub(crate) fn is_due(&self, more: u16) -> bool {
        let due = self.due.saturating_add(more);
        match self.control {
            FlowControl::Window { delayed } => due >= delayed,
            FlowControl::Credits { low } => self.is_asked && due >= low,
        }
    }

    /// Whether to ask for credits, because there are none.
    pub(crate) const fn lacks(&self) -> bool {
        matches!(self.control, FlowControl::Credits { .. }) && self.left == 0 && !self.asked
    }

    /// The request is sent.
    pub(crate) const fn ask(&mut self) {
        self.asked = true;
    }

    /// The other side's request has come. False: it has one already.
    pub(crate) const fn note_request(&mut self) -> bool {
        !core::mem::replace(&mut self.is_asked, true)
    }

    /// The response is sent: what it carries.
    pub(crate) const fn respond(&mut self) -> u16 {
        self.is_asked = false;
        self.take()
    }

    /// The response to this side's request has come. False: there was none.
    pub(crate) const fn note_response(&mut self) -> bool {
        core::mem::replace(&mut self.asked, false)
    }
}
