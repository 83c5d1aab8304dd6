//! The targets under libFuzzer. `FUZZ_TARGET` names the one that the process runs; `cargo xtask fuzz`
//! sets it, and builds this with counters of coverage.
#![no_main]

use std::sync::LazyLock;

use fuzz::{TARGETS, Target};
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let names = TARGETS.map(|target| target.name).join(", ");
    Target::named(&name).unwrap_or_else(|| panic!("FUZZ_TARGET={name}: it must be one of {names}"))
});

fuzz_target!(|data: &[u8]| (TARGET.run)(data));
