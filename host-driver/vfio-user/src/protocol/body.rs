//! What follows the header, command by command.

use serde_json::{Value, json};

use super::{DATA_MAX, FDS_MAX, VERSION};

/// Takes little-endian numbers off the front of a payload.
#[derive(Debug)]
pub(super) struct Words<'a>(pub(super) &'a [u8]);

impl Words<'_> {
    pub(super) fn u16(&mut self) -> Option<u16> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_le_bytes(*word))
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*word))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }
}

fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// VERSION: versions and capabilities, both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Major and minor number.
    pub version: (u16, u16),
    /// Most descriptors in a message that the sender takes.
    pub max_fds: usize,
    /// Most bytes of an access that the sender takes.
    pub max_data: usize,
    /// The client only looks at the device, which may be another program's. Not of the protocol.
    pub observer: bool,
    /// The process that has the device, to an observer. Not of the protocol.
    pub owner: Option<u32>,
}

/// The names of what is not of the protocol, among the capabilities.
const OBSERVER: &str = "viaduct_observer";
const OWNER: &str = "viaduct_owner";

impl Version {
    /// What this end can do.
    pub const OWN: Self = Self {
        version: VERSION,
        max_fds: FDS_MAX,
        max_data: DATA_MAX,
        observer: false,
        owner: None,
    };

    /// The payload.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        let mut text = json!({ "capabilities": {
            "max_msg_fds": self.max_fds,
            "max_data_xfer_size": self.max_data,
            "pgsizes": 4096,
        }});
        if self.observer {
            text["capabilities"][OBSERVER] = true.into();
        }
        if let Some(process) = self.owner {
            text["capabilities"][OWNER] = process.into();
        }
        let (major, minor) = self.version;
        let mut bytes = major.to_le_bytes().to_vec();
        bytes.extend_from_slice(&minor.to_le_bytes());
        bytes.extend_from_slice(text.to_string().as_bytes());
        bytes.push(0);
        bytes
    }

    /// Reads a payload. What it does not say has the protocol's default.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let mut words = Words(payload);
        let version = (words.u16()?, words.u16()?);
        let text = words.0.split(|byte| *byte == 0).next().unwrap_or(&[]);
        let says: Value =
            if text.is_empty() { Value::Null } else { serde_json::from_slice(text).ok()? };
        let capabilities = &says["capabilities"];
        let number = |name: &str, default: usize| match &capabilities[name] {
            Value::Null => Some(default),
            value => usize::try_from(value.as_u64()?).ok(),
        };
        Some(Self {
            version,
            max_fds: number("max_msg_fds", 1)?,
            max_data: number("max_data_xfer_size", DATA_MAX)?,
            observer: capabilities[OBSERVER] == true,
            owner: capabilities[OWNER].as_u64().and_then(|process| process.try_into().ok()),
        })
    }
}

/// DMA_MAP: memory for the device, of the descriptor that comes with it, or without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaMap {
    /// See [`dma`].
    pub flags: u32,
    /// Where in the descriptor's file.
    pub offset: u64,
    /// Bus address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

impl DmaMap {
    const BYTES: u32 = 32;

    /// The payload.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = bytes_of(&[Self::BYTES, self.flags]);
        [self.offset, self.address, self.size]
            .iter()
            .for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        bytes
    }

    /// Reads a payload.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let mut words = Words(payload);
        let argsz = words.u32()?;
        let flags = words.u32()?;
        let found = Self { flags, offset: words.u64()?, address: words.u64()?, size: words.u64()? };
        // The last byte must have an address: a range may end exactly at 2^64.
        let whole = found.address.checked_add(found.size.checked_sub(1)?).is_some();
        (argsz >= Self::BYTES && whole).then_some(found)
    }
}

/// DMA_UNMAP; the reply repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaUnmap {
    /// See [`dma`].
    pub flags: u32,
    /// Bus address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

impl DmaUnmap {
    const BYTES: u32 = 24;

    /// The payload.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = bytes_of(&[Self::BYTES, self.flags]);
        bytes.extend_from_slice(&self.address.to_le_bytes());
        bytes.extend_from_slice(&self.size.to_le_bytes());
        bytes
    }

    /// Reads a payload.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let mut words = Words(payload);
        let argsz = words.u32()?;
        let found = Self { flags: words.u32()?, address: words.u64()?, size: words.u64()? };
        (argsz >= Self::BYTES).then_some(found)
    }
}

