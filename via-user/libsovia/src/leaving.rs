//! How connections leave VIA: for another process that uses them, for another program in this process,
//! and at the end of the program.

use core::ffi::c_int;
use std::time::Duration;

use port::sync::lock;

use crate::claim;
use crate::epoll;
use crate::errno;
use crate::kernel;
use crate::key::Key;
use crate::log;
use crate::patience::until;
use crate::service::{self, Request};
use crate::socket::{self, Socket};
use crate::status;
use crate::table;

/// How long the other side has to leave VIA, too.
const LEAVE: Duration = Duration::from_secs(5);
/// How long streams have to end at the end of the program.
const FINISH: Duration = Duration::from_secs(2);

/// Has a connection go by TCP for good, for another process that asks for it.
pub(crate) fn give_to_other(socket: &Socket, why: &str) {
    // Who closes it, which is when it has no descriptor here, gives it as well.
    match table::descriptors(socket).first() {
        Some(fd) => give(socket, *fd, why),
        None => drop(lock(socket.leaving())),
    }
}

/// The other end leaves VIA: this one sends by TCP again.
pub(crate) fn stop_sending(socket: &Socket) {
    if let (Some(link), Some(fd)) = (socket.link(), table::descriptors(socket).first()) {
        socket.note("its other end goes by TCP again");
        link.stop_sending(*fd);
    }
}

/// The program closes a descriptor.
pub(crate) fn close(fd: c_int) {
    errno::kept(|| forget(fd));
}

fn forget(fd: c_int) {
    epoll::forget(fd);
    if let Some(socket) = table::forget(fd) {
        socket.stay_unmoved();
        if socket.may_be_shared() {
            // Who has it, too, goes on by TCP.
            give(&socket, fd, "this process is done with it, and others may not be");
        }
        if is_unread(&socket) {
            kernel::reset(fd);
        }
        socket.remove();
    }
}

/// Whether something came by VIA that is not read. A connection that is closed then is reset, as by TCP; the
/// kernel does not know of it.
fn is_unread(socket: &Socket) -> bool {
    socket.link().is_some_and(|link| link.has_unread())
}

/// Has the other end of a connection not send by VIA any more.
fn stop_other_end(key: &Key) {
    let other = claim::holder(&key.reversed()).and_then(|claim| claim.host);
    if let (Some(service), Some(host)) = (service::current(), other) {
        let _ = service.ask(Request::Stop, key, &host);
    }
}

/// Has a connection go by TCP for good. Gives what has come by VIA and is not read. If that cannot be all,
/// the connection is reset: nobody may take what comes by TCP for what comes next.
fn leave_via(socket: &Socket, fd: c_int) -> Vec<u8> {
    let mut unread = Vec::new();
    let Some(link) = socket.link() else { return unread };
    link.stop_sending(fd);
    stop_other_end(&socket.key);
    let mut drained = Ok(false);
    let _ = until(LEAVE, || {
        drained = link.drain(fd, &mut unread);
        drained != Ok(false)
    });
    let why = match drained {
        Ok(true) => {
            // What is left of the stream is ended by its own thread.
            socket.leave();
            return unread;
        }
        Ok(false) => "the other side does not leave VIA".to_owned(),
        Err(error) => std::io::Error::from_raw_os_error(error).to_string(),
    };
    reset(socket, fd, &why);
    unread
}

/// Ends a connection some of whose bytes are lost: nobody takes what follows for what comes next.
pub(crate) fn reset(socket: &Socket, fd: c_int, why: &str) {
    kernel::reset(fd);
    log::warn(format_args!("{}: {why}: the connection is reset", socket.key));
}

/// Has a connection go by TCP for good, for another process that uses it, or another program.
pub(crate) fn give(socket: &Socket, fd: c_int, why: &str) {
    socket.stay(why);
    let _leaving = lock(socket.leaving());
    let unread = leave_via(socket, fd);
    if !unread.is_empty()
        && let Err(error) = claim::leave_unread(&socket.key, &unread)
    {
        let (lost, folder) = (unread.len(), sovia::preload::folder());
        let why = format!("{lost} bytes cannot be left in {}: {error}", folder.display());
        reset(socket, fd, &why);
    }
}

/// The same for this program, which does something that VIA cannot.
pub(crate) fn keep(socket: &Socket, fd: c_int, why: &str) {
    socket.stay(why);
    if socket.link().is_none() {
        return;
    }
    let _leaving = lock(socket.leaving());
    let unread = leave_via(socket, fd);
    socket.leave_unread(unread);
}

/// All connections end as the program does. The other sides have what was sent.
pub(crate) fn end_all() {
    let sockets = socket::all();
    let had_links = sockets.iter().any(|socket| socket.link().is_some());
    for socket in sockets.iter().filter(|socket| socket.may_be_shared()) {
        give_to_other(socket, "this process ends, and others may use it");
    }
    for socket in &sockets {
        if is_unread(socket)
            && let Some(fd) = table::descriptors(socket).first()
        {
            kernel::reset(*fd);
        }
        socket.leave();
    }
    if had_links && let Some(service) = service::current() {
        let _ = service.finish(FINISH);
    }
    sockets.iter().for_each(|socket| socket.release());
    status::end();
}

/// All connections go by TCP for good, for a program that takes this one's place.
pub(crate) fn give_all() {
    let sockets = socket::all();
    let linked: Vec<_> = sockets.iter().filter(|socket| socket.link().is_some()).collect();
    linked.iter().for_each(|socket| give_to_other(socket, "another program takes its place"));
    if !linked.is_empty()
        && let Some(service) = service::current()
    {
        let _ = service.finish(FINISH);
    }
}

/// The program ends.
pub(crate) extern "C" fn at_exit() {
    end_all();
}
