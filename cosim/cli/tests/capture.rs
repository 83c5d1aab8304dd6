//! Frames that were captured, and what Wireshark shows of them. What needs `tshark` says so and is
//! left out where there is none: `cargo xtask setup --only capture` installs it.

#![allow(clippy::print_stderr, reason = "a test that is left out says so")]

mod served;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use cosim::simulation::network::capture::Capture;
use nic_model::device::Beat;
use nic_model::frame::Frame;
use nic_model::link::Wire;
use nic_regs::frame::{Header, RdmaHeader, Type, VERSION, flag};
use nic_regs::vi::StopReason;
use port::sync::lock;

use served::Served;

const WIRESHARK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../wireshark");

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// What tshark prints of a file. None: there is no tshark.
fn tshark(path: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("tshark");
    // Nobody's own settings.
    command.env("HOME", env!("CARGO_TARGET_TMPDIR")).env_remove("XDG_CONFIG_HOME");
    for name in ["viaduct.lua", "viaduct_net.lua"] {
        command.arg("-X").arg(format!("lua_script:{WIRESHARK}/{name}"));
    }
    command.arg("-r").arg(path).args(arguments);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: no tshark");
            return None;
        }
        Err(error) => panic!("tshark: {error}"),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.contains("Lua"), "{errors}");
    Some(String::from_utf8(output.stdout).expect("UTF-8"))
}

