//! Hosts: the search for them, and the names that the network itself gives them.

use crate::address::NetAddress;
use crate::error::{Error, Result};

/// Hosts of a port's network. The defaults suit a network that is not searched and gives no names.
pub trait HostOps {
    /// Host addresses of the hosts that answer now, in rising order, this one not among them. May
    /// take some milliseconds.
    ///
    /// # Errors
    /// The device no longer exists; the port cannot search.
    fn discover(&self) -> Result<Vec<NetAddress>> {
        Err(Error::NotSupported { what: "search for hosts" })
    }

    /// Host address of a name that the network itself gives, without any file of names.
    fn host_of_name(&self, name: &str) -> Option<Vec<u8>> {
        let _ = name;
        None
    }

    /// Host address with this number, where the network numbers its hosts.
    fn host_of_number(&self, number: u8) -> Option<Vec<u8>> {
        let _ = number;
        None
    }

    /// The network's own name of a host address.
    fn name_of_host(&self, host: &[u8]) -> Option<String> {
        let _ = host;
        None
    }
}
