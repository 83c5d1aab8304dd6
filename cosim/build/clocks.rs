//! Free-running clocks of the NIC, which a bench may move on: a register `now` that counts every cycle counts
//! `viaduct_clock_step` instead, which is 1 but for the cycle of a jump. So what depends on the age of something
//! is seen at every age, and across the wrap, without waiting for it.

/// What the C++ of a model needs.
pub(crate) const HEADER: &str =
    "#pragma once\n#include <cstdint>\ninline thread_local uint32_t viaduct_clock_step = 1;\n";

/// How a clock counts in emitted Verilog, and how it does in a model.
const COUNTS: [&str; 2] =
    ["now$d = now$q + 32'h1;", "now$d = now$q + $c32(\"viaduct_clock_step\");"];

/// The Verilog with clocks that can jump.
pub(crate) fn mark(verilog: &str) -> String {
    verilog.replace(COUNTS[0], COUNTS[1])
}
