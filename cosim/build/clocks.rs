//! Free-running clocks of the NIC, which a bench may move on: a register `now` or `cycles` that counts every
//! cycle counts `viaduct_clock_step` instead, which is 1 but for the cycle of a jump. So what depends on the age
//! of something is seen at every age, and across the wrap, without waiting for it.

/// What the C++ of a model needs.
pub(crate) const HEADER: &str =
    "#pragma once\n#include <cstdint>\ninline thread_local uint64_t viaduct_clock_step = 1;\n";

/// Names of their registers, of up to 64 bits.
const CLOCKS: [&str; 2] = ["now", "cycles"];

/// The Verilog with clocks that can jump.
pub(crate) fn mark(verilog: &str) -> String {
    CLOCKS.iter().fold(verilog.to_owned(), |text, clock| {
        let counts = format!("{clock}$d = {clock}$q + ");
        let jumps = format!("{counts}$c64(\"viaduct_clock_step\");");
        text.replace(&format!("{counts}32'h1;"), &jumps)
    })
}
