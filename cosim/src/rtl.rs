//! The Verilated NIC as a [`Device`]: its TLP pins on a [`RootComplex`], its link pins on a
//! [`Link`].

use crate::probe::Probe;
use crate::probe::pins::Watch;
use crate::root_complex::{DevicePins, HostSettings, HostTraffic, RootComplex};
use crate::verilated::Verilated;
use crate::verilated::blocks::top;
use nic_model::device::{Beat, Device, HostBus, Link};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Cycles of power-on reset.
const RESET_CYCLES: usize = 4;
/// Cycles without a beat on any port after which the NIC counts as idle: longer than any pipe of
/// the NIC.
const QUIET_CYCLES: u64 = 2_048;

/// One NIC.
pub struct RtlNic {
    model: top::Model,
    root: RootComplex,
    now: u64,
    active_until: u64,
    link_beats: u64,
    watch: Option<Box<Watch>>,
    /// Waveforms that begin later: when, and where.
    trace: Option<(u64, PathBuf)>,
}

impl std::fmt::Debug for RtlNic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RtlNic").field("root", &self.root).finish_non_exhaustive()
    }
}

impl RtlNic {
    /// A NIC out of reset, in a host with these settings.
    #[must_use]
    pub fn new(settings: HostSettings) -> Self {
        let mut model = top::Model::new();
        for _ in 0..RESET_CYCLES {
            model.reset();
        }
        let root = RootComplex::new(settings);
        Self { model, root, now: 0, active_until: 0, link_beats: 0, watch: None, trace: None }
    }

    /// Writes waveforms from here on.
    ///
    /// # Errors
    /// As [`Verilated::open_trace`].
    pub fn open_trace(&mut self, path: &Path) -> io::Result<()> {
        Verilated::open_trace(&mut self.model, path)
    }

    /// As [`Self::open_trace`], from a cycle on.
    ///
    /// # Errors
    /// If the file cannot be made.
    ///
    /// # Panics
    /// In that cycle, if waveforms cannot be written as [`Self::open_trace`] says.
    pub fn trace_from(&mut self, cycle: u64, path: &Path) -> io::Result<()> {
        File::create(path)?;
        self.trace = Some((cycle, path.to_owned()));
        Ok(())
    }

    /// Writes waveforms from here on into a file of this node's own, whose path is returned: of
    /// `out.vcd` and node `a` it is `out-a.vcd`.
    ///
    /// # Errors
    /// As [`Verilated::open_trace`]; the text names the file.
    pub fn trace_node(&mut self, path: &Path, node: &str) -> io::Result<PathBuf> {
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        let path = format!("{}-{node}.{extension}", path.with_extension("").display());
        match self.open_trace(Path::new(&path)) {
            Ok(()) => Ok(path.into()),
            Err(error) => Err(io::Error::new(error.kind(), format!("{path}: {error}"))),
        }
    }

    /// Records what crosses the pins from here on.
    pub fn attach_probe(&mut self) -> Probe {
        self.watch.get_or_insert_default().probe()
    }

    /// What went over the host port.
    #[must_use]
    pub const fn traffic(&self) -> HostTraffic {
        self.root.traffic()
    }

    /// Beats put on the link.
    #[must_use]
    pub const fn link_beats(&self) -> u64 {
        self.link_beats
    }
}

impl Device for RtlNic {
    fn bar_write(&mut self, bar: u8, offset: u64, data: &[u8]) {
        self.root.bar_write(bar, offset, data);
    }

    fn bar_read(&mut self, bar: u8, offset: u64, length: usize) {
        self.root.bar_read(bar, offset, length);
    }

    fn bar_response(&mut self) -> Option<u64> {
        self.root.bar_response()
    }

    fn step(&mut self, now: u64, host: &mut dyn HostBus, link: &mut dyn Link) {
        self.now = now;
        if let Some((_, path)) = self.trace.take_if(|(cycle, _)| *cycle <= now) {
            self.open_trace(&path).expect("a waveform that this build can write");
        }
        let pins = self.root.drive(now, host);
        let arriving = link.receive(now);
        let inputs = &mut self.model.inputs;
        inputs.cq_valid = pins.cq_valid.into();
        inputs.cq_data = pins.cq_data;
        inputs.cq_last = pins.cq_last.into();
        inputs.cq_bar = pins.cq_bar;
        inputs.cc_ready = 1;
        inputs.rq_ready = pins.rq_ready.into();
        inputs.rc_valid = pins.rc_valid.into();
        inputs.rc_data = pins.rc_data;
        inputs.rc_last = pins.rc_last.into();
        inputs.tx_ready = link.ready(now).into();
        inputs.rx_valid = arriving.is_some().into();
        let Beat { data, last } = arriving.unwrap_or_default();
        inputs.rx_data = data;
        inputs.rx_last = last.into();
        self.model.cycle();
        let out = &self.model.outputs;
        let device = DevicePins {
            cq_ready: out.cq_ready != 0,
            cc_valid: out.cc_valid != 0,
            cc_data: out.cc_data,
            cc_last: out.cc_last != 0,
            rq_valid: out.rq_valid != 0,
            rq_data: out.rq_data,
            rq_last: out.rq_last != 0,
        };
        let sent = out.tx_valid != 0 && self.model.inputs.tx_ready != 0;
        let departing = Beat { data: out.tx_data, last: out.tx_last != 0 };
        if sent {
            self.link_beats += 1;
            link.send(now, departing);
        }
        if let Some(watch) = &mut self.watch {
            watch.host(now, &pins, &device);
            watch.link(now, sent.then_some(departing), arriving);
        }
        if sent || arriving.is_some() || pins.cq_valid || pins.rc_valid || device.rq_valid {
            self.active_until = now + QUIET_CYCLES;
        }
        self.root.sample(now, &device, host);
    }

    fn busy(&self) -> bool {
        self.root.busy() || self.active_until > self.now
    }

    fn violations(&self) -> &[String] {
        self.root.violations()
    }
}
