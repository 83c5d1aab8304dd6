//! What a device says of itself: limits, counters, state. A served device can be asked while another
//! program has it, or nobody.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nic_regs::counter::Counter;
use nic_regs::csr;
use nic_regs::limits::ABI;
use port::PortAttributes;

use crate::address::host_of_node;
use crate::bus::Bus;
use crate::bus::vfio_user::VfioUserBus;
use crate::error::Result;
use crate::event::LOG2_MAX;
use crate::nic::{Capabilities, check_identity, read_capabilities, read_counter};
use crate::presence::read;

/// What programs have of a NIC.
pub(crate) fn attributes(node: u8, capabilities: &Capabilities) -> PortAttributes {
    PortAttributes {
        name: format!("viaduct node {node}"),
        hardware_version: ABI.into(),
        host_address: host_of_node(node).to_vec(),
        vis: capabilities.vis.into(),
        regions: capabilities.regions.into(),
        // The driver has two of its own.
        queues: u32::from(capabilities.event_queues).saturating_sub(2),
        queue_entries: 1 << LOG2_MAX,
        segments: capabilities.segments.into(),
        max_transfer: capabilities.max_transfer,
        native_mtu: capabilities.link_payload.into(),
        tags: (1 << 16) - 1,
        push: capabilities.push,
        rdma_write: capabilities.rdma_write,
        rdma_read: capabilities.rdma_read,
        extensions: false,
        more: vec![
            ("peers", capabilities.peers.into()),
            ("domains", capabilities.domains.into()),
            ("msix_vectors", capabilities.vectors.into()),
            ("clock_khz", capabilities.clock_khz.into()),
        ],
    }
}

/// All of a device's counters, with the names of [`Counter`].
///
/// # Errors
/// A device that does not answer, or a card that is absent.
pub(crate) fn counters(bus: &dyn Bus) -> Result<Vec<(&'static str, u64)>> {
    let each = Counter::ALL.iter();
    each.map(|(cause, name, _)| Ok((*name, read_counter(bus, *cause)?.into()))).collect()
}

/// What a device's registers say of how it does.
///
/// # Errors
/// As [`counters`].
pub(crate) fn state(bus: &dyn Bus) -> Result<&'static str> {
    let status = csr::STATUS(read(bus, csr::STATUS::OFFSET)?);
    let control = csr::CONTROL(read(bus, csr::CONTROL::OFFSET)?);
    Ok(if status.get(csr::STATUS::READY) == 0 {
        "in reset"
    } else if status.get(csr::STATUS::ADMIN_FAILED) != 0 {
        "failed: the admin ring stopped"
    } else if status.get(csr::STATUS::READS_FAIL) != 0 {
        "failed: the host does not answer reads"
    } else if control.get(csr::CONTROL::ENABLE) == 0 {
        "disabled"
    } else {
        "up"
    })
}

/// A served device that is looked at. Nothing of it changes.
#[derive(Debug)]
pub struct Observer {
    bus: Arc<VfioUserBus>,
    attributes: PortAttributes,
}

impl Observer {
    /// Looks at the device at a socket. Its simulator has `bound` for each answer.
    ///
    /// # Errors
    /// Nobody serves there, or a process of another user; no Viaduct NIC, or one of another ABI.
    pub fn connect(path: &Path, bound: Duration) -> Result<Self> {
        let bus = VfioUserBus::observe(path, bound)?;
        check_identity(&*bus)?;
        let attributes = attributes(bus.node(), &read_capabilities(&*bus)?);
        Ok(Self { bus, attributes })
    }

    /// The process that has the device, if one has.
    #[must_use]
    pub fn owner(&self) -> Option<u32> {
        self.bus.owner()
    }

    /// As [`port::ViPort::attributes`].
    #[must_use]
    pub const fn attributes(&self) -> &PortAttributes {
        &self.attributes
    }

    /// As [`port::ViPort::counters`].
    ///
    /// # Errors
    /// The simulator has ended.
    pub fn counters(&self) -> Result<Vec<(&'static str, u64)>> {
        counters(&*self.bus)
    }

    /// As [`port::ViPort::state`].
    ///
    /// # Errors
    /// The simulator has ended.
    pub fn state(&self) -> Result<&'static str> {
        state(&*self.bus)
    }
}
