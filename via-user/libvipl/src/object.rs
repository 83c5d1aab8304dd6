//! What handles stand for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};

use port::sync::lock;
use vipl::{ConnectionRequest, Cq, Nic, Ptag, Region, Vi, VipReturn};

use crate::handle::{Handle, Kind, Table};

/// Open NICs.
pub static NICS: Table<NicObject> = Table::new(Kind::Nic);
/// VIs.
pub static VIS: Table<ViObject> = Table::new(Kind::Vi);
/// Completion queues.
pub static CQS: Table<CqObject> = Table::new(Kind::Cq);
/// Protection tags.
pub static TAGS: Table<TagObject> = Table::new(Kind::Tag);
/// Requests that were not answered.
pub static CONNECTIONS: Table<ConnectionObject> = Table::new(Kind::Connection);

/// The variable that makes the library take what programs of old do against the rules: `NULL` as
/// protection tag is then the first tag of the NIC.
pub const LENIENT_VARIABLE: &str = "VIADUCT_LENIENT";

fn is_lenient() -> bool {
    static LENIENT: OnceLock<bool> = OnceLock::new();
    *LENIENT.get_or_init(|| std::env::var(LENIENT_VARIABLE).is_ok_and(|value| value == "1"))
}

/// A registration, and the tag's handle as the program gave it.
#[derive(Clone, Debug)]
pub struct RegionObject {
    /// The registration.
    pub region: Region,
    /// The tag.
    pub tag: Handle,
}

/// A list of addresses in the form of the header.
#[derive(Debug, Default)]
pub struct Nodes {
    /// Each a `VIP_NET_ADDRESS`, as words so that it is aligned.
    addresses: Vec<Vec<u16>>,
    /// Where they are.
    pointers: Vec<usize>,
}

impl Nodes {
    /// Makes the list.
    #[must_use]
    pub fn new(nodes: &[vipl::NetAddress]) -> Self {
        let address = |node: &vipl::NetAddress| {
            let length = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap_or(u16::MAX);
            let mut words = vec![length(&node.host), length(&node.discriminator)];
            let bytes = [&*node.host, &*node.discriminator].concat();
            words.extend(
                bytes
                    .chunks(2)
                    .map(|pair| u16::from_ne_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])),
            );
            words
        };
        let addresses: Vec<Vec<u16>> = nodes.iter().map(address).collect();
        let pointers = addresses.iter().map(|words| words.as_ptr().expose_provenance()).collect();
        Self { addresses, pointers }
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Pointers to them; they stay where they are until the list goes.
    #[must_use]
    pub const fn pointers(&self) -> *const *const u8 {
        self.pointers.as_ptr().cast()
    }
}

/// An open NIC.
#[derive(Debug)]
pub struct NicObject {
    /// It.
    pub nic: Nic,
    /// Own handle.
    pub handle: Handle,
    /// Own address; programs point to it.
    pub address: Vec<u8>,
    /// Registrations by memory handle.
    pub regions: Mutex<BTreeMap<u32, RegionObject>>,
    /// Handles of what belongs to it; None once it is closed.
    children: Mutex<Option<BTreeSet<Handle>>>,
    /// The nodes that were found last; programs point to them.
    pub nodes: Mutex<Nodes>,
    /// The first tag, in lenient mode.
    first_tag: Mutex<Option<(Ptag, bool)>>,
}

/// A VI.
#[derive(Debug)]
pub struct ViObject {
    /// It.
    pub vi: Vi,
    /// Its NIC.
    pub nic: Arc<NicObject>,
    /// Its tag, as the program gave it.
    pub tag: Mutex<Handle>,
}

/// A completion queue.
#[derive(Debug)]
pub struct CqObject {
    /// It.
    pub cq: Cq,
    /// Its NIC.
    pub nic: Arc<NicObject>,
}

/// A protection tag.
#[derive(Debug)]
pub struct TagObject {
    /// It.
    pub tag: Ptag,
    /// Its NIC.
    pub nic: Handle,
}

/// A request that was not answered.
#[derive(Debug)]
pub struct ConnectionObject {
    /// It.
    pub request: ConnectionRequest,
    /// Its NIC.
    pub nic: Arc<NicObject>,
}

/// Takes back what belongs to a NIC, of whichever kind it is.
fn take_back(child: Handle) {
    drop(CONNECTIONS.remove(child));
    drop(VIS.remove(child));
    drop(CQS.remove(child));
    drop(TAGS.remove(child));
}

impl NicObject {
    /// An open NIC.
    #[must_use]
    pub fn new(nic: Nic, handle: Handle) -> Self {
        let address = nic.query().local_address;
        Self {
            nic,
            handle,
            address,
            regions: Mutex::default(),
            children: Mutex::new(Some(BTreeSet::new())),
            nodes: Mutex::default(),
            first_tag: Mutex::default(),
        }
    }

    /// Notes what belongs to the NIC.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] if another thread has closed it meanwhile; what the handle
    /// stands for is taken back.
    pub fn adopt(&self, child: Handle) -> Result<(), VipReturn> {
        let mut children = lock(&self.children);
        if let Some(children) = &mut *children {
            children.insert(child);
            return Ok(());
        }
        drop(children);
        take_back(child);
        Err(VipReturn::InvalidParameter)
    }

    /// Forgets what was given back.
    pub fn disown(&self, child: Handle) {
        if let Some(children) = &mut *lock(&self.children) {
            children.remove(&child);
        }
    }

    /// A new tag. In lenient mode the first one is that of `NULL`.
    ///
    /// # Errors
    /// What `vipl` says.
    pub fn create_tag(&self) -> Result<Ptag, vipl::Error> {
        let mut first = lock(&self.first_tag);
        match &mut *first {
            Some((tag, given @ false)) => {
                *given = true;
                Ok(*tag)
            }
            None if is_lenient() => {
                let tag = self.nic.create_ptag()?;
                *first = Some((tag, true));
                Ok(tag)
            }
            _ => self.nic.create_ptag(),
        }
    }

    /// The tag that a program names.
    ///
    /// # Errors
    /// [`VipReturn::InvalidPtag`] if it is none of this NIC's.
    pub fn tag(&self, handle: Handle) -> Result<Ptag, VipReturn> {
        if handle.is_null() && is_lenient() {
            let mut first = lock(&self.first_tag);
            return match *first {
                Some((tag, _)) => Ok(tag),
                None => {
                    let tag = self.nic.create_ptag().map_err(|error| error.code)?;
                    *first = Some((tag, false));
                    Ok(tag)
                }
            };
        }
        let object = TAGS.get(handle).map_err(|_| VipReturn::InvalidPtag)?;
        if object.nic == self.handle { Ok(object.tag) } else { Err(VipReturn::InvalidPtag) }
    }

    /// The registration with this handle, if `address` is in it.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`].
    pub fn region(&self, address: u64, handle: u32) -> Result<RegionObject, VipReturn> {
        let regions = lock(&self.regions);
        let found = regions.get(&handle).ok_or(VipReturn::InvalidParameter)?;
        let memory = found.region.memory();
        let inside =
            address >= memory.address() && address - memory.address() < memory.len() as u64;
        if inside { Ok(found.clone()) } else { Err(VipReturn::InvalidParameter) }
    }

    /// Takes back everything that belongs to the NIC, and the NIC.
    pub fn close(&self) {
        let children = lock(&self.children).take();
        children.into_iter().flatten().for_each(take_back);
        self.nic.clone().close();
        lock(&self.regions).clear();
    }
}
