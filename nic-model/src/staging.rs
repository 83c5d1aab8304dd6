//! The staging memory: frames that the channel has accepted and the receive engine has not consumed.

use std::collections::VecDeque;

use nic_regs::limits::{CREDITS_MAX, FRAME_CREDITS, UNSEQUENCED_UNITS};

use crate::frame::Frame;

/// An accepted frame, and whose credits it holds.
#[derive(Clone, Debug)]
pub struct Staged {
    /// The frame.
    pub frame: Frame,
    /// Cycle of the first beat.
    pub started: u64,
    /// Which of the peer's channels, one after the other, it came by.
    pub incarnation: u64,
}

/// Staging memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Staging {
    frames: VecDeque<Staged>,
    /// Units in use: by unsequenced frames, and by sequenced ones.
    units: [usize; 2],
}

impl Staging {
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Whether the whole frame fits: sequenced frames and others have space of their own.
    pub(crate) fn has_space(&self, frame: &Frame) -> bool {
        let sequenced = frame.sequenced();
        let all = if sequenced { CREDITS_MAX } else { UNSEQUENCED_UNITS };
        self.units[usize::from(sequenced)] + frame.header.credits() <= all
    }

    /// Whether any sequenced frame fits.
    pub(crate) const fn has_space_for_any(&self) -> bool {
        self.units[1] + FRAME_CREDITS <= CREDITS_MAX
    }

    pub(crate) fn push(&mut self, staged: Staged) {
        let sequenced = staged.frame.sequenced();
        self.units[usize::from(sequenced)] += staged.frame.header.credits();
        self.frames.push_back(staged);
    }

    pub(crate) fn pop(&mut self) -> Option<Staged> {
        let staged = self.frames.pop_front()?;
        let sequenced = staged.frame.sequenced();
        self.units[usize::from(sequenced)] -= staged.frame.header.credits();
        Some(staged)
    }
}
