//! How connections come to VIA: what a descriptor is, who claims a connection, and when both ends have
//! offered it.

use core::ffi::c_int;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use port::process::without_signals;
use port::sync::lock;
use port::{fork, trust};
use sovia::{TcpListener, TcpStream};

use crate::borrowed::Borrowed;
use crate::claim::{self, Claim};
use crate::epoll;
use crate::errno;
use crate::kernel;
use crate::key::Key;
use crate::leaving;
use crate::link::{self, Link};
use crate::log;
use crate::patience::until;
use crate::service::{self, Refused, Request, Service};
use crate::socket::{self, Socket};
use crate::status;
use crate::table::{self, Kind};

/// How long the other side has to accept a connection that it has offered.
const ACCEPT: Duration = Duration::from_secs(5);
/// How long the first call of a program that asks for VIA waits for the other end.
const ASKED: Duration = Duration::from_millis(200);
/// How long who has a connection has to give it away.
const GIVE: Duration = Duration::from_secs(10);

/// Why connections to other machines stay TCP.
const LEAVES: &str = "it leaves this machine";
/// Why those whose other end has another revision stay TCP.
const DIFFERS: &str = "its other end has another version of the library";
/// Why those that a second process uses stay TCP.
const SEVERAL: &str = "several processes use it";

/// What goes to the thread that offers, and the process that has it.
static OFFERS: Mutex<Option<(u32, Sender<Arc<Socket>>)>> = Mutex::new(None);

/// The connection of a descriptor, if it may have a link. Looks what the descriptor is if nobody has.
#[inline]
pub(crate) fn find(fd: c_int) -> Option<Borrowed<Socket>> {
    match table::kind(fd) {
        Kind::Other => None,
        Kind::Held => table::socket(fd),
        kind => look(fd, kind == Kind::New),
    }
}

#[cold]
fn look(fd: c_int, is_new: bool) -> Option<Borrowed<Socket>> {
    errno::kept(|| look_at(fd, is_new))
}

fn look_at(fd: c_int, is_new: bool) -> Option<Borrowed<Socket>> {
    if !kernel::is_tcp(fd) || kernel::listens(fd) {
        table::note(fd, Kind::Other);
        return None;
    }
    let (local, remote) = kernel::names(fd)?;
    let counts = kernel::info(fd).is_some();
    if !counts || !Key::is_local(&local, &remote) {
        table::note(fd, Kind::Other);
        status::count_stay(LEAVES);
        log::verbose(format_args!("{local} to {remote} stays TCP: {LEAVES}"));
        return None;
    }
    let socket = socket::of_key(Key::new(local, remote), fd, is_new, table::asks(fd));
    socket.show();
    table::set_socket(fd, socket);
    table::socket(fd)
}

/// The program waits for a descriptor: one that another process may have, too, is claimed before.
pub(crate) fn waits_for(fd: c_int) {
    let socket = match table::kind(fd) {
        Kind::Other | Kind::New => None,
        Kind::Held => table::socket(fd),
        Kind::Unknown => look(fd, false),
    };
    if let Some(socket) = socket
        && socket.may_be_shared()
        && socket.link().is_none()
    {
        claim_or_stay(&socket);
    }
}

/// A call of the program on a connection without a link.
pub(crate) fn count(socket: &Arc<Socket>) {
    if socket.may_be_shared() {
        claim_or_stay(socket);
    }
    if socket.count() {
        want(socket);
        if socket.is_asked_for() {
            await_link(socket);
        }
    }
}

/// Waits for a while until a connection that the program has asked for can move: its other end is claimed
/// with the first call of that program, if it has the library, and has the stream if it calls on, or waits
/// here as well.
#[cold]
fn await_link(socket: &Arc<Socket>) {
    let _ = until(ASKED, || {
        want(socket);
        match socket.link() {
            Some(link) => link.is_common(),
            None => !socket.may_move(),
        }
    });
}

