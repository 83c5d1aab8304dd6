//! The ports of a block, found by walking it as RustHDL's own Verilog generator does.
use rust_hdl::prelude::*;

/// What a port is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Clock,
    Input,
    Output,
}

/// One port of a block.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    /// Field names from the block down to the signal.
    path: Vec<String>,
    pub(crate) bits: usize,
    pub(crate) kind: Kind,
}

impl Port {
    /// The field of the Verilated class: Verilator spells `$` as `__024`.
    pub(crate) fn member(&self) -> String {
        self.path.join("__024")
    }

    /// The name in the generated Rust structures.
    pub(crate) fn name(&self) -> String {
        self.path.join("_")
    }

    /// The signal as a Rust place, from the block.
    pub(crate) fn place(&self) -> String {
        self.path.join(".")
    }

    /// 64-bit words that hold the port.
    pub(crate) fn words(&self) -> usize {
        self.bits.div_ceil(64)
    }

    /// The Rust type of a port of up to 64 bits, which has the size that Verilator uses.
    pub(crate) fn scalar(&self) -> Option<&'static str> {
        match self.bits {
            0..=8 => Some("u8"),
            9..=16 => Some("u16"),
            17..=32 => Some("u32"),
            33..=64 => Some("u64"),
            _ => None,
        }
    }
}

/// The ports of `block` itself, without those of its sub-blocks, in the order of declaration.
pub(crate) fn of(block: &dyn Block) -> Vec<Port> {
    let mut walk = Walk::default();
    block.accept("top", &mut walk);
    walk.ports
}

#[derive(Default)]
struct Walk {
    depth: usize,
    namespace: Vec<String>,
    ports: Vec<Port>,
}

impl Probe for Walk {
    fn visit_start_scope(&mut self, _: &str, _: &dyn Block) {
        self.depth += 1;
    }
    fn visit_end_scope(&mut self, _: &str, _: &dyn Block) {
        self.depth -= 1;
    }
    fn visit_start_namespace(&mut self, name: &str, _: &dyn Block) {
        self.namespace.push(name.to_owned());
    }
    fn visit_end_namespace(&mut self, _: &str, _: &dyn Block) {
        self.namespace.pop();
    }
    fn visit_atom(&mut self, name: &str, signal: &dyn Atom) {
        if self.depth != 1 {
            return;
        }
        let kind = match signal.kind() {
            // RustHDL knows a clock only by the name of its type.
            AtomKind::InputParameter if signal.descriptor().name == "clock" => Kind::Clock,
            AtomKind::InputParameter => Kind::Input,
            AtomKind::OutputParameter => Kind::Output,
            AtomKind::InOutParameter => panic!("port {name}: bidirectional ports are not bound"),
            _ => return,
        };
        let mut path = self.namespace.clone();
        path.push(name.to_owned());
        self.ports.push(Port { path, bits: signal.bits(), kind });
    }
}
