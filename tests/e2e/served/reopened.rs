//! A device that one thread releases while another one opens it.

use tests::served::Simulator;
use vipl::Nic;

const THREADS: usize = 3;
const ROUNDS: usize = 100;

/// Opens and closes the device in several threads, each now and then the last.
fn hammer(url: &str) {
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    let port = device::open(url);
                    let port = port.unwrap_or_else(|error| panic!("round {round}: {error}"));
                    let nic = Nic::open(port);
                    let tag = nic.create_ptag().unwrap();
                    nic.destroy_ptag(tag).unwrap();
                    nic.create_cq(8).unwrap();
                    nic.close();
                }
            });
        }
    });
}

#[test]
fn a_world_of_its_own() {
    hammer("sim:model?simulation=reopened");
}

#[test]
fn a_served_nic() {
    let simulator = Simulator::start("reopened", 1, 0.0);
    hammer(&format!("vfio-user:{}", simulator.socket(0).display()));
    simulator.stop();
}
