//! The C++ between Rust and one Verilated model: one exported table of functions per block.
//!
//! Its `In` and `Out` have the layout of the Rust structures that `bindings.rs` writes. Every input
//! is masked to its width, because the model indexes memories with what it is given.
use crate::emit::Design;
use crate::ports::Port;
use std::fmt::Write as _;

/// The text of the shim. It includes the model's own sources unless the design is large.
pub(crate) fn text(design: &Design, sources: &[String]) -> String {
    let mut text = format!("#include \"{}.h\"\n#include \"shim_common.h\"\n", design.class());
    if !design.large {
        for source in sources {
            line(&mut text, &format!("#include \"{source}\""));
        }
    }
    text.push_str("namespace {\n");
    structure(&mut text, "In", design.inputs());
    structure(&mut text, "Out", design.outputs());
    line(&mut text, &format!("typedef Instance<{}> Self;", design.class()));

    line(&mut text, "inline void load(Self* self, const In* in) {");
    for (index, port) in design.inputs().enumerate() {
        load(&mut text, index, port);
    }
    line(&mut text, "}\ninline void store(Self* self, Out* out) {");
    for (index, port) in design.outputs().enumerate() {
        store(&mut text, index, port);
    }
    line(&mut text, "}\ninline void clock(Self* self, int level) {");
    for port in design.clocks() {
        line(&mut text, &format!("    self->model.{} = level;", port.member()));
    }
    line(&mut text, "}");
    text.push_str(&FUNCTIONS.replace("NAME", design.name));
    text
}

/// Settling and clocking. The outputs are those before the rising edge.
const FUNCTIONS: &str = r#"
void eval(void* instance, const void* in, void* out) {
    Self* self = static_cast<Self*>(instance);
    load(self, static_cast<const In*>(in));
    clock(self, 0);
    self->model.eval();
    store(self, static_cast<Out*>(out));
}
void cycle(void* instance, const void* in, void* out) {
    Self* self = static_cast<Self*>(instance);
    eval(instance, in, out);
    self->dump();
    clock(self, 1);
    self->model.eval();
    self->dump();
}
void jump(void* instance, const void* in, void* out, uint64_t step) {
    viaduct_clock_step = step;
    cycle(instance, in, out);
    viaduct_clock_step = 1;
}
}
extern "C" const Table viaduct_NAME;
const Table viaduct_NAME = {
    create<Self>, destroy<Self>, eval, cycle, jump, attach<Self>, open_fst<Self>, write_coverage<Self>,
    sizeof(In), sizeof(Out),
};
"#;

/// What all shims share; written once as `shim_common.h`.
pub(crate) const COMMON: &str = r#"#pragma once
#include <cstddef>
#include <cstdint>
#include "verilated.h"
#if VM_COVERAGE
#include "verilated_cov.h"
#endif
#if VIADUCT_VCD
#include "verilated_vcd_c.h"
typedef VerilatedVcdC Wave;
#elif VIADUCT_FST
#include "verilated_fst_c.h"
typedef VerilatedFstC Wave;
#endif

// Must match `Table` in cosim/src/verilated/ffi.rs.
struct Table {
    void* (*create)();
    void (*destroy)(void*);
    void (*eval)(void*, const void*, void*);
    void (*cycle)(void*, const void*, void*);
    void (*jump)(void*, const void*, void*, uint64_t);
    int (*attach)(void*, void*);
    int (*open_fst)(void*, const char*);
    void (*write_coverage)(void*, const char*);
    size_t in_size;
    size_t out_size;
};

