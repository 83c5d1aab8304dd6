//! Host reads as the contract counts them. (Reads have no tags here and answer at once, so that none
//! is missing and STATUS.READS_FAIL is never up; writes need no help.)

use nic_regs::counter::{Counter, ErrorCode};
use nic_regs::tlp::STATUS_UNSUPPORTED;

use crate::device::{HostBus, HostReadError};
use crate::nic::Model;

impl Model {
    /// Reads host memory; a failure is counted and logged.
    pub(crate) fn host_read(
        &mut self,
        host: &mut dyn HostBus,
        address: u64,
        data: &mut [u8],
    ) -> Result<(), HostReadError> {
        if data.is_empty() {
            return Ok(());
        }
        host.read(address, data).inspect_err(|_| {
            self.count(Counter::ReadErrors);
            self.log(ErrorCode::ReadError, 0, u32::from(STATUS_UNSUPPORTED));
        })
    }
}
