//! Ping-pong between two nodes on the behavioural model: `cargo run -p vipl --example ping_pong`.

use host_driver::address::NodeAddress;
use std::io::Write;

use cosim::simulation::seeded::{SeededSimulation, SimulationConfig};
use host_driver::HardwarePort;
use host_driver::nic::{Nic as DriverNic, NicConfig};
use nic_model::Model;
use nic_model::link::Wire;
use vipl::{
    Descriptor, DmaMemory, INFINITE, MemAttributes, NetAddress, Nic, Region, Reliability, Vi,
    ViAttributes,
};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const ROUNDS: u32 = 1000;

/// A VI, a send and a receive descriptor, and the memory that all of it lies in.
fn prepare(nic: &Nic) -> Outcome<(Vi, Descriptor, Descriptor, Region)> {
    let tag = nic.create_ptag()?;
    let region = nic.register_mem(&DmaMemory::new(4096)?, MemAttributes::new(tag))?;
    let (send, recv) = (region.descriptor(0, 1)?, region.descriptor(64, 1)?);
    let vi = nic.create_vi(ViAttributes::new(Reliability::Delivery, tag), None, None)?;
    recv.prepare(&[region.segment(192, 64)], None)?;
    vi.post_recv(&recv)?;
    Ok((vi, send, recv, region))
}

fn server(nic: &Nic) -> Outcome<()> {
    let (vi, send, recv, region) = prepare(nic)?;
    nic.connect_wait(&NetAddress::of_node(1, b"ping"), INFINITE)?.accept(&vi)?;
    for _ in 0..ROUNDS {
        let length = vi.recv_wait(INFINITE)?.length();
        send.prepare(&[region.segment(192, length)], None)?;
        vi.post_recv(&recv)?;
        vi.post_send(&send)?;
        vi.send_wait(INFINITE)?;
    }
    Ok(())
}

fn client(nic: &Nic) -> Outcome<u64> {
    let (vi, send, recv, region) = prepare(nic)?;
    let (from, to) = (NetAddress::of_node(0, b""), NetAddress::of_node(1, b"ping"));
    while vi.connect_request(&from, &to, std::time::Duration::from_millis(10)).is_err() {}
    let start = nic.port().now_ns();
    region.memory().copy_from(128, b"ping!");
    for _ in 0..ROUNDS {
        send.prepare(&[region.segment(128, 5)], None)?;
        vi.post_send(&send)?;
        vi.send_wait(INFINITE)?;
        assert_eq!(vi.recv_wait(INFINITE)?.length(), 5);
        vi.post_recv(&recv)?;
    }
    Ok((nic.port().now_ns() - start) / u64::from(ROUNDS))
}

fn main() -> Outcome<()> {
    let devices: [Box<dyn nic_model::device::Device + Send>; 2] =
        [Box::new(Model::default()), Box::new(Model::default())];
    let (simulation, [a, b], _wire) =
        SeededSimulation::pair(SimulationConfig::default(), devices, Wire::new(20));
    let a = DriverNic::open(a, &NicConfig::new(0, &[1]).with_seed(1))?;
    let b = DriverNic::open(b, &NicConfig::new(1, &[0]).with_seed(2))?;
    let (a, b) = (Nic::open(HardwarePort::open(a)?), Nic::open(HardwarePort::open(b)?));
    let (server_slot, client_slot) = (simulation.slot("server"), simulation.slot("client"));
    let serve = std::thread::spawn(|| server_slot.run(move || server(&b)));
    let ask = std::thread::spawn(|| client_slot.run(move || client(&a)));
    serve.join().map_err(|_| "the server panicked")??;
    let ns = ask.join().map_err(|_| "the client panicked")??;
    writeln!(std::io::stdout(), "{ROUNDS} rounds, {ns} ns of simulated time each")?;
    Ok(())
}