/// Claims a connection, and offers it once the other end has been claimed, too: a process whose connections
/// stay by TCP has neither the device nor its threads.
#[cold]
fn want(socket: &Arc<Socket>) {
    if let Some(why) = service::why_useless() {
        return socket.stay(&why);
    }
    if !socket.is_claimed() && !claim_own(socket) {
        return;
    }
    // Before the look: whoever claims the other end later finds that this one is claimed.
    let is_wanted = socket.wants() && claim::holder(&socket.key.reversed()).is_some();
    if is_wanted && socket.is_wanted() {
        offer(Arc::clone(socket));
    }
}

/// Makes sure that nobody else moves a connection to VIA.
#[cold]
fn claim_or_stay(socket: &Socket) {
    socket.begin();
    if !socket.is_claimed() && claim_own(socket) {
        socket.leave_unread(claim::take_unread(&socket.key));
    }
    socket.settle();
}

/// Claims a connection for this process. False: it stays by TCP.
fn claim_own(socket: &Socket) -> bool {
    match claim::claim(&socket.key, &Claim::own(None)) {
        Ok(None) => {
            socket.claimed();
            return true;
        }
        Ok(Some(_)) => take_over(socket),
        Err(error) => {
            socket.stay(&error.to_string());
            service::has_no_folder(&error);
        }
    }
    false
}

/// Has who else has a connection go back to TCP, for good.
fn take_over(socket: &Socket) {
    socket.stay(SEVERAL);
    if let Err(error) = claim::mark_shared(&socket.key) {
        service::has_no_folder(&error);
    }
    socket.claimed();
    let other = claim::holder(&socket.key).filter(|claim| !claim.is_own());
    if let Some(host) = other.and_then(|claim| claim.host)
        && let Err(why) = ask_for(&host, &socket.key)
        && claim::holder(&socket.key).is_some_and(|claim| !claim.is_own())
        && let Some(fd) = table::descriptors(socket).first()
    {
        // What comes by TCP is not what comes next.
        leaving::reset(socket, *fd, &format!("the other process does not give it: {why}"));
    }
    socket.leave_unread(claim::take_unread(&socket.key));
}

/// Asks the process that has a connection to leave it to TCP, and waits until it has.
///
/// # Errors
/// Why it has not.
fn ask_for(host: &[u8], key: &Key) -> Result<(), String> {
    let stream = get()?.ask(Request::Give, key, host).map_err(|why| why.to_string())?;
    let is_given = until(GIVE, || Link::first(&stream).is_some());
    if is_given { Ok(()) } else { Err("it does not answer".to_owned()) }
}

/// This process restricts itself: nothing of it goes by VIA any more, and nobody else moves what it has.
pub(crate) fn confine() {
    service::give_up();
    let descriptors = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<c_int> =
        descriptors.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in numbers {
        if let Some(socket) = find(fd) {
            leaving::keep(&socket, fd, service::RESTRICTS);
            take_over(&socket);
            socket.settle();
        }
    }
    trust::confine();
}

fn get() -> Result<Arc<Service>, String> {
    Service::get(serve, leaving::at_exit)
}

/// Offers a connection to its other end, by and by.
fn offer(socket: Arc<Socket>) {
    let generation = fork::generation();
    // Not held while a thread is started: nobody forks meanwhile.
    let offers = fork::without_forks(|| {
        let offers = &mut *lock(&OFFERS);
        match offers {
            Some((of, sender)) if *of == generation => Ok(sender.clone()),
            _ => {
                let (sender, receiver) = channel();
                // The parent's, if there is one: its locks are not this process's.
                core::mem::forget(offers.replace((generation, sender.clone())));
                Err((sender, receiver))
            }
        }
    });
    let sender = match offers {
        Ok(sender) => sender,
        Err((sender, receiver)) => {
            let thread = std::thread::Builder::new().name("sovia offers".to_owned());
            let run = move || receiver.into_iter().for_each(|socket| offer_now(&socket));
            if without_signals(|| thread.spawn(run)).is_err() {
                return service::has_no_device("no thread to be had");
            }
            sender
        }
    };
    let _ = sender.send(socket);
}

fn offer_now(socket: &Arc<Socket>) {
    if let Err(why) = try_offer(socket) {
        socket.stay(&why);
    }
}

