//! BAR0: registers, counters, the MSI-X table. Registers of an engine are in the engine.

use nic_regs::counter::{COUNTER_SLOTS, Counter, ErrorCode};
use nic_regs::csr::{
    ADMIN_SIZE, CAPS0, CAPS1, CAPS2, CLOCK, CONTROL, COUNTER_OFFSET, ERROR_QUEUE, ID,
    MSIX_TABLE_OFFSET, NODE, PCIE, READ_TIMEOUT, REGS, REQUESTER, RETRY_LIMIT, Reg, SAMPLE, STATUS,
    Stamp,
};
use nic_regs::limits::MSIX_VECTOR_COUNT;

use crate::admin::AdminRing;
use crate::bits::{high32, low32, small32};
use crate::channel::Channels;
use crate::context::Context;
use crate::counter::Sample;
use crate::doorbell::Doorbells;
use crate::vector::ENTRY_DWORDS;
use crate::work_queue::WorkQueues;

/// Bit 31 of the detail of [`ErrorCode::BadRegister`]: it was a write.
const LOG_WRITE: u32 = 1 << 31;
/// Cycles that clearing the tables takes.
const CLEAR_CYCLES: u64 = 1024;

/// The engines that have registers.
pub(crate) struct Engines<'a, 'h> {
    pub(crate) admin: &'a mut AdminRing,
    pub(crate) doorbells: &'a mut Doorbells,
    pub(crate) queues: &'a mut WorkQueues,
    pub(crate) channels: &'a mut Channels,
    pub(crate) cx: &'a mut Context<'h>,
}

/// The registers of the device as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Csr {
    /// When the tables are clear; `None` before the first step after power-on.
    ready_at: Option<u64>,
    ready: bool,
    control: CONTROL,
    pcie: u32,
    requester: u32,
    read_timeout: u32,
    cycles_hi: u32,
}

