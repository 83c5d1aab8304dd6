//! The name service of an open NIC.

mod common;

use host_driver::address::NodeAddress;
use vipl::{Cause, NetAddress, VipReturn};

#[test]
fn names_come_from_the_file_and_from_the_network() {
    let node = common::Node::new(3);
    let nic = &node.nic;
    let refused = |result: vipl::Result<NetAddress>| result.unwrap_err().code;
    assert_eq!(refused(nic.ns_host_by_name("node1", 0)), VipReturn::ErrorNameService);
    let of_node = |node| NetAddress::of_node(node, b"");
    let code = nic.ns_host_by_addr(&of_node(1)).unwrap_err().code;
    assert_eq!(code, VipReturn::ErrorNameService);
    nic.ns_shutdown().unwrap();

    let file = std::env::temp_dir().join(format!("viaduct-names-{}", std::process::id()));
    std::fs::write(&file, "1 left\n2 left right\n5 node1\n").unwrap();
    nic.ns_init(Some(&file)).unwrap();
    assert_eq!(nic.ns_host_by_name("Left", 0).unwrap(), of_node(1));
    assert_eq!(nic.ns_host_by_name("left", 1).unwrap(), of_node(2));
    assert_eq!(refused(nic.ns_host_by_name("left", 2)), VipReturn::ErrorNameService);
    // The file comes first, then the network's own names.
    assert_eq!(nic.ns_host_by_name("node1", 0).unwrap(), of_node(5));
    assert_eq!(nic.ns_host_by_name("node1", 1).unwrap(), of_node(1));
    assert_eq!(nic.ns_host_by_name("node7", 0).unwrap(), of_node(7));
    assert_eq!(refused(nic.ns_host_by_name("middle", 0)), VipReturn::ErrorNameService);
    assert_eq!(refused(nic.ns_host_by_name("", 0)), VipReturn::InvalidParameter);
    assert_eq!(refused(nic.ns_host_by_name(&"x".repeat(256), 0)), VipReturn::InvalidParameter);
    let name = |address: &NetAddress| nic.ns_host_by_addr(address);
    assert_eq!(name(&NetAddress::of_node(2, b"service")).unwrap(), "left");
    assert_eq!(name(&of_node(7)).unwrap(), "node7");
    assert_eq!(name(&of_node(64)).unwrap_err().code, VipReturn::ErrorNameService);
    let nowhere = NetAddress::new(&[10, 0, 0, 1], b"");
    assert_eq!(name(&nowhere).unwrap_err().code, VipReturn::ErrorNameService);
    assert_eq!(name(&NetAddress::default()).unwrap_err().code, VipReturn::InvalidParameter);
    // The own node has the machine's name, which is its address again.
    let own = name(&of_node(3)).unwrap();
    assert!(!own.contains('.') && !own.is_empty());
    assert_eq!(nic.ns_host_by_name(&own, 0).unwrap(), of_node(3));

    // A bad file says where, and changes nothing.
    std::fs::write(&file, "1 left\nx y\n").unwrap();
    let error = nic.ns_init(Some(&file)).unwrap_err();
    assert_eq!(error.code, VipReturn::ErrorNameService);
    assert!(matches!(&error.source, Some(Cause::Hosts(e)) if e.line == Some(2) && e.file == file));
    assert!(error.to_string().contains(", line 2: 'x' is no address"), "{error}");
    std::fs::remove_file(&file).unwrap();
    assert!(nic.ns_init(Some(&file)).is_err());
    assert_eq!(nic.ns_host_by_name("right", 0).unwrap(), of_node(2));
    nic.ns_shutdown().unwrap();
    assert_eq!(refused(nic.ns_host_by_name("right", 0)), VipReturn::ErrorNameService);
    nic.destroy_ptag(node.tag).unwrap();
    nic.clone().close();
    assert_eq!(nic.ns_init(None).unwrap_err().code, VipReturn::InvalidParameter);
    assert_eq!(refused(nic.ns_host_by_name("right", 0)), VipReturn::InvalidParameter);
    assert_eq!(nic.ns_shutdown().unwrap_err().code, VipReturn::InvalidParameter);
}