fn try_offer(socket: &Arc<Socket>) -> Result<(), String> {
    let service = get().inspect_err(|why| service::has_no_device(why))?;
    let key = socket.key;
    let held = claim::claim(&key, &Claim::own(Some(service.host()))).map_err(|error| {
        service::has_no_folder(&error);
        error.to_string()
    })?;
    if held.is_some() {
        take_over(socket);
        return Ok(());
    }
    socket.offered();
    if !socket.is_held() {
        // The program has closed it meanwhile, when there was no claim to take back.
        socket.release();
        return Err("it is closed".to_owned());
    }
    if claim::is_shared(&key) {
        return Err(SEVERAL.to_owned());
    }
    // Before the look: whoever offers it later finds that this side connects, or finds no offer.
    socket.set_connecting(true);
    let connected = match claim::holder(&key.reversed()).and_then(|claim| claim.host) {
        Some(host) => connect(&service, socket, &host),
        None => Ok(()),
    };
    socket.set_connecting(false);
    connected
}

/// Connects an offered connection to its other end, which has offered it, too.
fn connect(service: &Service, socket: &Socket, host: &[u8]) -> Result<(), String> {
    if socket.link().is_some() {
        return Ok(());
    }
    let stream = service.ask(Request::Link, &socket.key, host).map_err(|why| why.to_string())?;
    let mut first = None;
    let _ = until(ACCEPT, || {
        first = Link::first(&stream);
        first.is_some()
    });
    match first {
        // The other side's own connection comes.
        Some(link::NOTHING) => Ok(()),
        Some(first) => {
            let _ = attach(socket, Arc::new(Link::new(stream, first, socket.record())));
            Ok(())
        }
        None => Err("the other side does not answer".to_owned()),
    }
}

/// Does what other processes ask for.
fn serve(listener: &TcpListener) {
    claim::sweep();
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => return log::verbose(format_args!("no more requests: {error}")),
        };
        let (request, other) = match Request::parse(&stream.peer().discriminator) {
            Ok(found) => found,
            Err(Refused::Malformed) => {
                log::warn("a request that is none was refused");
                continue;
            }
            Err(Refused::Revision(other)) => {
                differs(&other);
                continue;
            }
        };
        match request {
            Request::Link => accept(stream, &other),
            Request::Stop => {
                if let Some(socket) = socket::by_key(&other.reversed()) {
                    leaving::stop_sending(&socket);
                }
            }
            Request::Give => give(stream, other),
        }
    }
}

/// The other end of an offered connection is of another revision of this library.
fn differs(other: &Key) {
    let socket = socket::by_key(&other.reversed());
    if let Some(socket) = socket.filter(|socket| socket.link().is_none()) {
        socket.stay(DIFFERS);
    }
}

/// The other end of an offered connection has connected.
fn accept(stream: TcpStream, other: &Key) {
    let Some(socket) = socket::by_key(&other.reversed()) else { return };
    // If both ends connect, it is the lower one that has its way.
    if socket.is_connecting() && socket.key.is_lower() {
        return;
    }
    let _ = attach(&socket, Arc::new(Link::new(stream, link::NOTHING, socket.record())));
}

/// Another process uses a connection of this one. The end of `stream` says that it can.
fn give(stream: TcpStream, key: Key) {
    let give = move || {
        if let Some(socket) = socket::by_key(&key) {
            leaving::give_to_other(&socket, SEVERAL);
        }
        drop(stream);
    };
    let thread = std::thread::Builder::new().name("sovia give".to_owned());
    let _ = without_signals(|| thread.spawn(give));
}

/// Gives a connection a link. False: it stays by TCP.
fn attach(socket: &Socket, link: Arc<Link>) -> bool {
    if !socket.attach(Arc::clone(&link)) {
        return false;
    }
    let can_follow = table::descriptors(socket).into_iter().all(epoll::linked);
    // Of two threads that read by TCP nobody knows which one gets the marker.
    if !can_follow || socket.readers() > 1 || !link.share() {
        link.close_sending();
        socket.stay("it is used in ways that VIA is not");
        return false;
    }
    if let Some(record) = socket.record() {
        record.link();
    }
    log::verbose(format_args!("{} goes by VIA", socket.key));
    true
}