/// Reply to DEVICE_GET_INFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Bit 0: can be reset; bit 1: a PCI device.
    pub flags: u32,
    /// Regions.
    pub regions: u32,
    /// Kinds of interrupt.
    pub irqs: u32,
}

impl DeviceInfo {
    /// A PCI device that can be reset.
    pub const PCI: u32 = 3;

    /// The payload.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        bytes_of(&[16, self.flags, self.regions, self.irqs])
    }

    /// Reads a payload.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let mut words = Words(payload);
        let _argsz = words.u32()?;
        Some(Self { flags: words.u32()?, regions: words.u32()?, irqs: words.u32()? })
    }
}

/// DEVICE_GET_REGION_INFO and its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionInfo {
    /// See [`region`].
    pub flags: u32,
    /// Number of the region.
    pub index: u32,
    /// Bytes; 0: there is none.
    pub size: u64,
}

impl RegionInfo {
    /// The payload.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = bytes_of(&[32, self.flags, self.index, 0]);
        bytes.extend_from_slice(&self.size.to_le_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes
    }

    /// Reads a payload.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let mut words = Words(payload);
        let argsz = words.u32()?;
        let (flags, index) = (words.u32()?, words.u32()?);
        let _capabilities = words.u32()?;
        let size = words.u64()?;
        (argsz >= 32).then_some(Self { flags, index, size })
    }
}

/// DEVICE_GET_IRQ_INFO and its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IrqInfo {
    /// See [`irq`].
    pub flags: u32,
    /// Kind of interrupt.
    pub index: u32,
    /// Vectors.
    pub count: u32,
}

impl IrqInfo {
    /// The payload.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        bytes_of(&[16, self.flags, self.index, self.count])
    }

    /// Reads a payload.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let mut words = Words(payload);
        let argsz = words.u32()?;
        let found = Self { flags: words.u32()?, index: words.u32()?, count: words.u32()? };
        (argsz >= 16).then_some(found)
    }
}

/// DEVICE_SET_IRQS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetIrqs<'a> {
    /// See [`irq`].
    pub flags: u32,
    /// Kind of interrupt.
    pub index: u32,
    /// First vector.
    pub start: u32,
    /// Vectors.
    pub count: u32,
    /// One byte for each vector with [`irq::DATA_BOOL`].
    pub data: &'a [u8],
}

impl<'a> SetIrqs<'a> {
    /// The payload.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        let argsz = u32::try_from(20 + self.data.len()).unwrap_or(u32::MAX);
        let mut bytes = bytes_of(&[argsz, self.flags, self.index, self.start, self.count]);
        bytes.extend_from_slice(self.data);
        bytes
    }

    /// Reads a payload.
    #[must_use]
    pub fn parse(payload: &'a [u8]) -> Option<Self> {
        let mut words = Words(payload);
        let argsz = words.u32()?;
        let (flags, index) = (words.u32()?, words.u32()?);
        let (start, count) = (words.u32()?, words.u32()?);
        start.checked_add(count)?;
        (argsz >= 20).then_some(Self { flags, index, start, count, data: words.0 })
    }
}

/// REGION_READ, REGION_WRITE and their replies: the data follows in a write and in the reply to a
/// read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionAccess<'a> {
    /// First byte in the region.
    pub offset: u64,
    /// Number of the region.
    pub region: u32,
    /// Bytes.
    pub count: u32,
    /// What is written, or was read.
    pub data: &'a [u8],
}

impl<'a> RegionAccess<'a> {
    /// The payload without the data.
    #[must_use]
    pub fn head(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.region.to_le_bytes());
        bytes[12..].copy_from_slice(&self.count.to_le_bytes());
        bytes
    }

    /// Reads a payload; with `data` it has as many bytes as `count` says, and at most [`DATA_MAX`].
    #[must_use]
    pub fn parse(payload: &'a [u8], data: bool) -> Option<Self> {
        let mut words = Words(payload);
        let (offset, region, count) = (words.u64()?, words.u32()?, words.u32()?);
        offset.checked_add(u64::from(count))?;
        let length = usize::try_from(count).ok().filter(|length| *length <= DATA_MAX)?;
        let fits = !data || words.0.len() == length;
        fits.then_some(Self { offset, region, count, data: words.0 })
    }
}
