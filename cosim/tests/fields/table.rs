//! The fields of `nic-regs`.

use super::device::{Fault, Place};
use nic_regs::admin::Opcode;
use nic_regs::doorbell::{EVENT_OFFSET, TOKEN_OFFSET};
use nic_regs::{Access, csr};

/// A field: name, where, lowest bit, width.
type Field = (&'static str, Place, u32, u32);

const CONTROL: Place = Place::Control;
const SEGMENT: Place = Place::Segment;
const STATUS: Place = Place::Status;
const REGION_SET: Place = Place::Admin(Some(Opcode::RegionSet));
const VI_CREATE: Place = Place::Admin(Some(Opcode::ViCreate));
const VI_CONNECT: Place = Place::Admin(Some(Opcode::ViConnect));
const EVENT_CREATE: Place = Place::Admin(Some(Opcode::EventCreate));
const PEER_OPEN: Place = Place::Admin(Some(Opcode::PeerOpen));
const MESSAGE_SEND: Place = Place::Admin(Some(Opcode::MessageSend));
const MESSAGE_QUEUE: Place = Place::Admin(Some(Opcode::MessageQueue));
const TOKEN: Place = Place::Doorbell(TOKEN_OFFSET);
const EVENT: Place = Place::Doorbell(EVENT_OFFSET);
const HEADER: Place = Place::Header;

/// Words of an admin entry's body, in bits.
const BODY: u32 = 4 * 32;

/// QFENCE is not among them: it has no effect (contract 12).
const FIELDS: &[Field] = &[
    ("descriptor Next", CONTROL, 0, 64),
    ("descriptor NextHandle index", CONTROL, 64, 16),
    ("descriptor NextHandle generation", CONTROL, 80, 16),
    ("descriptor SegCount", CONTROL, 96, 16),
    ("descriptor operation", CONTROL, 112, 2),
    ("descriptor IMMEDIATE", CONTROL, 114, 1),
    ("descriptor control reserved", CONTROL, 116, 12),
    ("descriptor Reserved", CONTROL, 128, 32),
    ("descriptor ImmediateData", CONTROL, 160, 32),
    ("segment address", SEGMENT, 0, 64),
    ("segment handle index", SEGMENT, 64, 16),
    ("segment handle generation", SEGMENT, 80, 16),
    ("segment length", SEGMENT, 96, 32),
    ("status ImmediateData", STATUS, 160, 32),
    ("status Length", STATUS, 192, 32),
    ("status DONE", STATUS, 224, 1),
    ("status FORMAT_ERROR", STATUS, 225, 1),
    ("status PROTECTION_ERROR", STATUS, 226, 1),
    ("status LENGTH_ERROR", STATUS, 227, 1),
    ("status PARTIAL_ERROR", STATUS, 228, 1),
    ("status DESC_FLUSHED_ERROR", STATUS, 229, 1),
    ("status TRANSPORT_ERROR", STATUS, 230, 1),
    ("status RDMA_PROT_ERROR", STATUS, 231, 1),
    ("status REMOTE_DESC_ERROR", STATUS, 232, 1),
    ("status operation", STATUS, 240, 3),
    ("status IMMEDIATE", STATUS, 243, 1),
    ("admin opcode", Place::Admin(None), 0, 32),
    ("admin index", Place::Admin(None), 32, 32),
    ("admin cookie", Place::Admin(None), 64, 32),
    ("RegionSet VA base", REGION_SET, BODY, 64),
    ("RegionSet bus base", REGION_SET, BODY + 64, 64),
    ("RegionSet length", REGION_SET, BODY + 128, 32),
    ("RegionSet tag", REGION_SET, BODY + 160, 16),
    ("RegionSet generation", REGION_SET, BODY + 176, 16),
    ("RegionSet domain", REGION_SET, BODY + 192, 8),
    ("RegionSet VALID", REGION_SET, BODY + 200, 1),
    ("RegionSet RDMA rights", REGION_SET, BODY + 201, 2),
    ("ViCreate domain", VI_CREATE, BODY, 8),
    ("ViCreate reliability", VI_CREATE, BODY + 8, 2),
    ("ViCreate tag", VI_CREATE, BODY + 16, 16),
    ("ViCreate send queue", VI_CREATE, BODY + 32, 16),
    ("ViCreate receive queue", VI_CREATE, BODY + 48, 16),
    ("ViCreate maximum transfer", VI_CREATE, BODY + 64, 32),
    ("ViCreate RDMA", VI_CREATE, BODY + 96, 2),
    ("ViConnect node", VI_CONNECT, BODY, 8),
    ("ViConnect VI", VI_CONNECT, BODY + 16, 16),
    ("ViConnect connection", VI_CONNECT, BODY + 32, 16),
    ("ViConnect RDMA", VI_CONNECT, BODY + 48, 2),
    ("EventCreate base", EVENT_CREATE, BODY + 6, 58),
    ("EventCreate size", EVENT_CREATE, BODY + 64, 4),
    ("EventCreate wide", EVENT_CREATE, BODY + 68, 1),
    ("EventCreate domain", EVENT_CREATE, BODY + 72, 8),
    ("EventCreate vector", EVENT_CREATE, BODY + 80, 8),
    ("PeerOpen epoch", PEER_OPEN, BODY, 32),
    ("PeerOpen credits", PEER_OPEN, BODY + 32, 8),
    ("MessageSend node", MESSAGE_SEND, 32, 8),
    ("MessageSend domain", MESSAGE_SEND, 40, 8),
    ("MessageSend bytes", MESSAGE_SEND, BODY, 384),
    ("MessageQueue queue", MESSAGE_QUEUE, BODY, 16),
    ("completion status", Place::Completion, 0, 32),
    ("completion result", Place::Completion, 32, 32),
    ("completion cookie", Place::Completion, 64, 32),
    ("completion DONE", Place::Completion, 96, 32),
    ("event kind", Place::Record, 0, 8),
    ("event flags", Place::Record, 8, 8),
    ("event index", Place::Record, 16, 16),
    ("event word 1", Place::Record, 32, 32),
    ("event word 2", Place::Record, 64, 32),
    ("event phase", Place::Record, 127, 1),
    ("event message", Place::Message, 0, 384),
    ("frame version", HEADER, 0, 8),
    ("frame type", HEADER, 8, 8),
    ("frame length", HEADER, 16, 16),
    ("frame source node", HEADER, 32, 8),
    ("frame destination node", HEADER, 40, 8),
    ("frame tag", HEADER, 48, 16),
    ("frame destination VI", HEADER, 64, 16),
    ("frame source VI", HEADER, 80, 16),
    ("frame connection", HEADER, 96, 16),
    ("frame FIRST", HEADER, 112, 1),
    ("frame LAST", HEADER, 113, 1),
    ("frame IMMEDIATE", HEADER, 114, 1),
    ("frame SEQUENCED", HEADER, 115, 1),
    ("frame RECEPTION", HEADER, 116, 1),
    ("frame NAK", HEADER, 117, 1),
    ("frame credit", HEADER, 120, 8),
    ("frame sequence", HEADER, 128, 16),
    ("frame acknowledgement", HEADER, 144, 16),
    ("frame word", HEADER, 160, 32),
    ("RDMA header address", Place::RdmaHeader, 0, 64),
    ("RDMA header handle index", Place::RdmaHeader, 64, 16),
    ("RDMA header handle generation", Place::RdmaHeader, 80, 16),
    ("RDMA header total", Place::RdmaHeader, 96, 32),
    ("token VI", TOKEN, 0, 16),
    ("token region", TOKEN, 16, 16),
    ("token offset", TOKEN, 32, 26),
    ("token queue", TOKEN, 63, 1),
    ("push token VI", Place::Push, 0, 16),
    // With a higher bit it is no push, and its token counts alone.
    ("push length", Place::Push, 64, 6),
    ("push IMMEDIATE", Place::Push, 72, 1),
    ("push immediate data", Place::Push, 96, 32),
    ("push data", Place::Push, 192, 320),
    ("event doorbell queue", EVENT, 0, 16),
    ("event doorbell arm", EVENT, 16, 1),
    ("event doorbell consumer", EVENT, 32, 16),
    ("MSI-X address", Place::Msix, 2, 62),
    ("MSI-X data", Place::Msix, 64, 32),
    ("MSI-X mask", Place::Msix, 96, 1),
    ("counter", Place::Counter, 0, 32),
];

/// A number that names something: name, where a device has it, width.
type Identity = (&'static str, &'static [(Place, u32)], u32);

/// Identities of which a device may compare a part.
const IDENTITIES: &[Identity] = &[
    (
        "generation",
        &[(REGION_SET, BODY + 176), (SEGMENT, 80), (CONTROL, 80), (Place::RdmaHeader, 80)],
        16,
    ),
    ("tag", &[(REGION_SET, BODY + 160), (VI_CREATE, BODY + 16)], 16),
    ("connection", &[(VI_CONNECT, BODY + 32), (HEADER, 96)], 16),
    ("epoch's lower half", &[(PEER_OPEN, BODY), (HEADER, 48)], 16),
    ("Next", &[(CONTROL, 0)], 20),
];

/// What may be wrong, of each field its lowest bit and its highest.
pub(crate) fn faults() -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut add = |name: &str, place, lsb: u32, bits: u32| {
        let mut some = vec![0, bits - 1];
        some.dedup();
        for bit in some {
            let name = format!("{name}, bit {bit}");
            faults.push(Fault { name, places: vec![(place, lsb + bit)], clears: false });
        }
    };
    for &(name, place, lsb, bits) in FIELDS {
        add(name, place, lsb, bits);
    }
    // The time is each device's own: the bench of `csr` looks at it.
    let times = [csr::CYCLES_LO::OFFSET, csr::CYCLES_HI::OFFSET];
    for register in csr::REGS.iter().filter(|register| !times.contains(&register.offset)) {
        let place = match register.access {
            Access::Ro => Place::ReadOnly(register.offset),
            _ => Place::Register(register.offset),
        };
        for &(field, high, low, _) in register.fields {
            add(&format!("{} {field}", register.name), place, low, high - low + 1);
        }
    }
    for &(name, places, bits) in IDENTITIES {
        for bit in [0, bits / 2, bits - 1] {
            let places = places.iter().map(|&(place, lsb)| (place, lsb + bit)).collect();
            let name = format!("{name} without bit {bit}");
            faults.push(Fault { name, places, clears: true });
        }
    }
    faults
}