namespace {
// Half a clock period of the waveform, in nanoseconds: the core clock has 250 MHz.
const uint64_t HALF_PERIOD = 2;

// A context of its own for each model, so that models of different threads share nothing.
struct Context : VerilatedContext {
#if VIADUCT_VCD || VIADUCT_FST
    Context() { traceEverOn(true); }
#endif
};

template <class Model> struct Instance {
    Context context;
    Model model{&context, "top"};
#if VIADUCT_VCD || VIADUCT_FST
    // Has a writer take this model's signals, in nanoseconds, which the model itself does not say.
    void watch(Wave* writer) {
        model.trace(writer, 99);
        writer->set_time_unit("1ns");
        writer->set_time_resolution("1ns");
    }
    Wave* wave = nullptr;
    uint64_t time = 0;
    void dump() {
        if (VL_UNLIKELY(wave)) {
            wave->dump(time);
            time += HALF_PERIOD;
        }
    }
#else
    void dump() {}
#endif
};

template <class Self> void* create() {
    try {
        return new Self;
    } catch (...) {
        return nullptr;
    }
}

template <class Self> void destroy(void* instance) {
    Self* self = static_cast<Self*>(instance);
#if VIADUCT_FST
    if (self->wave) self->wave->close();
    delete self->wave;
#endif
    self->model.final();
    delete self;
}

// Takes a VCD writer, not yet open, that Rust owns and drops before the instance or right after; 0
// if there is none.
template <class Self> int attach(void* instance, void* vcd) {
#if VIADUCT_VCD
    Self* self = static_cast<Self*>(instance);
    if (vcd) self->watch(static_cast<Wave*>(vcd));
    self->wave = static_cast<Wave*>(vcd);
    return 1;
#else
    return 0;
#endif
}

// Opens an FST writer that the instance owns: 1 done, 0 no FST in this build, -1 cannot write the
// file.
template <class Self> int open_fst(void* instance, const char* path) {
#if VIADUCT_FST
    Self* self = static_cast<Self*>(instance);
    Wave* wave = new Wave;
    self->watch(wave);
    wave->open(path);
    if (!wave->isOpen()) {
        delete wave;
        return -1;
    }
    self->wave = wave;
    return 1;
#else
    return 0;
#endif
}

// Writes what has run so far, in a build that counts it.
template <class Self> void write_coverage(void* instance, const char* path) {
#if VM_COVERAGE
    static_cast<Self*>(instance)->context.coveragep()->write(path);
#endif
}
}
"#;

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// A C structure with a field `p<index>` for each port.
fn structure<'a>(text: &mut String, name: &str, ports: impl Iterator<Item = &'a Port>) {
    line(text, &format!("struct {name} {{"));
    for (index, port) in ports.enumerate() {
        match port.scalar() {
            Some(scalar) => writeln!(text, "    uint{}_t p{index};", &scalar[1..]),
            None => writeln!(text, "    uint64_t p{index}[{}];", port.words()),
        }
        .expect("a string takes every write");
    }
    line(text, "};");
}

/// Copies an input into the model, masked. Verilator keeps more than 64 bits as words of 32.
fn load(text: &mut String, index: usize, port: &Port) {
    let member = port.member();
    if let Some(scalar) = port.scalar() {
        let mask = u64::MAX >> (64 - port.bits);
        let bits = &scalar[1..];
        line(
            text,
            &format!("    self->model.{member} = (uint{bits}_t)(in->p{index} & {mask:#x}ull);"),
        );
        return;
    }
    for half in 0..port.bits.div_ceil(32) {
        let used = (port.bits - 32 * half).min(32);
        let mask = u32::MAX >> (32 - used);
        let (word, shift) = (half / 2, 32 * (half % 2));
        let value = format!("(uint32_t)(in->p{index}[{word}] >> {shift}) & {mask:#x}u");
        line(text, &format!("    self->model.{member}[{half}] = {value};"));
    }
}

/// Copies an output from the model, the unused part of the last word as zero.
fn store(text: &mut String, index: usize, port: &Port) {
    let member = port.member();
    if port.scalar().is_some() {
        line(text, &format!("    out->p{index} = self->model.{member};"));
        return;
    }
    let halves = port.bits.div_ceil(32);
    for word in 0..port.words() {
        let mut value = format!("(uint64_t)self->model.{member}[{}]", 2 * word);
        if 2 * word + 1 < halves {
            value = format!("((uint64_t)self->model.{member}[{}] << 32) | {value}", 2 * word + 1);
        }
        line(text, &format!("    out->p{index}[{word}] = {value};"));
    }
}
