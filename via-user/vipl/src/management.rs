//! System management: what the network knows of itself.

use port::NetAddress;

use crate::error::{Result, VipReturn};
use crate::objects::Nic;

/// `VIP_SMI_AUTODISCOVERY`: which nodes there are.
#[doc(alias = "VIP_SMI_AUTODISCOVERY")]
pub const SMI_AUTODISCOVERY: u32 = 1;

/// `VIP_AUTODISCOVERY_LIST`
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "VIP_AUTODISCOVERY_LIST")]
pub struct AutoDiscoveryList {
    /// Links between this node and those of the list. Nodes on a wire or a mesh are one hop away.
    pub number_of_hops: u32,
    /// Host addresses, without discriminators, in rising order. This node is not among them.
    pub addresses: Vec<NetAddress>,
}

impl Nic {
    /// Asks for information about the network. [`SMI_AUTODISCOVERY`], the only kind that VIPL names,
    /// gives the nodes that answer now; it asks every node that there may be, which takes some
    /// milliseconds.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] for another kind, or if the NIC is closed;
    /// [`VipReturn::ErrorResource`] if the card is absent.
    #[doc(alias = "VipQuerySystemManagementInfo")]
    pub fn query_management(&self, info_type: u32) -> Result<AutoDiscoveryList> {
        self.check_open()?;
        if info_type != SMI_AUTODISCOVERY {
            return Err(VipReturn::InvalidParameter.into());
        }
        Ok(AutoDiscoveryList { number_of_hops: 1, addresses: self.port().discover()? })
    }
}
