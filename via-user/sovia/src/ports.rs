//! Ports that this process uses. A node is one program, so nobody else gives out its ports.

use std::collections::BTreeSet;
use std::sync::Mutex;

use port::fork;
use port::sync::lock;

use crate::address::Address;
use crate::error::{Error, Result};

/// The first of the ports for whoever asks for any (RFC 6335, section 6: dynamic ports).
const FIRST_DYNAMIC: u16 = 49_152;

static USED: Mutex<Used> = Mutex::new(Used { ports: BTreeSet::new(), next: FIRST_DYNAMIC });

#[derive(Debug)]
struct Used {
    ports: BTreeSet<Address>,
    /// The next dynamic port: none is used again soon.
    next: u16,
}

impl Used {
    fn take(&mut self, wanted: Address) -> Result<Address> {
        let Address { host, port } = wanted;
        if port != 0 {
            let wanted = Address { host, port };
            let is_free = self.ports.insert(wanted.clone());
            return is_free.then_some(wanted).ok_or(Error::PortInUse(port));
        }
        for _ in FIRST_DYNAMIC..=u16::MAX {
            let wanted = Address { host: host.clone(), port: self.next };
            self.next = self.next.checked_add(1).unwrap_or(FIRST_DYNAMIC);
            if self.ports.insert(wanted.clone()) {
                return Ok(wanted);
            }
        }
        Err(Error::PortInUse(0))
    }
}

/// A port in use, until it is dropped.
#[derive(Debug)]
pub(crate) struct Port {
    address: Address,
}

impl Port {
    /// Takes a port of this host; port 0: any.
    pub(crate) fn take(wanted: Address) -> Result<Self> {
        // A child of a fork would find the lock held for ever.
        let address = fork::without_forks(|| lock(&USED).take(wanted))?;
        Ok(Self { address })
    }

    pub(crate) const fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        fork::without_forks(|| lock(&USED).ports.remove(&self.address));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_is_given_once_and_dynamic_ones_in_turn() {
        let mut used = Used { ports: BTreeSet::new(), next: u16::MAX };
        let any = || Address::new(&[1], 0);
        let ports: Vec<u16> = (0..3).map(|_| used.take(any()).unwrap().port).collect();
        assert_eq!(ports, [u16::MAX, FIRST_DYNAMIC, FIRST_DYNAMIC + 1]);
        let (own, other) = (Address::new(&[1], FIRST_DYNAMIC), Address::new(&[2], FIRST_DYNAMIC));
        assert!(matches!(used.take(own), Err(Error::PortInUse(FIRST_DYNAMIC))));
        assert_eq!(used.take(other.clone()).unwrap(), other);
        while used.take(any()).is_ok() {}
        assert_eq!(used.ports.len(), usize::from(u16::MAX - FIRST_DYNAMIC) + 2);
    }
}
