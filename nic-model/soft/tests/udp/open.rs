//! Addresses that a node cannot have, and what the error says.

use soft_nic::net::{Error, NetNode, Options};

fn refused(address: &str) -> Error {
    NetNode::udp(address.parse().unwrap(), &Options::default()).unwrap_err()
}

#[test]
fn addresses_that_are_of_no_use_are_named_with_what_to_do() {
    let node = NetNode::udp("127.0.0.1:0".parse().unwrap(), &Options::default()).unwrap();
    let taken = node.address().to_string();
    let in_use = refused(&taken);
    assert!(matches!(in_use, Error::InUse { .. }));
    assert!(in_use.to_string().contains(&taken) && in_use.to_string().contains("udp:IP:PORT"));
    drop(node);
    drop(NetNode::udp(taken.parse().unwrap(), &Options::default()).unwrap());
    // Of a network for documentation.
    let not_here = refused("192.0.2.1:22089");
    assert!(matches!(not_here, Error::NotHere { .. }), "{not_here}");
    assert!(not_here.to_string().contains("192.0.2.1:22089"));
    for address in ["0.0.0.0:22089", "224.0.0.1:22089", "[::1]:5"] {
        let error = refused(address);
        assert!(matches!(error, Error::Address { .. }), "{error}");
        assert!(error.to_string().contains(address), "{error}");
    }
}

#[test]
fn interfaces_that_are_of_no_use_are_named_with_what_to_do() {
    let refused = |name| NetNode::eth(name, &Options::default()).unwrap_err();
    for name in ["nothing0", "", "..", "../lo", "a-name-that-is-too-long"] {
        let error = refused(name);
        assert!(matches!(error, Error::NoInterface { .. }), "{error}");
        assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
        assert!(error.to_string().contains("ip link"), "{error}");
    }
    let loopback = refused("lo");
    assert!(matches!(loopback, Error::BadInterface { .. }), "{loopback}");
    assert!(loopback.to_string().contains("`lo`"), "{loopback}");
}

#[test]
fn a_node_leaves_nothing_behind() {
    let fds = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    // In a process of its own, as the other tests have nodes as well.
    if std::env::var_os("VIADUCT_TEST_ALONE").is_none() {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["a_node_leaves_nothing_behind", "--test-threads", "1"])
            .env("VIADUCT_TEST_ALONE", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    drop(NetNode::udp("127.0.0.1:0".parse().unwrap(), &Options::default()).unwrap());
    let before = (fds(), threads());
    for _ in 0..20 {
        drop(NetNode::udp("127.0.0.1:0".parse().unwrap(), &Options::default()).unwrap());
    }
    assert_eq!((fds(), threads()), before);
}