impl Default for Csr {
    fn default() -> Self {
        Self {
            ready_at: None,
            ready: false,
            control: CONTROL::RESET,
            pcie: PCIE::RESET.0,
            requester: REQUESTER::RESET.0,
            read_timeout: READ_TIMEOUT::RESET.0,
            cycles_hi: 0,
        }
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

impl Csr {
    /// The registers after a reset in cycle `now`.
    pub(crate) fn after_reset(now: u64) -> Self {
        Self { ready_at: Some(now + CLEAR_CYCLES), ..Self::default() }
    }

    /// Whether the tables are clear.
    pub(crate) const fn is_ready(&self) -> bool {
        self.ready
    }

    /// Whether doorbells, incoming frames and the admin ring have an effect.
    pub(crate) const fn is_enabled(&self) -> bool {
        self.control.get(CONTROL::ENABLE) == 1
    }

    /// Goes on with clearing the tables.
    pub(crate) fn step(&mut self, now: u64) {
        self.ready = self.ready || now >= *self.ready_at.get_or_insert(now + CLEAR_CYCLES);
    }

    /// A write to BAR0. True if it asks for a reset.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8], mut engines: Engines<'_, '_>) -> bool {
        if !self.ready {
            return false;
        }
        let (Some(place), Ok(bytes)) = (Place::decode(offset), <[u8; 4]>::try_from(data)) else {
            bad_register(offset, LOG_WRITE, engines.cx);
            return false;
        };
        let value = u32::from_le_bytes(bytes);
        match place {
            Place::Register(reg) => {
                return self.write_register(reg, value & implemented(reg), &mut engines);
            }
            Place::Counter(_) => {}
            Place::Msix(vector, dword) => {
                engines.queues.events.vectors.write(vector, dword, value, engines.cx);
            }
        }
        false
    }

    /// A read of BAR0.
    pub(crate) fn read(&mut self, offset: u64, length: usize, engines: Engines<'_, '_>) -> u32 {
        match Place::decode(offset).filter(|_| length == 4) {
            None => {
                if self.ready {
                    bad_register(offset, 0, engines.cx);
                }
                0
            }
            Some(Place::Register(reg)) if !self.ready && reg != Reg::CAPS3 => reset_value(reg),
            Some(Place::Register(reg)) => self.read_register(reg, &engines),
            Some(Place::Counter(slot)) => engines.cx.monitor.counters()[slot],
            Some(Place::Msix(vector, dword)) => engines.queues.events.vectors.read(vector, dword),
        }
    }

    fn read_register(&mut self, reg: Reg, engines: &Engines<'_, '_>) -> u32 {
        let Engines { admin, queues, channels, cx, .. } = engines;
        let (channel, monitor) = (&channels.settings, &cx.monitor);
        let stamp = |stage: Stamp| monitor.sample.stamp(stage);
        match reg {
            Reg::ID => ID::RESET.0,
            Reg::CAPS0 => CAPS0::RESET.0,
            Reg::CAPS1 => CAPS1::RESET.0,
            Reg::CAPS2 => CAPS2::RESET.0,
            Reg::CAPS3 => queues.features.caps3().0,
            Reg::CLOCK => CLOCK::RESET.0,
            Reg::CONTROL => self.control.0,
            Reg::STATUS => self.status(admin, channels),
            Reg::ADMIN_BASE_LO => admin.base_lo,
            Reg::ADMIN_BASE_HI => admin.base_hi,
            Reg::ADMIN_SIZE => admin.size.0,
            Reg::ADMIN_TAIL => admin.tail,
            Reg::ADMIN_HEAD => u32::from(admin.head),
            Reg::NODE => channel.node.0,
            Reg::PCIE => self.pcie,
            Reg::REQUESTER => self.requester,
            Reg::READ_TIMEOUT => self.read_timeout,
            Reg::ACK_DELAY => channel.ack_delay,
            Reg::RETRY_TIMEOUT => channel.retry_timeout,
            Reg::RETRY_LIMIT => channel.retry_limit.0,
            Reg::KEEPALIVE => channel.keepalive,
            Reg::MODERATION => queues.events.vectors.moderation(),
            Reg::CYCLES_LO => {
                let cycles = cx.now.wrapping_sub(monitor.reset_at);
                self.cycles_hi = high32(cycles);
                low32(cycles)
            }
            Reg::CYCLES_HI => self.cycles_hi,
            Reg::ERROR_QUEUE => queues.events.error_queue.0,
            Reg::ERROR_COUNT => monitor.errors.count(),
            Reg::ERROR_LO => low32(monitor.errors.oldest()),
            Reg::ERROR_HI => high32(monitor.errors.oldest()),
            Reg::ERROR_POP => 0,
            Reg::SAMPLE => monitor.sample.register.0,
            Reg::SAMPLED => monitor.sample.stages,
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

    fn status(&self, admin: &AdminRing, channels: &Channels) -> u32 {
        STATUS(0)
            .with(STATUS::READY, u32::from(self.ready))
            .with(STATUS::ADMIN_BUSY, u32::from(admin.has_work()))
            .with(STATUS::ADMIN_FAILED, u32::from(admin.failed))
            .with(STATUS::SENDING, u32::from(channels.is_sending()))
            .0
    }

    /// Writes a register. True if that asks for a reset.
    fn write_register(&mut self, reg: Reg, value: u32, engines: &mut Engines<'_, '_>) -> bool {
        let Engines { admin, doorbells, queues, channels, cx } = engines;
        let channel = &mut channels.settings;
        match reg {
            Reg::CONTROL => {
                self.control = CONTROL(value & CONTROL::ENABLE.mask());
                if !self.is_enabled() {
                    doorbells.forget_unfinished();
                }
                return CONTROL(value).get(CONTROL::SOFT_RESET) == 1;
            }
            Reg::ADMIN_BASE_LO => admin.base_lo = value,
            Reg::ADMIN_BASE_HI => admin.base_hi = value,
            Reg::ADMIN_SIZE => admin.size = ADMIN_SIZE(value),
            Reg::ADMIN_TAIL => admin.tail = value,
            Reg::NODE => channel.node = NODE(value),
            Reg::PCIE => self.pcie = value,
            Reg::REQUESTER => self.requester = value,
            Reg::READ_TIMEOUT => self.read_timeout = value,
            Reg::ACK_DELAY => channel.ack_delay = value,
            Reg::RETRY_TIMEOUT => channel.retry_timeout = value,
            Reg::RETRY_LIMIT => {
                channel.retry_limit = RETRY_LIMIT(value);
                channels.check_timers();
            }
            Reg::KEEPALIVE => {
                channel.keepalive = value;
                channels.check_timers();
            }
            Reg::MODERATION => queues.events.vectors.set_moderation(value),
            Reg::ERROR_QUEUE => {
                queues.events.error_queue = ERROR_QUEUE(value);
                queues.events.drain_errors(&mut queues.vis, cx);
            }
            Reg::ERROR_POP => drop(cx.monitor.take_error()),
            Reg::SAMPLE => cx.monitor.sample = Sample::new(SAMPLE(value)),
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
        false
    }
}

/// Counts and logs an access to an offset that is no register.
fn bad_register(offset: u64, write: u32, cx: &mut Context<'_>) {
    cx.count(Counter::BadRegister);
    cx.log(ErrorCode::BadRegister, 0, low32(offset) & !(LOG_WRITE | 3) | write);
}

/// Counts and logs an access of `length` bytes that no BAR takes.
pub(crate) fn bad_tlp(kind: u8, offset: u64, length: usize, cx: &mut Context<'_>) {
    cx.count(Counter::BadTlp);
    // Those of which the TLP has bytes (PCIe 2.2.2).
    let dwords = (low32(offset & 3) + small32(length)).div_ceil(4).max(1);
    cx.log(ErrorCode::BadTlp, 0, u32::from(kind) << 24 | dwords);
}
