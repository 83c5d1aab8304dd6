//! BAR0: registers, counters, the MSI-X table.

use nic_regs::counter::{COUNTER_SLOTS, Counter, ErrorCode};
use nic_regs::csr::{
    ACK_DELAY, ADMIN_BASE_HI, ADMIN_BASE_LO, ADMIN_SIZE, ADMIN_TAIL, CAPS0, CAPS1, CAPS2, CLOCK,
    CONTROL, COUNTER_OFFSET, ERROR_QUEUE, ID, KEEPALIVE, MODERATION, MSIX_ENTRY_BYTES,
    MSIX_TABLE_OFFSET, NODE, PCIE, READ_TIMEOUT, REGS, REQUESTER, RETRY_LIMIT, RETRY_TIMEOUT, Reg,
    SAMPLE, STATUS, Stamp,
};
use nic_regs::limits::MSIX_VECTOR_COUNT;

use crate::bits::{high32, low16, low32, small32};
use crate::counter::Sample;
use crate::device::HostBus;
use crate::nic::Model;

/// Bit 31 of the detail of [`ErrorCode::BadRegister`]: it was a write.
const LOG_WRITE: u32 = 1 << 31;
/// Dwords of an MSI-X table entry.
pub(crate) const ENTRY_DWORDS: usize = MSIX_ENTRY_BYTES as usize / 4;

/// The registers that hold what software wrote.
#[derive(Clone, Debug)]
pub(crate) struct Csr {
    pub(crate) control: u32,
    admin_base_lo: u32,
    admin_base_hi: u32,
    pub(crate) admin_size: u32,
    admin_tail: u32,
    pub(crate) node: u32,
    pcie: u32,
    requester: u32,
    read_timeout: u32,
    pub(crate) ack_delay: u32,
    pub(crate) retry_timeout: u32,
    pub(crate) retry_limit: u32,
    pub(crate) keepalive: u32,
    cycles_hi: u32,
    pub(crate) error_queue: u32,
    pub(crate) sample: u32,
    /// Least cycles between two interrupts of a vector.
    pub(crate) moderation: u32,
}

impl Default for Csr {
    fn default() -> Self {
        Self {
            control: CONTROL::RESET.0,
            admin_base_lo: ADMIN_BASE_LO::RESET.0,
            admin_base_hi: ADMIN_BASE_HI::RESET.0,
            admin_size: ADMIN_SIZE::RESET.0,
            admin_tail: ADMIN_TAIL::RESET.0,
            node: NODE::RESET.0,
            pcie: PCIE::RESET.0,
            requester: REQUESTER::RESET.0,
            read_timeout: READ_TIMEOUT::RESET.0,
            ack_delay: ACK_DELAY::RESET.0,
            retry_timeout: RETRY_TIMEOUT::RESET.0,
            retry_limit: RETRY_LIMIT::RESET.0,
            keepalive: KEEPALIVE::RESET.0,
            cycles_hi: 0,
            error_queue: ERROR_QUEUE::RESET.0,
            sample: SAMPLE::RESET.0,
            moderation: MODERATION::RESET.0,
        }
    }
}

impl Csr {
    pub(crate) fn admin_tail(&self) -> u16 {
        low16(self.admin_tail)
    }

    pub(crate) fn admin_base(&self) -> u64 {
        (u64::from(self.admin_base_lo) | u64::from(self.admin_base_hi) << 32) & !63
    }
}

/// What an offset in BAR0 names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A register.
    Register(Reg),
    /// A counter slot.
    Counter(usize),
    /// Vector and dword of the MSI-X table.
    Msix(usize, usize),
}

impl Place {
    fn decode(offset: u64) -> Option<Self> {
        let offset = u32::try_from(offset).ok()?;
        if let Some(reg) = Reg::decode(offset) {
            return Some(Self::Register(reg));
        }
        let slot = |base: u32| Some(offset.checked_sub(base)? as usize / 4);
        if offset % 4 != 0 {
            return None;
        }
        if let Some(dword) = slot(MSIX_TABLE_OFFSET) {
            let (vector, dword) = (dword / ENTRY_DWORDS, dword % ENTRY_DWORDS);
            return (vector < MSIX_VECTOR_COUNT).then_some(Self::Msix(vector, dword));
        }
        slot(COUNTER_OFFSET).filter(|&slot| slot < COUNTER_SLOTS).map(Self::Counter)
    }
}

