//! One message through VIPL, driver and behavioural model. Everything else is in the package
//! `tests`, where each scenario runs on every kind of device.

use cosim::simulation::SimulatedDevice;
use host_driver::address::NodeAddress;
use std::sync::Arc;
use std::time::Duration;

use cosim::simulation::seeded::{SeededSimulation, SimulationConfig};
use host_driver::HardwarePort;
use host_driver::nic::{Nic as DriverNic, NicConfig};
use nic_model::Model;
use nic_model::link::Wire;
use vipl::{DmaMemory, MemAttributes, NetAddress, Nic, Reliability, ViAttributes, ViState};

const LONG: Duration = Duration::from_millis(20);

#[test]
fn a_message_crosses() {
    let devices: [SimulatedDevice; 2] = [Box::new(Model::default()), Box::new(Model::default())];
    let (simulation, buses, _wire) =
        SeededSimulation::pair(SimulationConfig::default(), devices, Wire::new(20));
    let [(server, b), (client, a)] = [1, 0].map(|node| {
        let config = NicConfig::new(node, &[1 - node]).with_seed(7);
        let driver = DriverNic::open(buses[usize::from(node)].clone(), &config).unwrap();
        let nic = Nic::open(HardwarePort::open(Arc::clone(&driver)).unwrap());
        let tag = nic.create_ptag().unwrap();
        let attributes = ViAttributes::new(Reliability::Reception, tag);
        let vi = nic.create_vi(attributes, None, None).unwrap();
        let memory = DmaMemory::new(4096).unwrap();
        let region = nic.register_mem(&memory, MemAttributes::new(tag)).unwrap();
        ((nic, region), vi)
    });
    let service = NetAddress::of_node(1, b"service");
    let slots = [simulation.slot("server"), simulation.slot("client")];
    let [server_slot, client_slot] = slots;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _token = server_slot.enter();
            server.0.connect_wait(&service, LONG).unwrap().accept(&b).unwrap();
        });
        scope.spawn(|| {
            let _token = client_slot.enter();
            a.connect_request(&NetAddress::of_node(0, b""), &service, LONG).unwrap();
        });
    });
    let [send, recv] = [&client.1, &server.1].map(|region| {
        let descriptor = region.descriptor(0, 1).unwrap();
        descriptor.prepare(&[region.segment(1000, 11)], None).unwrap();
        descriptor
    });
    client.1.memory().copy_from(1000, b"hello, VIA!");
    b.post_recv(&recv).unwrap();
    a.post_send(&send).unwrap();
    assert_eq!(b.recv_wait(LONG).unwrap().length(), 11);
    a.send_wait(LONG).unwrap();
    assert_eq!(server.1.memory().to_vec(1000, 11), b"hello, VIA!");
    a.disconnect().unwrap();
    assert_eq!(a.state(), ViState::Idle);
}
