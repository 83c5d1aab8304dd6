//! A bus that names every register access.

use std::sync::Arc;

use nic_regs::csr::{MSIX_ENTRY_BYTES, MSIX_TABLE_OFFSET, REGS};
use nic_regs::doorbell::{
    EVENT_OFFSET, EventDoorbell, PAGE_BYTES, PUSH_LINE_BYTES, PUSH_LINE_COUNT, PUSH_OFFSET,
    PushControl, TOKEN_OFFSET, Token,
};
use nic_regs::limits::MSIX_VECTOR_COUNT;

use super::register_name;
use super::{Bar, Bus, DOORBELL_BAR, Dma, Irq, REGISTER_BAR, Wait};
use crate::dma::DmaMemory;
use crate::error::Result;
use crate::sync::Signal;

/// Where the lines go.
pub type Sink = Box<dyn Fn(&str) + Send + Sync>;

/// Wraps a bus and writes a line for each access.
pub struct TraceBus {
    inner: Arc<dyn Bus>,
    sink: Sink,
}

impl core::fmt::Debug for TraceBus {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("TraceBus")
    }
}

impl TraceBus {
    /// Wraps `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn Bus>, sink: Sink) -> Self {
        Self { inner, sink }
    }

    fn line(&self, text: &str) {
        (self.sink)(&format!("{:>10} ns  {text}", self.inner.now_ns()));
    }
}

/// `value`, with the register's fields.
fn fields(bar: u8, offset: u64, value: u32) -> String {
    let register = REGS.iter().find(|r| bar == REGISTER_BAR && u64::from(r.offset) == offset);
    let Some(register) = register else { return format!("{value:#010x}") };
    let field = |&(name, hi, lo, _): &(&str, u32, u32, &str)| {
        format!("{name}={:#x}", (value >> lo) & (u32::MAX >> (31 - (hi - lo))))
    };
    let all: Vec<_> = register.fields.iter().map(field).collect();
    format!("{value:#010x} ({})", all.join(" "))
}

fn name(bar: u8, offset: u64) -> String {
    let table = u64::from(MSIX_TABLE_OFFSET);
    let table_end = table + u64::from(MSIX_ENTRY_BYTES) * MSIX_VECTOR_COUNT as u64;
    if bar == REGISTER_BAR && (table..table_end).contains(&offset) {
        let entry = (offset - table) / u64::from(MSIX_ENTRY_BYTES);
        let part = ["address low", "address high", "data", "control"];
        let word = usize::try_from(offset % u64::from(MSIX_ENTRY_BYTES) / 4).unwrap_or(0);
        return format!("MSIX[{entry}] {}", part[word]);
    }
    if bar == REGISTER_BAR { register_name(bar, offset) } else { format!("BAR{bar}+{offset:#x}") }
}

const PUSH_END: u64 = PUSH_OFFSET + PUSH_LINE_COUNT * PUSH_LINE_BYTES;

fn push_word(page: u64, at: u64, value: u64) -> String {
    let (line, index) = (at / PUSH_LINE_BYTES, at % PUSH_LINE_BYTES / 8);
    let text = match index {
        0 => format!("{:?}", Token::from_bits(value)),
        1 => format!("{:?}", PushControl::from_bits(value)),
        _ => format!("{value:#018x}"),
    };
    format!("push page {page} line {line} word {index}: {text}")
}

fn doorbell(offset: u64, value: u64) -> String {
    let page = offset / PAGE_BYTES;
    match offset % PAGE_BYTES {
        TOKEN_OFFSET => format!("doorbell page {page}: {:?}", Token::from_bits(value)),
        EVENT_OFFSET => format!("doorbell page {page}: {:?}", EventDoorbell::from_bits(value)),
        at if (PUSH_OFFSET..PUSH_END).contains(&at) => push_word(page, at - PUSH_OFFSET, value),
        other => format!("doorbell page {page}: {value:#018x} at unknown offset {other:#x}"),
    }
}

impl Bar for TraceBus {
    fn read32(&self, bar: u8, offset: u64) -> Result<u32> {
        let value = self.inner.read32(bar, offset);
        match &value {
            Ok(value) => {
                self.line(&format!(
                    "read  {} = {}",
                    name(bar, offset),
                    fields(bar, offset, *value)
                ));
            }
            Err(error) => self.line(&format!("read  {}: {error}", name(bar, offset))),
        }
        value
    }

    fn write32(&self, bar: u8, offset: u64, value: u32) {
        self.line(&format!("write {} = {}", name(bar, offset), fields(bar, offset, value)));
        self.inner.write32(bar, offset, value);
    }

    fn write64(&self, bar: u8, offset: u64, value: u64) {
        if bar == DOORBELL_BAR {
            self.line(&doorbell(offset, value));
        } else {
            self.line(&format!("write {} = {value:#018x}", name(bar, offset)));
        }
        self.inner.write64(bar, offset, value);
    }

    fn write_line(&self, bar: u8, offset: u64, words: &[u64]) {
        let mut at = offset;
        for word in words {
            self.line(&doorbell(at, *word));
            at += 8;
        }
        self.inner.write_line(bar, offset, words);
    }
}

impl Dma for TraceBus {
    fn map(&self, memory: &DmaMemory) -> Result<u64> {
        let address = self.inner.map(memory)?;
        self.line(&format!("map   {} bytes at {address:#x}", memory.len()));
        Ok(address)
    }

    fn unmap(&self, bus_address: u64) {
        self.line(&format!("unmap {bus_address:#x}"));
        self.inner.unmap(bus_address);
    }
}

impl Irq for TraceBus {
    fn connect(&self, bar: &dyn Bar, count: u16) -> Result<()> {
        self.inner.connect(bar, count)
    }

    fn take_interrupt(&self, vector: u16) -> bool {
        self.inner.take_interrupt(vector)
    }

    fn wait_interrupt(&self, vector: u16, bound_ns: u64, wait: Wait) -> bool {
        let raised = self.inner.wait_interrupt(vector, bound_ns, wait);
        self.line(&format!("vector {vector} {}", if raised { "raised" } else { "not raised" }));
        raised
    }

    fn raise_interrupt(&self, vector: u16) {
        self.inner.raise_interrupt(vector);
    }
}

impl Bus for TraceBus {
    fn relax(&self, wait: Wait) {
        self.inner.relax(wait);
    }

    fn now_ns(&self) -> u64 {
        self.inner.now_ns()
    }

    fn wait_signal(&self, signal: &Signal, seen: u64, bound_ns: u64, wait: Wait) {
        self.inner.wait_signal(signal, seen, bound_ns, wait);
    }

    fn spawn(&self, name: &str, program: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
        self.inner.spawn(name, program)
    }

    fn name(&self) -> String {
        self.inner.name()
    }
}
