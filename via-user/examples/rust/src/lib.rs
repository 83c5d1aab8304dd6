//! What the examples share: a NIC with registered memory, connecting, and who is server and who is
//! client. The examples in C beside (`../c`) do the same and speak the same protocols, so a server in
//! one language has clients in the other.
//!
//! | program | shows |
//! |---|---|
//! | `vpingpong` | sends and receives; the time of a message there and back |
//! | `vbandwidth` | a stream with flow control of its own, which VIA has not |
//! | `vserver` | many clients on one completion queue |
//! | `vrdma` | RDMA writes, with immediate data, and reads |
//! | `vrpc` | remote procedure calls, by `via-rpc` (`docs/rpc.md`); in Rust alone |
//! | `clanqueue` | no VIA: CLAN's model, with `port::clan` (`docs/clan.md`) |
//!
//! A VIA program does the same things in the same order, whatever it is for:
//!
//! 1. open a NIC, create a protection tag, register memory ([`Station::open`]);
//! 2. create a VI ([`Station::create_vi`]) and post receives on it: a message that finds none breaks
//!    the connection;
//! 3. connect it ([`Station::serve`], [`Station::ask`]);
//! 4. write descriptors ([`Station::prepare`]), post them, wait until they are done.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::Write;
use std::sync::mpsc::channel;
use std::time::Duration;

use vipl::{
    Cq, Descriptor, DmaMemory, INFINITE, MemAttributes, NetAddress, Nic, Ptag, Region, Reliability,
    Vi, ViAttributes, VipReturn,
};

/// Result of an example: it ends with whatever goes wrong.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Bytes between two descriptors with up to three data segments: they begin at multiples of 64.
pub const DESCRIPTOR: usize = Descriptor::bytes(3);

/// How long a client waits for an answer before it asks again.
const ANSWER: Duration = Duration::from_secs(1);

/// A NIC, a protection tag, and memory that is registered with it: descriptors and data.
#[derive(Debug)]
pub struct Station {
    /// The NIC.
    pub nic: Nic,
    /// What a VI and the memory that it uses must have in common.
    pub tag: Ptag,
    /// The memory. A NIC reaches only what is registered.
    pub region: Region,
    /// Others may write and read it by RDMA.
    rdma: bool,
}

impl Station {
    /// Opens a device (`shm:`, `sim:model`, `vfio-user:PATH`, or an empty name for the default one), and
    /// registers `bytes` of memory.
    ///
    /// # Errors
    /// There is no such device; memory cannot be had.
    pub fn open(device: &str, bytes: usize, rdma: bool) -> Outcome<Self> {
        let nic = Nic::open(device::open(device)?);
        let tag = nic.create_ptag()?;
        let attributes = MemAttributes {
            enable_rdma_write: rdma,
            enable_rdma_read: rdma,
            ..MemAttributes::new(tag)
        };
        let region = nic.register_mem(&DmaMemory::new(bytes)?, attributes)?;
        Ok(Self { nic, tag, region, rdma })
    }

    /// Creates a VI whose completions are also reported by `cq`, if there is one.
    ///
    /// # Errors
    /// The NIC has no VI left.
    pub fn create_vi(&self, reliability: Reliability, cq: Option<&Cq>) -> Outcome<Vi> {
        let attributes = ViAttributes {
            enable_rdma_write: self.rdma,
            enable_rdma_read: self.rdma,
            ..ViAttributes::new(reliability, self.tag)
        };
        Ok(self.nic.create_vi(attributes, cq, cq)?)
    }

    /// Writes the descriptor at offset `at` of the memory: a send or a receive of `length` bytes at
    /// offset `data`.
    ///
    /// # Errors
    /// The descriptor is not inside, or not at a multiple of 64.
    pub fn prepare(&self, at: usize, data: usize, length: u32) -> Outcome<Descriptor> {
        let descriptor = self.region.descriptor(at, 1)?;
        descriptor.prepare(&[self.region.segment(data, length)], None)?;
        Ok(descriptor)
    }

    /// Waits for somebody who asks for `service`, and connects `vi` with it.
    ///
    /// # Errors
    /// It asks with a VI of other attributes; the card is absent.
    pub fn serve(&self, vi: &Vi, service: &str) -> Outcome<()> {
        let host = self.nic.query().local_address;
        let local = NetAddress::new(&host, service.as_bytes());
        Ok(self.nic.connect_wait(&local, INFINITE)?.accept(vi)?)
    }

    /// Asks host `server` (a name, or the number of a node) for `service` until somebody is there, and
    /// connects `vi` with it.
    ///
    /// # Errors
    /// It refuses; there is no such host.
    pub fn ask(&self, vi: &Vi, server: &str, service: &str) -> Outcome<()> {
        let host = host_of(&self.nic, server)?;
        let local = NetAddress::new(&self.nic.query().local_address, b"");
        let remote = NetAddress::new(&host, service.as_bytes());
        loop {
            match vi.connect_request(&local, &remote, ANSWER) {
                Ok(_) => return Ok(()),
                // Nobody waits there yet, or the node has no program.
                Err(error) if matches!(error.code, VipReturn::NoMatch | VipReturn::Timeout) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The address of host `server`: a name, or the number of a node.
///
/// # Errors
/// There is no such host.
pub fn host_of(nic: &Nic, server: &str) -> Outcome<Vec<u8>> {
    let is_number = !server.is_empty() && server.chars().all(|c| c.is_ascii_digit());
    let name = if is_number { format!("node{server}") } else { server.to_owned() };
    nic.ns_init(None)?;
    Ok(nic.ns_host_by_name(&name, 0)?.host)
}

/// What an example prints if it is asked for help.
const HELP: &str = "\
Usage: EXAMPLE [DEVICE [NODE]]

Without arguments, both sides run in this process, on two simulated NICs.
With DEVICE it is the server, with DEVICE and NODE a client of the server on that node.

Arguments:
  [DEVICE]  shm:, sim:model, vfio-user:PATH, or \"\" for the default device
  [NODE]    name or number of the server's node
";

/// Runs an example as the command line says. Without arguments both sides run in this process, on
/// two simulated NICs; with a device the server, with a device and the name or number of the server's
/// node a client.
///
/// # Errors
/// What the sides say; arguments that make no sense.
pub fn example(
    server: fn(device: &str) -> Outcome<()>,
    client: fn(device: &str, server: &str) -> Outcome<()>,
) -> Outcome<()> {
    let words: Vec<String> = std::env::args().collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_] => {
            let (sender, results) = channel();
            let other = sender.clone();
            // A side that fails ends the program, whatever the other one waits for.
            std::thread::spawn(move || _ = other.send(server("sim:model?node=1")));
            std::thread::spawn(move || _ = sender.send(client("sim:model?node=0", "1")));
            results.iter().collect()
        }
        [_, "-h" | "--help"] => Ok(std::io::stdout().write_all(HELP.as_bytes())?),
        [_, device] => server(device),
        [_, device, server] => client(device, server),
        _ => Err(format!("usage: {} [DEVICE [NODE-OF-SERVER]]", words[0]).into()),
    }
}
