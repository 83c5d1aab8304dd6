//! CLAN: event queues and tripwires.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use port::clan::{Tripwire, wait_event};
use port::sync::lock;

use crate::clan::abi::{self, Event};
use crate::clan::fault::{Code, Fault, argument, guard};
use crate::clan::object::{
    PORTS, QUEUES, QueueObject, REGIONS, TRIPWIRES, TripwireObject, get, insert, remove,
};
use crate::handle::Handle;
use crate::pointer::Out;

/// Time between two looks of a waiting thread whether its queue exists.
const LOOK_NS: u64 = 100_000_000;

#[unsafe(export_name = "clan_create_queue")]
extern "C" fn create_queue(port: Handle, out: Out<Handle>) -> c_int {
    guard("clan_create_queue", || {
        let owner = get(&PORTS, port, "port")?;
        argument(out.check(), "queue")?;
        let queue = owner.port.event_queue()?;
        let (number, is_destroyed) = (queue.number(), AtomicBool::new(false));
        let object = QueueObject { owner: Arc::clone(&owner), queue, is_destroyed };
        let inserted = insert(&QUEUES, &owner, object);
        let handle = inserted.inspect_err(|_| drop(owner.port.destroy_event_queue(number)))?;
        argument(out.set(handle), "queue")
    })
}

#[unsafe(export_name = "clan_destroy_queue")]
extern "C" fn destroy_queue(queue: Handle) -> c_int {
    guard("clan_destroy_queue", || {
        let object = remove(&QUEUES, queue, "queue")?;
        let owner = &object.owner;
        owner.disown(queue);
        object.is_destroyed.store(true, Ordering::Release);
        owner.clear_tripwires(|tripwire| tripwire.queue == queue);
        owner.port.destroy_event_queue(object.queue.number())?;
        owner.forget_tripwires(|tripwire| tripwire.queue == queue);
        owner.port.wake();
        Ok(())
    })
}

#[unsafe(export_name = "clan_set_message_queue")]
extern "C" fn set_message_queue(queue: Handle) -> c_int {
    guard("clan_set_message_queue", || {
        let object = get(&QUEUES, queue, "queue")?;
        Ok(object.owner.port.set_message_queue(object.queue.number())?)
    })
}

#[unsafe(export_name = "clan_poll")]
extern "C" fn poll(queue: Handle, event: Out<Event>) -> c_int {
    guard("clan_poll", || {
        argument(event.check(), "event")?;
        let object = get(&QUEUES, queue, "queue")?;
        let polled = object.queue.poll().ok_or_else(Fault::no_event)?;
        argument(event.set(Event::of(&polled)?), "event")
    })
}

#[unsafe(export_name = "clan_wait")]
extern "C" fn wait(queue: Handle, timeout_ms: u32, event: Out<Event>) -> c_int {
    guard("clan_wait", || {
        argument(event.check(), "event")?;
        let object = get(&QUEUES, queue, "queue")?;
        let (port, bound) = (&*object.owner.port, abi::timeout_ns(timeout_ms));
        let start = port.now_ns();
        loop {
            let left = bound.saturating_sub(port.now_ns().saturating_sub(start));
            let left = if bound == u64::MAX { LOOK_NS } else { left };
            if let Some(waited) = wait_event(port, &*object.queue, left.min(LOOK_NS)) {
                return argument(event.set(Event::of(&waited)?), "event");
            }
            object.check()?;
            if left == 0 {
                let text = format!("no event in {timeout_ms} ms");
                return Err(Fault::new(Code::Timeout, text));
            }
        }
    })
}

#[unsafe(export_name = "clan_set_tripwire")]
extern "C" fn set_tripwire(
    region: Handle,
    offset: u64,
    on: u32,
    tag: u64,
    queue: Handle,
    out: Out<Handle>,
) -> c_int {
    guard("clan_set_tripwire", || {
        let (watched, events) = (get(&REGIONS, region, "region")?, get(&QUEUES, queue, "queue")?);
        argument(out.check(), "tripwire")?;
        let owner = &watched.owner;
        owner.check_same(&events.owner, "region and queue")?;
        let tripwire = Tripwire {
            region: watched.number,
            offset,
            on: abi::accesses(on, abi::READ | abi::WRITE | abi::ONCE)?,
            once: on & abi::ONCE != 0,
            queue: events.queue.number(),
            tag,
        };
        let _setting = lock(&owner.tripwires);
        let number = owner.port.set_tripwire(&tripwire)?;
        let object = TripwireObject { owner: Arc::clone(owner), number, region, queue };
        let inserted = insert(&TRIPWIRES, owner, object);
        let handle = inserted.inspect_err(|_| drop(owner.port.clear_tripwire(number)))?;
        argument(out.set(handle), "tripwire")
    })
}

#[unsafe(export_name = "clan_clear_tripwire")]
extern "C" fn clear_tripwire(tripwire: Handle) -> c_int {
    guard("clan_clear_tripwire", || {
        let owner = Arc::clone(&get(&TRIPWIRES, tripwire, "tripwire")?.owner);
        let _setting = lock(&owner.tripwires);
        let object = remove(&TRIPWIRES, tripwire, "tripwire")?;
        owner.disown(tripwire);
        Ok(owner.port.clear_tripwire(object.number)?)
    })
}