/// The column Info of each frame.
fn infos(path: &Path) -> Option<Vec<String>> {
    let text = tshark(path, &["-o", r#"gui.column.format:"Info","%i""#])?;
    Some(text.lines().map(|line| line.trim().to_owned()).collect())
}

/// Captures frames that node 3 sends to node 5.
fn capture(path: &Path, frames: impl IntoIterator<Item = Vec<u64>>) {
    let capture = Capture::create(path, &[3, 5]).expect("a file");
    let network = capture.tap(Arc::new(Mutex::new(Wire::new(1))));
    let mut now = 0;
    for beats in frames {
        let last = beats.len() - 1;
        for (at, data) in beats.into_iter().enumerate() {
            lock(&network).send(0, now, Beat { data, last: at == last });
            now += 1;
        }
    }
    capture.frames().expect("it was written");
}

fn frame(kind: u8, flags: u8, word: u32, payload: &[u8]) -> Frame {
    let header = Header {
        version: VERSION,
        kind,
        length: u16::try_from(payload.len()).expect("short"),
        src_node: 3,
        dst_node: 5,
        tag: 0xbeef,
        dst_vi: 17,
        src_vi: 1023,
        connection: 7,
        flags,
        credit: 64,
        sequence: 0x0102,
        acknowledgement: 9,
        word,
    };
    Frame { header, payload: payload.to_vec() }
}

/// The names of types and reasons are those of `nic_regs`.
#[test]
fn wireshark_shows_the_names_of_the_contract() {
    let path = file("names.pcapng");
    let types = (0..=255).map(|kind| frame(kind, 0, 0, &[]));
    let refusals = (0..=12).map(|reason| frame(Type::ViRefuse as u8, 0, reason, &[]));
    capture(&path, types.chain(refusals).map(|frame| frame.to_beats()));
    let Some(infos) = infos(&path) else { return };
    assert_eq!(infos.len(), 256 + 13);
    for (kind, info) in (0..=255).zip(&infos) {
        let name = Type::from_bits(kind).map_or(format!("type {kind}"), |kind| format!("{kind:?}"));
        assert_eq!(info.split(',').next(), Some(name.as_str()), "{info}");
    }
    for (reason, info) in (0..=12).zip(&infos[256..]) {
        let name = StopReason::from_bits(reason)
            .map_or(format!("reason {reason}"), |reason| format!("{reason:?}"));
        assert!(info.ends_with(&format!(", {name}")), "{info}");
    }
}

/// Frames in which every field is used, and malformed ones.
fn samples() -> Vec<Vec<u64>> {
    let [address, rest] = RdmaHeader { address: 0x7f00_1234_5678, handle: 0x42, total: 9000 }
        .to_beats()
        .map(u64::to_le_bytes);
    let write = [&address[..], &rest, &[0xaa; 5]].concat();
    let mut message = [0; 48];
    message[..12].copy_from_slice(&[2, 1, 0, 2, 4, 3, 2, 1, 36, 0, 0, 0]);
    let first = flag::FIRST | flag::SEQUENCED;
    let last = flag::LAST | flag::IMMEDIATE;
    let mut bad = frame(Type::Data as u8, last, 1, b"12345678").to_beats();
    bad[3] ^= 1;
    let mut long = frame(Type::Data as u8, last, 1, b"12345678");
    long.header.length = 9;
    vec![
        frame(Type::RdmaWrite as u8, first, 0, &write).to_beats(),
        frame(Type::Data as u8, first | flag::RECEPTION, 5000, &[1]).to_beats(),
        frame(Type::Data as u8, last, 0x99, &[1]).to_beats(),
        frame(Type::Message as u8, flag::SEQUENCED, 0, &message).to_beats(),
        frame(Type::ReadResponse as u8, flag::SEQUENCED, 77, &[1; 16]).to_beats(),
        frame(Type::Ack as u8, flag::NAK, 0, &[]).to_beats(),
        frame(Type::Syn as u8, 0, 0x1234, &[]).to_beats(),
        bad,
        long.to_beats(),
        vec![1],
    ]
}

#[test]
fn wireshark_shows_every_field_of_a_frame() {
    let path = file("fields.pcapng");
    capture(&path, samples());
    let Some(infos) = infos(&path) else { return };
    assert_eq!(
        infos,
        [
            "RdmaWrite, VI 1023 > 17, seq 258, ack 9, 21 bytes, 9000 bytes in all [FIRST]",
            "Data, VI 1023 > 17, seq 258, ack 9, 1 bytes [FIRST RECEPTION]",
            "Data, VI 1023 > 17, message 1.2, ack 9, 1 bytes [LAST IMMEDIATE]",
            "Message, seq 258, ack 9, 48 bytes, Request 1/2",
            "ReadResponse, VI 1023 > 17, seq 258, ack 9, 16 bytes",
            "Ack, ack 9 [NAK]",
            "Syn",
            "Data, VI 1023 > 17, message 1.2, ack 9, 8 bytes [LAST IMMEDIATE] [bad CRC]",
            "Data, VI 1023 > 17, message 1.2, ack 9, 8 bytes [LAST IMMEDIATE] [bad length]",
            "[less than a header]",
        ]
    );
    let fields = [
        "version",
        "type",
        "length",
        "source",
        "destination",
        "tag",
        "destination_vi",
        "source_vi",
        "connection",
        "flags",
        "credit",
        "sequence",
        "acknowledgement",
        "rdma.address",
        "rdma.handle",
        "rdma.total",
        "data",
        "padding",
    ];
    let shown = |filter: &str, fields: &[&str]| {
        let named: Vec<String> = fields.iter().map(|name| format!("viaduct.{name}")).collect();
        let mut arguments = vec!["-Y", filter, "-T", "fields", "-E", "separator= "];
        named.iter().for_each(|name| arguments.extend(["-e", name]));
        tshark(&path, &arguments).expect("it was there before")
    };
    assert_eq!(
        shown("viaduct.type == 6 && viaduct.crc.good == 1", &fields).trim(),
        "1 6 21 3 5 0xbeef 17 1023 7 0x09 64 258 9 0x00007f0012345678 0x00000042 9000 aaaaaaaaaa \
         000000"
    );
    let words = ["total", "immediate", "remaining", "epoch", "link_payload", "cm.exchange"];
    let lines = shown("viaduct.crc.good == 1", &words);
    let words: Vec<&str> = lines.lines().map(str::trim).collect();
    assert_eq!(
        words,
        ["", "5000", "0x00000099", "0x01020304", "77", "", "0x00001234 9", "0x00000001"]
    );
}

#[test]
fn a_demo_shows_what_the_link_lost_and_corrupted() {
    let path = file("demo.pcapng");
    let arguments = ["demo", "--device", "model", "--loss", "0.1", "--corrupt", "0.1", "--message"];
    let output = Command::new(env!("CARGO_BIN_EXE_viaduct"))
        .args(arguments)
        .args(["1000", "--pcap", path.to_str().expect("UTF-8")])
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    // `link a to b   N frames, L lost, C corrupted`
    let numbers = text.lines().filter(|line| line.starts_with("link ")).map(|line| {
        let numbers = line.split_whitespace().filter_map(|word| word.parse::<usize>().ok());
        <[usize; 3]>::try_from(numbers.collect::<Vec<_>>()).expect(line)
    });
    let sum = |[a, b, c]: [usize; 3], [x, y, z]: [usize; 3]| [a + x, b + y, c + z];
    let [sent, lost, corrupted] = numbers.fold([0; 3], sum);
    assert!(sent > 0 && lost > 0 && corrupted > 0, "{text}");
    assert!(fs::metadata(&path).expect("the capture").len() > 10_000);
    let count = |filter: &str| Some(tshark(&path, &["-Y", filter])?.lines().count());
    let Some(all) = count("viaduct") else { return };
    let outward = count("frame.packet_flags_direction == 2").expect("as before");
    // What is on the wire when the demo ends does not arrive.
    assert!(
        outward >= sent && all <= 2 * outward - lost && all + 4 >= 2 * outward - lost,
        "{text}"
    );
    assert!(
        count("viaduct.crc.good == 0").is_some_and(|bad| bad <= corrupted && bad + 2 >= corrupted)
    );

    let output = Command::new(env!("CARGO_BIN_EXE_viaduct"))
        .args(["demo", "--device", "model", "--pcap", "/nonexistent/out.pcapng"])
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nonexistent/out.pcapng: "));
}

#[test]
fn a_simulator_captures_the_frames_of_its_programs() {
    let path = file("serve.pcapng");
    let served = Served::start("capture", &["--pcap", path.to_str().expect("UTF-8")]);
    let ports = [0, 1].map(|node| device::open(&served.url(node)).expect("it is free"));
    let received = || {
        let counters = ports[0].counters().expect("it is there");
        counters.iter().any(|(name, value)| *name == "FramesReceived" && *value > 0)
    };
    while !received() {}
    // The file is whole at any time.
    let Some(infos) = infos(&path) else { return };
    assert!(infos.iter().any(|info| info.starts_with("Syn")), "{infos:?}");
    drop((ports, served));
}

/// A VIPL program on a device, with a connected VI.
fn vi(device: &str, accepts: Option<&[u8]>) -> (vipl::Nic, vipl::Region, vipl::Vi) {
    let nic = vipl::Nic::open_with(device::open(device).expect("it opens"), vipl::Waiting::Poll);
    let tag = nic.create_ptag().expect("a tag");
    let memory = port::DmaMemory::new(8192).expect("memory");
    let region = nic.register_mem(&memory, vipl::MemAttributes::new(tag)).expect("registered");
    let attributes = vipl::ViAttributes::new(vipl::Reliability::Delivery, tag);
    let vi = nic.create_vi(attributes, None, None).expect("a VI");
    if let Some(host) = accepts {
        let own = vipl::NetAddress::new(&nic.query().local_address, b"");
        let remote = vipl::NetAddress::new(host, b"capture");
        vi.connect_request(&own, &remote, std::time::Duration::from_secs(10)).expect("connected");
    }
    (nic, region, vi)
}

#[test]
fn packets_of_udp_are_in_a_file_that_wireshark_reads() {
    let path = file("udp.pcapng");
    let url = format!("udp:?pcap={}", path.display());
    let (nic, region, server) = vi(&url, None);
    let descriptor = region.descriptor(0, 1).expect("inside");
    descriptor.prepare(&[region.segment(4096, 4096)], None).expect("well-formed");
    server.post_recv(&descriptor).expect("posted");
    let host = nic.query().local_address;
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let (_nic, region, client) = vi("udp:", Some(&host));
            let descriptor = region.descriptor(0, 1).expect("inside");
            descriptor.prepare(&[region.segment(4096, 3000)], Some(7)).expect("well-formed");
            client.post_send(&descriptor).expect("posted");
            client.send_wait(vipl::INFINITE).expect("sent");
            client.disconnect().expect("disconnected");
        });
        let own = vipl::NetAddress::new(&host, b"capture");
        let request =
            nic.connect_wait(&own, std::time::Duration::from_secs(10)).expect("a request");
        request.accept(&server).expect("accepted");
        server.recv_wait(std::time::Duration::from_secs(10)).expect("received");
        client.join().expect("no panic");
    });
    drop(server);
    nic.close();
    let Some(infos) = infos(&path) else { return };
    let has = |wanted: &str| infos.iter().any(|info| info.starts_with(wanted));
    for wanted in
        ["Message Request 1/", "Challenge", "Message Accept 1/1", "Send, VI 0, seq 0, ack 0,"]
    {
        assert!(has(wanted), "no {wanted}: {infos:#?}");
    }
    assert!(has("Stop, VI 0, seq 1, ack 0, Disconnected"), "{infos:#?}");
    let fields = ["version", "kind", "vi", "sequence", "operation", "part", "message", "total"];
    let named: Vec<String> = fields.iter().map(|name| format!("viaduct_net.{name}")).collect();
    let mut arguments = vec!["-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];
    arguments.extend(["-Y", "viaduct_net.operation == 1", "-T", "fields", "-E", "separator= "]);
    arguments.extend(["-e", "frame.packet_flags_direction"]);
    named.iter().for_each(|name| arguments.extend(["-e", name]));
    let more = ["viaduct_net.immediate", "ip.checksum.status", "udp.checksum.status"];
    more.iter().for_each(|name| arguments.extend(["-e", name]));
    let shown = tshark(&path, &arguments).expect("it was there before");
    // It arrives; both checksums are good.
    assert_eq!(shown.trim(), "0x00000001 1 1 0 0 1 0x07 0 3000 0x00000007 1 1");

    let refused = device::open("udp:?pcap=/nonexistent/out.pcapng").expect_err("no such folder");
    let text = refused.to_string();
    assert!(text.contains("no file of packets: /nonexistent/out.pcapng: No such file"), "{text}");
}
