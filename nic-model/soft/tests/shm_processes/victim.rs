//! A process that is killed in the middle of something.

use port::DmaMemory;
use port::clan::{AccessRights, ClanEvent, ClanPeer, ClanPort, DmaRequest};

use super::echo::{Client, cookie_of, memory, next, node, with_cookie, with_queue};
use super::peer::{BOUND, Setting, say};

/// What it does, until it is killed.
pub(crate) const MODES: [&str; 6] = ["store", "dma", "tripwire", "attach", "revoke", "idle"];
/// Bytes of the regions.
pub(crate) const BYTES: usize = 1 << 20;

/// Arguments: what it does; whether its memory is mapped. It has traffic with a server as well.
pub(crate) fn run(setting: &Setting) {
    let node = node(&setting.folder, "victim");
    let (mode, is_mapped): (_, bool) = (setting.arguments[0].as_str(), setting.number(1));
    let mut client = Client::new(&node, "third", is_mapped, false);
    std::thread::spawn(move || {
        loop {
            client.round();
        }
    });
    let (port, queue, _) = with_queue(&node);
    let survivor = ClanPeer { host: b"survivor".to_vec(), domain: 0 };
    let region = port.register(&memory(&port, is_mapped, BYTES)).unwrap();
    let open = || port.open(region, &survivor, AccessRights::ALL).unwrap();
    port.send_message(&survivor, &with_cookie(0, open())).unwrap();
    let theirs = match next(&port, &*queue, BOUND) {
        Some(ClanEvent::Message { message, .. }) => cookie_of(&message),
        other => panic!("{other:?}"),
    };
    let attach = || port.attach(&survivor, theirs).unwrap();
    let mut remote = attach();
    let mut dma = port.dma_queue(queue.number()).unwrap();
    let source = DmaMemory::new(BYTES / 2).unwrap();
    say("ready");
    for i in 1.. {
        match mode {
            "store" => remote.store(64 + i % 64 * 64, &[i; 8]).unwrap(),
            "dma" => {
                let request = DmaRequest { offset: 4096, source: source.clone(), notify: Some(i) };
                dma.submit(&mut *remote, request).unwrap();
                while let Some(event) = queue.poll() {
                    assert_eq!(event, ClanEvent::Dma { tag: i, result: Ok(()) });
                }
            }
            "tripwire" => remote.store(0, &[i]).unwrap(),
            "attach" => attach().store(8, &[i]).unwrap(),
            "revoke" => {
                let cookie = open();
                // It is lost if there is no room for it.
                let _ = port.send_message(&survivor, &with_cookie(1, cookie));
                (0..i % 8).for_each(|_| std::thread::yield_now());
                port.revoke(cookie).unwrap();
            }
            _ => std::thread::sleep(core::time::Duration::from_millis(1)),
        }
    }
}