fn reset_value(reg: Reg) -> u32 {
    REGS.iter().find(|desc| Reg::decode(desc.offset) == Some(reg)).map_or(0, |desc| desc.reset)
}

/// The bits of a register that are in a field; the others read zero.
fn implemented(reg: Reg) -> u32 {
    let desc = REGS.iter().find(|desc| Reg::decode(desc.offset) == Some(reg));
    let fields = desc.map_or(&[][..], |desc| desc.fields);
    fields.iter().fold(0, |bits, &(_, hi, lo, _)| bits | (u32::MAX >> (31 - hi + lo)) << lo)
}

impl Model {
    /// A write to BAR0.
    pub(crate) fn csr_write(&mut self, offset: u64, data: &[u8], host: &mut dyn HostBus) {
        if self.clearing() {
            return;
        }
        let (Some(place), Ok(bytes)) = (Place::decode(offset), <[u8; 4]>::try_from(data)) else {
            return self.bad_register(offset, LOG_WRITE);
        };
        let value = u32::from_le_bytes(bytes);
        match place {
            Place::Register(reg) => self.register_write(reg, value & implemented(reg), host),
            Place::Counter(_) => {}
            Place::Msix(vector, dword) => self.vector_write(vector, dword, value, host),
        }
    }

    /// A read of BAR0.
    pub(crate) fn csr_read(&mut self, offset: u64, length: usize) -> u32 {
        let place = Place::decode(offset).filter(|_| length == 4);
        let clearing = self.clearing();
        match place {
            None => {
                if !clearing {
                    self.bad_register(offset, 0);
                }
                0
            }
            Some(Place::Register(reg)) if clearing && reg != Reg::CAPS3 => reset_value(reg),
            Some(Place::Register(reg)) => self.register_read(reg),
            Some(Place::Counter(slot)) => self.counters.slot(slot),
            Some(Place::Msix(vector, dword)) => self.vectors.read(vector, dword),
        }
    }

    fn bad_register(&mut self, offset: u64, write: u32) {
        self.count(Counter::BadRegister);
        self.log(ErrorCode::BadRegister, 0, low32(offset) & !(LOG_WRITE | 3) | write);
    }

    fn register_read(&mut self, reg: Reg) -> u32 {
        let csr = &self.csr;
        let stamp = |stage: Stamp| self.sample.stamp(stage);
        match reg {
            Reg::ID => ID::RESET.0,
            Reg::CAPS0 => CAPS0::RESET.0,
            Reg::CAPS1 => CAPS1::RESET.0,
            Reg::CAPS2 => CAPS2::RESET.0,
            Reg::CAPS3 => self.features.caps3().0,
            Reg::CLOCK => CLOCK::RESET.0,
            Reg::CONTROL => csr.control,
            Reg::STATUS => self.status(),
            Reg::ADMIN_BASE_LO => csr.admin_base_lo,
            Reg::ADMIN_BASE_HI => csr.admin_base_hi,
            Reg::ADMIN_SIZE => csr.admin_size,
            Reg::ADMIN_TAIL => csr.admin_tail,
            Reg::ADMIN_HEAD => u32::from(self.admin.head),
            Reg::NODE => csr.node,
            Reg::PCIE => csr.pcie,
            Reg::REQUESTER => csr.requester,
            Reg::READ_TIMEOUT => csr.read_timeout,
            Reg::ACK_DELAY => csr.ack_delay,
            Reg::RETRY_TIMEOUT => csr.retry_timeout,
            Reg::RETRY_LIMIT => csr.retry_limit,
            Reg::KEEPALIVE => csr.keepalive,
            Reg::MODERATION => csr.moderation,
            Reg::CYCLES_LO => {
                let cycles = self.now.wrapping_sub(self.reset_at);
                self.csr.cycles_hi = high32(cycles);
                low32(cycles)
            }
            Reg::CYCLES_HI => csr.cycles_hi,
            Reg::ERROR_QUEUE => csr.error_queue,
            Reg::ERROR_COUNT => self.log.count(),
            Reg::ERROR_LO => low32(self.log.oldest()),
            Reg::ERROR_HI => high32(self.log.oldest()),
            Reg::ERROR_POP => 0,
            Reg::SAMPLE => csr.sample,
            Reg::SAMPLED => self.sample.stages(),
            Reg::STAMP0 => stamp(Stamp::Doorbell),
            Reg::STAMP1 => stamp(Stamp::Descriptor),
            Reg::STAMP2 => stamp(Stamp::Data),
            Reg::STAMP3 => stamp(Stamp::FirstBeatOut),
            Reg::STAMP4 => stamp(Stamp::LastBeatOut),
            Reg::STAMP5 => stamp(Stamp::FirstBeatIn),
            Reg::STAMP6 => stamp(Stamp::Matched),
            Reg::STAMP7 => stamp(Stamp::DataWritten),
            Reg::STAMP8 => stamp(Stamp::StatusWritten),
        }
    }

