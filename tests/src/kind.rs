//! The kinds of device.

use cosim::root_complex::HostSettings;
use cosim::simulation::SimulatedDevice;
use nic_model::Model;
use nic_model::device::Features;

/// What stands behind the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// The behavioural model.
    Model,
    /// The behavioural model without the features that a device may lack.
    Plain,
    /// The Verilated RTL.
    #[cfg(feature = "rtl")]
    Rtl,
}

impl DeviceKind {
    /// Whether simulation is slow, so that long scenarios are cut.
    #[must_use]
    const fn is_slow(self) -> bool {
        !matches!(self, Self::Model | Self::Plain)
    }

    /// A size for the model, and one for a slow device.
    #[must_use]
    pub fn size<T>(self, model: T, slow: T) -> T {
        if self.is_slow() { slow } else { model }
    }
}

/// Says that a scenario, or part of it, does not run because its device lacks something.
#[expect(
    clippy::print_stderr,
    reason = "the harness shows it with --nocapture, and with a failure"
)]
pub fn skipped(kind: DeviceKind, what: &str) {
    eprintln!("SKIPPED on {kind:?}: the device has no {what}");
}

/// A device of this kind. The host's behaviour matters to the RTL alone: the model's host answers
/// at once.
#[must_use]
pub fn device(kind: DeviceKind, host: &HostSettings) -> SimulatedDevice {
    match kind {
        DeviceKind::Model => {
            let _ = host;
            Box::new(Model::default())
        }
        DeviceKind::Plain => Box::new(Model::with_features(Features::NONE)),
        #[cfg(feature = "rtl")]
        DeviceKind::Rtl => Box::new(rtl::Checked::new(host.clone())),
    }
}

#[cfg(feature = "rtl")]
mod rtl {
    use super::HostSettings;
    use cosim::rtl::RtlNic;
    use nic_model::device::{Device, HostBus, Link};

    /// The RTL; the test fails if it broke a rule of the host port.
    #[derive(Debug)]
    pub(super) struct Checked(RtlNic);

    impl Checked {
        pub(super) fn new(host: HostSettings) -> Self {
            Self(RtlNic::new(host))
        }
    }

    impl Drop for Checked {
        fn drop(&mut self) {
            let broken = self.0.violations();
            if !std::thread::panicking() {
                assert!(broken.is_empty(), "the RTL broke rules of the host port: {broken:#?}");
            }
        }
    }

    impl Device for Checked {
        fn bar_write(&mut self, bar: u8, offset: u64, data: &[u8]) {
            self.0.bar_write(bar, offset, data);
        }

        fn bar_read(&mut self, bar: u8, offset: u64, length: usize) {
            self.0.bar_read(bar, offset, length);
        }

        fn bar_response(&mut self) -> Option<u64> {
            self.0.bar_response()
        }

        fn step(&mut self, now: u64, host: &mut dyn HostBus, link: &mut dyn Link) {
            self.0.step(now, host, link);
        }

        fn busy(&self) -> bool {
            self.0.busy()
        }

        fn violations(&self) -> &[String] {
            self.0.violations()
        }
    }
}
