//! Every block of the table as Verilog.
use crate::ports::{self, Kind, Port};
use hdl::*;
use rust_hdl::prelude::{Block, generate_verilog};

/// RustHDL blocks live on the stack while they are built, and a wide one is large.
const STACK: usize = 512 << 20;

/// One block of the table.
#[derive(Debug)]
pub(crate) struct Design {
    /// Its name in the table.
    pub(crate) name: &'static str,
    /// Its type, as a path from the root of the crate `hdl`.
    pub(crate) block: &'static str,
    pub(crate) traced: bool,
    pub(crate) large: bool,
    pub(crate) verilog: String,
    ports: Vec<Port>,
}

impl Design {
    fn new<B: Block + Default>(
        name: &'static str,
        block: &'static str,
        options: &[&'static str],
    ) -> Self {
        let (mut traced, mut large) = (false, false);
        for option in options {
            match *option {
                // Without the feature nothing is traced.
                "traced" => traced = cfg!(feature = "trace"),
                "large" => large = true,
                _ => panic!("block {name}: unknown option {option}"),
            }
        }
        let mut top = B::default();
        top.connect_all();
        let verilog = generate_verilog(&top);
        Self { name, block, traced, large, verilog, ports: ports::of(&top) }
    }

    /// The name of the Verilated class.
    pub(crate) fn class(&self) -> String {
        format!("V{}", self.name)
    }

    pub(crate) fn clocks(&self) -> impl Iterator<Item = &Port> {
        self.of_kind(Kind::Clock)
    }

    /// Inputs except clocks.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Port> {
        self.of_kind(Kind::Input)
    }

    pub(crate) fn outputs(&self) -> impl Iterator<Item = &Port> {
        self.of_kind(Kind::Output)
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Port> {
        self.ports.iter().filter(move |port| port.kind == kind)
    }
}

/// The block that is the whole NIC.
pub(crate) const NIC: &str = "top";

/// Whether this build wants all blocks of the table.
pub(crate) fn is_complete() -> bool {
    cfg!(feature = "blocks") && std::env::var_os("VIADUCT_BLOCKS").is_none()
}

/// The blocks of the table that this build wants, in its order: the NIC, and with the feature
/// `blocks` all others; with `VIADUCT_BLOCKS=tpt,recv` in the environment only these.
pub(crate) fn all() -> Vec<Design> {
    let chosen = std::env::var("VIADUCT_BLOCKS").ok();
    let wanted = move |name: &str| match &chosen {
        Some(chosen) => chosen.split(',').any(|block| block.trim() == name),
        None => cfg!(feature = "blocks") || name == NIC,
    };
    macro_rules! designs {
        ($($name:ident: $block:ty $([$($option:ident),*])?;)*) => {
            [$(wanted(stringify!($name)).then(|| {
                Design::new::<$block>(
                    stringify!($name),
                    stringify!($block),
                    &[$($(stringify!($option)),*)?],
                )
            })),*]
            .into_iter()
            .flatten()
            .collect()
        };
    }
    std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || -> Vec<Design> { blocks!(designs) })
        .expect("a thread to emit Verilog in")
        .join()
        .expect("every block emits Verilog")
}