    fn status(&self) -> u32 {
        let work = self.csr.admin_tail() != self.admin.head;
        STATUS(0)
            .with(STATUS::READY, u32::from(!self.clearing()))
            .with(STATUS::ADMIN_BUSY, u32::from(work))
            .with(STATUS::ADMIN_FAILED, u32::from(self.admin.failed))
            .0
    }

    fn register_write(&mut self, reg: Reg, value: u32, host: &mut dyn HostBus) {
        let csr = &mut self.csr;
        match reg {
            Reg::CONTROL => {
                csr.control = value & CONTROL::ENABLE.mask();
                if csr.control == 0 {
                    self.pushes.forget_unfinished();
                }
                if CONTROL(value).get(CONTROL::SOFT_RESET) == 1 {
                    self.reset();
                }
            }
            Reg::ADMIN_BASE_LO => csr.admin_base_lo = value,
            Reg::ADMIN_BASE_HI => csr.admin_base_hi = value,
            Reg::ADMIN_SIZE => csr.admin_size = value,
            Reg::ADMIN_TAIL => csr.admin_tail = value,
            Reg::NODE => csr.node = value,
            Reg::PCIE => csr.pcie = value,
            Reg::REQUESTER => csr.requester = value,
            Reg::READ_TIMEOUT => csr.read_timeout = value,
            Reg::ACK_DELAY => csr.ack_delay = value,
            Reg::RETRY_TIMEOUT => csr.retry_timeout = value,
            Reg::RETRY_LIMIT => {
                csr.retry_limit = value;
                self.channels.check_timers();
            }
            Reg::KEEPALIVE => {
                csr.keepalive = value;
                self.channels.check_timers();
            }
            Reg::MODERATION => {
                csr.moderation = value;
                self.vectors.check();
            }
            Reg::ERROR_QUEUE => {
                csr.error_queue = value;
                self.drain_errors(host);
            }
            Reg::ERROR_POP => self.log.pop(),
            Reg::SAMPLE => {
                csr.sample = value;
                self.sample = Sample::default();
            }
            Reg::ID
            | Reg::CAPS0
            | Reg::CAPS1
            | Reg::CAPS2
            | Reg::CAPS3
            | Reg::CLOCK
            | Reg::STATUS
            | Reg::ADMIN_HEAD
            | Reg::CYCLES_LO
            | Reg::CYCLES_HI
            | Reg::ERROR_COUNT
            | Reg::ERROR_LO
            | Reg::ERROR_HI
            | Reg::SAMPLED
            | Reg::STAMP0
            | Reg::STAMP1
            | Reg::STAMP2
            | Reg::STAMP3
            | Reg::STAMP4
            | Reg::STAMP5
            | Reg::STAMP6
            | Reg::STAMP7
            | Reg::STAMP8 => {}
        }
    }

    /// Counts and logs an access that no BAR takes.
    pub(crate) fn bad_tlp(&mut self, kind: u8, length: usize) {
        self.count(Counter::BadTlp);
        let dwords = small32(length.div_ceil(4).max(1));
        self.log(ErrorCode::BadTlp, 0, u32::from(kind) << 24 | dwords);
    }
}
