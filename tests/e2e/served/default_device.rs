//! Programs that name no device: each gets the first NIC that is free.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cosim::serve::{Config, Server};
use cosim::simulation::SimulatedDevice;
use nic_model::Model;
use nic_model::link::Faults;
use tests::served::{Process, Simulator, say, wait_for_stop};

/// What [`device::DEVICE_VARIABLE`] is.
const DEVICE: &str = device::DEVICE_VARIABLE;

/// Opens what the test says, twice, and holds it. `any NAME` need not be hardware.
pub(super) fn role(name: &str) {
    if let Some(name) = name.strip_prefix("any ") {
        return match device::open(name) {
            Ok(port) => say(&format!("opened {}", port.attributes().name)),
            Err(error) => say(&format!("refused {error}")),
        };
    }
    match device::open_hardware(name) {
        Ok(port) => {
            say(&format!("opened {}", port.nic().bus().name()));
            let again = device::open_hardware("/dev/clanvi0").unwrap();
            assert!(std::sync::Arc::ptr_eq(again.nic(), port.nic()), "one NIC");
            wait_for_stop();
        }
        Err(error) => say(&format!("refused {error}")),
    }
}

/// A program whose run-time folder is in `home`.
fn program(home: &Path, role: &str, variable: &str) -> Process {
    let home = home.to_str().unwrap();
    Process::program_with(home.as_ref(), role, &[("XDG_RUNTIME_DIR", home), (DEVICE, variable)])
}

#[test]
fn programs_without_arguments_get_a_nic_each() {
    let home = std::env::temp_dir().join(format!("viaduct-home-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    let folder = home.join("viaduct");

    // Nobody serves: the error says what to do.
    let text = program(&home, "default nic0", "").expect("refused");
    assert!(text.contains(folder.to_str().unwrap()), "{text}");
    assert!(text.contains("`viaduct cosim serve`") && text.contains(DEVICE), "{text}");
    // Who needs no hardware has shared memory.
    assert!(program(&home, "default any VINIC0", "").expect("opened").ends_with("shm node0"));

    let simulator = Simulator::start_at(folder.clone(), 2, 0.0);
    assert!(program(&home, "default any ", "").expect("opened").ends_with("viaduct node 0"));
    let mut first = program(&home, "default VINIC0", "");
    assert!(first.expect("opened").ends_with("nic0.sock"));
    let mut second = program(&home, "default ", "");
    assert!(second.expect("opened").ends_with("nic1.sock"));

    // All are taken: by whom, and what to do.
    program(&home, "default any ", "").expect("refused");
    let text = program(&home, "default /dev/clanvi1", "").expect("refused");
    for part in [
        format!("nic0.sock: another program uses this device: process {} (", first.id()),
        format!("nic1.sock: another program uses this device: process {} (", second.id()),
        "viaduct cosim serve --nodes".to_owned(),
    ] {
        assert!(text.contains(&part), "{part} in {text}");
    }
    // One by its own name too.
    let socket = format!("vfio-user:{}", simulator.socket(1).display());
    let text = program(&home, "default ", &socket).expect("refused");
    assert!(text.contains(&format!("process {}", second.id())), "{text}");

    // What a killed program had is free at once.
    first.kill();
    let mut third = program(&home, "default ", "");
    assert!(third.expect("opened").ends_with("nic0.sock"));
    third.stop();
    second.stop();

    // A simulator that died leaves sockets at which nobody is.
    let mut simulator = simulator;
    simulator.process().kill();
    let text = program(&home, "default ", "").expect("refused");
    assert!(text.contains("nic0.sock") && text.contains("`viaduct cosim serve"), "{text}");
    assert!(program(&home, "default any ", "").expect("opened").ends_with("shm node0"));
    std::fs::remove_dir_all(&home).unwrap();
}

#[test]
fn the_variable_may_name_a_folder() {
    let simulator = Simulator::start("folder", 2, 0.0);
    let folder = simulator.folder().to_str().unwrap().to_owned();
    let home = simulator.folder().join("nothing");
    for variable in [folder.clone(), format!("vfio-user:{folder}")] {
        let mut programs = [0, 1].map(|_| program(&home, "default ", &variable));
        let mut got: Vec<_> = programs.iter_mut().map(|program| program.expect("opened")).collect();
        got.sort();
        assert!(got[0].ends_with("nic0.sock") && got[1].ends_with("nic1.sock"), "{got:?}");
        programs.into_iter().for_each(Process::stop);
    }
    let text = program(&home, "default ", "no/such").expect("refused");
    assert!(text.contains("`viaduct cosim serve --dir no/such`"), "{text}");
    simulator.stop();
}

/// A run-time folder that another user could have made, or could change, is refused by programs and by
/// simulators; sockets are for their user alone.
#[test]
fn a_run_time_folder_of_others_is_refused() {
    let home = std::env::temp_dir().join(format!("viaduct-others-{}", std::process::id()));
    let (folder, elsewhere) = (home.join("viaduct"), home.join("elsewhere"));
    std::fs::create_dir_all(&elsewhere).unwrap();
    let simulator = Simulator::start_at(folder.clone(), 1, 0.0);
    let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&simulator.socket(0))), (0o700, 0o600));
    program(&home, "default ", "").expect("opened");

    let refused = |part: &str| {
        let text = program(&home, "default ", "").expect("refused");
        assert!(text.contains(part) && text.contains(folder.to_str().unwrap()), "{text}");
        let device = Box::new(|_| Box::new(Model::default()) as SimulatedDevice);
        let (nodes, latency, faults) = (1, 20, Faults::default());
        let config = Config { nodes, latency, faults, folder: folder.clone(), device };
        let text = Server::start(config).unwrap_err().to_string();
        assert!(text.contains(part) && text.contains(folder.to_str().unwrap()), "{text}");
    };
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    refused("mode 777");
    // It takes its folder with it.
    simulator.stop();
    std::os::unix::fs::symlink(&elsewhere, &folder).unwrap();
    refused("symbolic link");
    std::fs::remove_dir_all(&home).unwrap();
}
