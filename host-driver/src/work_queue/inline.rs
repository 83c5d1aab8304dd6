//! Short sends whose data travels with the doorbell.

use nic_regs::desc::control;
use nic_regs::doorbell::PUSH_DATA_BYTES;
use nic_regs::tpt::Handle;

use super::slot::Front;

/// Data and immediate data of a send, short enough for a push.
#[derive(Clone, Copy, Debug)]
pub struct Inline {
    data: [u8; PUSH_DATA_BYTES],
    length: usize,
    /// Immediate data.
    pub immediate: Option<u32>,
}

impl Inline {
    /// The data.
    #[must_use]
    #[inline]
    pub fn data(&self) -> &[u8] {
        self.data.get(..self.length).unwrap_or(&[])
    }

    /// What the descriptor says, if it is a plain send of at most one segment that fits and that
    /// `read` can read: it gets handle and address. What else there is the device judges.
    #[inline]
    pub(super) fn of(
        front: Front<'_>,
        read: impl FnOnce(Handle, u64, &mut [u8]) -> Option<()>,
    ) -> Option<Self> {
        let shape = front.shape();
        let (count, bits) = (shape & 0xffff, (shape >> 16) as u16);
        let plain = bits & !control::IMMEDIATE == control::OP_SENDRECV;
        if !plain || count > 1 || front.reserved() != 0 {
            return None;
        }
        let immediate = (bits & control::IMMEDIATE != 0).then(|| front.immediate());
        let mut inline = Self { data: [0; PUSH_DATA_BYTES], length: 0, immediate };
        if count == 1 {
            let (address, handle) = (front.segment_address(), front.segment_handle());
            inline.length = front.segment_length();
            let data = inline.data.get_mut(..inline.length)?;
            // The device does not look at empty segments either.
            if !data.is_empty() {
                read(handle, address, data)?;
            }
        }
        Some(inline)
    }
}
