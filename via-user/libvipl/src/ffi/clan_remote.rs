//! CLAN: access to others' regions, by the processor and by DMA.

use core::ffi::c_int;
use std::sync::{Arc, Mutex};

use port::clan::DmaRequest;

use crate::clan::abi::{self, Peer, STORE_WORDS};
use crate::clan::fault::{Code, Fault, argument, guard};
use crate::clan::object::{
    DMAS, DmaObject, PORTS, QUEUES, REMOTES, RemoteObject, get, insert, remove, with,
};
use crate::handle::Handle;
use crate::pointer::{In, Out, Place};

use super::clan_region::{cookie_of, memory_of};

#[unsafe(export_name = "clan_attach")]
extern "C" fn attach(port: Handle, peer: In<Peer>, cookie: u64, out: Out<Handle>) -> c_int {
    guard("clan_attach", || {
        let owner = get(&PORTS, port, "port")?;
        argument(out.check(), "remote")?;
        let (peer, cookie) = (argument(peer.get(), "owner")?.get()?, cookie_of(cookie)?);
        let remote = owner.port.attach(&peer, cookie).map_err(|error| match error {
            port::Error::NoSuch { what: "cookie", .. } => {
                let host = String::from_utf8_lossy(&peer.host);
                let bits = cookie.to_bits();
                let why = "is void, or was given to another domain";
                Fault::new(Code::Refused, format!("cookie {bits:#x} of node '{host}' {why}"))
            }
            other => other.into(),
        })?;
        let remote = Mutex::new(remote);
        let object = RemoteObject { owner: Arc::clone(&owner), remote, peer, cookie };
        argument(out.set(insert(&REMOTES, &owner, object)?), "remote")
    })
}

#[unsafe(export_name = "clan_detach")]
extern "C" fn detach(remote: Handle) -> c_int {
    guard("clan_detach", || {
        let object = remove(&REMOTES, remote, "remote")?;
        object.owner.disown(remote);
        Ok(())
    })
}

#[unsafe(export_name = "clan_query_remote")]
extern "C" fn query_remote(remote: Handle, length: Out<u64>, is_mapped: Out<c_int>) -> c_int {
    guard("clan_query_remote", || {
        argument(length.check(), "length")?;
        argument(is_mapped.check(), "is_mapped")?;
        let known = with(&REMOTES, remote, "remote", |object| {
            let remote = object.access();
            Ok((remote.length(), remote.is_mapped()))
        })?;
        argument(length.set(known.0), "length")?;
        argument(is_mapped.set(known.1.into()), "is_mapped")
    })
}

#[unsafe(export_name = "clan_store")]
extern "C" fn store(remote: Handle, offset: u64, words: In<u64>, count: usize) -> c_int {
    guard("clan_store", || {
        if !(1..=STORE_WORDS).contains(&count) {
            return Err(Fault::invalid(format!("count is {count}: 1 to {STORE_WORDS}")));
        }
        if !offset.is_multiple_of(8) {
            return Err(Fault::invalid(format!("offset {offset:#x} is no multiple of 8")));
        }
        let words: [u64; STORE_WORDS] = argument(words.words(count), "words")?;
        with(&REMOTES, remote, "remote", |object| {
            let stored = object.access().store(offset, &words[..count]);
            stored.map_err(|error| object.fault(error, (offset, 8 * count), true))
        })
    })
}

#[unsafe(export_name = "clan_write")]
extern "C" fn write(remote: Handle, offset: u64, source: Place, bytes: usize) -> c_int {
    guard("clan_write", || {
        let source = memory_of(source, bytes, "source")?;
        with(&REMOTES, remote, "remote", |object| {
            let written = object.access().write(offset, &source);
            written.map_err(|error| object.fault(error, (offset, bytes), true))
        })
    })
}

#[unsafe(export_name = "clan_read")]
extern "C" fn read(
    remote: Handle,
    offset: u64,
    target: Place,
    bytes: usize,
    timeout_ms: u32,
) -> c_int {
    guard("clan_read", || {
        let target = memory_of(target, bytes, "target")?;
        with(&REMOTES, remote, "remote", |object| {
            let read = object.access().read(offset, &target, abi::timeout_ns(timeout_ms));
            read.map_err(|error| object.fault(error, (offset, bytes), false))
        })
    })
}

#[unsafe(export_name = "clan_create_dma")]
extern "C" fn create_dma(queue: Handle, out: Out<Handle>) -> c_int {
    guard("clan_create_dma", || {
        let events = get(&QUEUES, queue, "queue")?;
        argument(out.check(), "dma")?;
        let owner = &events.owner;
        let queue = Mutex::new(owner.port.dma_queue(events.queue.number())?);
        let object = DmaObject { owner: Arc::clone(owner), queue };
        argument(out.set(insert(&DMAS, owner, object)?), "dma")
    })
}

#[unsafe(export_name = "clan_destroy_dma")]
extern "C" fn destroy_dma(dma: Handle) -> c_int {
    guard("clan_destroy_dma", || {
        let object = remove(&DMAS, dma, "dma")?;
        object.owner.disown(dma);
        Ok(())
    })
}

#[unsafe(export_name = "clan_dma_write")]
extern "C" fn dma_write(
    dma: Handle,
    remote: Handle,
    offset: u64,
    source: Place,
    bytes: usize,
    notify: c_int,
    tag: u64,
) -> c_int {
    guard("clan_dma_write", || {
        let source = memory_of(source, bytes, "source")?;
        let request = DmaRequest { offset, source, notify: (notify != 0).then_some(tag) };
        with(&DMAS, dma, "dma", |dma| {
            with(&REMOTES, remote, "remote", |object| {
                dma.owner.check_same(&object.owner, "dma and remote")?;
                Ok(dma.queue().submit(object.access(), request)?)
            })
        })
    })
}
