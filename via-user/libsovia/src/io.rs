//! Receiving and sending: by the kernel or by the link, whoever has the connection.

use core::ffi::c_int;
use std::sync::Arc;
use std::time::Duration;

use crate::buffers::Buffers;
use crate::errno;
use crate::kernel;
use crate::link::{Link, Step};
use crate::moving;
use crate::real;
use crate::socket::Socket;
use crate::wait::{self, End};

type Result<T> = core::result::Result<T, c_int>;

/// Flags of calls that are the kernel's alone.
const KERNELS: c_int = libc::MSG_OOB | libc::MSG_ERRQUEUE;
/// Why connections with such calls go by TCP.
const URGENT: &str = "it has urgent data, or an error queue is read";
/// Most bytes that are thrown away at once.
const SCRATCH: usize = 64 << 10;

/// When a call with this limit ends.
fn end_of(limit: u64) -> End {
    if limit == 0 { End::NEVER } else { End::after(Duration::from_nanos(limit)) }
}

/// Receives. `by_kernel` is the program's call with these flags.
pub(crate) fn receive(
    fd: c_int,
    socket: &Arc<Socket>,
    mut buffers: Buffers,
    flags: c_int,
    by_kernel: impl Fn(c_int) -> isize,
) -> isize {
    if flags & KERNELS != 0 {
        socket.stay(URGENT);
        return by_kernel(flags);
    }
    if buffers.len() == 0 {
        return by_kernel(flags);
    }
    // TCP throws bytes away for this (tcp(7)).
    let mut scratch = Vec::new();
    if flags & libc::MSG_TRUNC != 0 {
        scratch.resize(buffers.len().min(SCRATCH), 0u8);
        buffers = Buffers::one(scratch.as_mut_ptr().cast(), scratch.len());
    }
    let mut call = Receive { fd, socket, buffers, flags, end: None };
    errno::call(|| match call.run(&by_kernel) {
        Err(_) if call.buffers.done() > 0 => Ok(call.buffers.done()),
        result => result,
    })
}

/// One call.
#[derive(Debug)]
struct Receive<'a> {
    fd: c_int,
    socket: &'a Arc<Socket>,
    buffers: Buffers,
    flags: c_int,
    end: Option<End>,
}

impl Receive<'_> {
    const fn has(&self, flag: c_int) -> bool {
        self.flags & flag != 0
    }

    fn run(&mut self, by_kernel: &impl Fn(c_int) -> isize) -> Result<usize> {
        loop {
            let Some(count) = self.step(by_kernel)? else { continue };
            let peeks = self.has(libc::MSG_PEEK);
            if peeks {
                return Ok(count);
            }
            self.buffers.advance(count);
            let done = self.buffers.done();
            let wants_all = self.has(libc::MSG_WAITALL) && !self.has(libc::MSG_DONTWAIT);
            if count == 0 || !wants_all || done == self.buffers.len() {
                return Ok(done);
            }
        }
    }

    /// Receives some bytes; 0 at the end. None: once more.
    fn step(&mut self, by_kernel: &impl Fn(c_int) -> isize) -> Result<Option<usize>> {
        let peeks = self.has(libc::MSG_PEEK);
        if self.socket.has_left() {
            return Ok(Some(self.socket.take_left(self.buffers.target(), peeks)));
        }
        match self.socket.link() {
            Some(link) => self.by_link(&link, by_kernel),
            None => {
                moving::count(self.socket);
                if self.socket.has_left() {
                    return Ok(None);
                }
                let reading = self.socket.reading();
                if self.socket.link().is_some() {
                    return Ok(None);
                }
                let count = self.by_kernel(by_kernel)?;
                match self.socket.link() {
                    Some(link) if count > 0 => {
                        if peeks {
                            return Ok(None);
                        }
                        let kept = link.received_by_tcp(self.fd, &self.buffers.next(count));
                        drop(reading);
                        Ok((kept > 0).then_some(kept))
                    }
                    _ => Ok(Some(count)),
                }
            }
        }
    }

    /// The program's call, or what is left of it.
    fn by_kernel(&mut self, by_kernel: &impl Fn(c_int) -> isize) -> Result<usize> {
        let flags = self.flags & !libc::MSG_WAITALL;
        if self.buffers.done() == 0 && !self.has(libc::MSG_TRUNC) {
            return errno::counted(by_kernel(flags));
        }
        let flags = flags & !libc::MSG_TRUNC;
        let target = self.buffers.target();
        errno::counted(real::recv(self.fd, target.as_mut_ptr().cast(), target.len(), flags))
    }

    fn by_link(
        &mut self,
        link: &Link,
        by_kernel: &impl Fn(c_int) -> isize,
    ) -> Result<Option<usize>> {
        let has_readers = self.socket.has_readers();
        let peeks = self.has(libc::MSG_PEEK);
        match link.receive(self.fd, &mut self.buffers, peeks, has_readers)? {
            Step::Done(count) => Ok(Some(count)),
            Step::Over | Step::Kernel => self.by_kernel(by_kernel).map(Some),
            Step::Soon if !has_readers => Ok(None),
            step => {
                if self.socket.is_nonblocking() || self.has(libc::MSG_DONTWAIT) {
                    return Err(libc::EAGAIN);
                }
                let [limit, _] = self.socket.limits();
                let end = *self.end.get_or_insert_with(|| end_of(limit));
                wait::for_step(link.nic(), self.fd, step, end, || link.reads())?;
                Ok(None)
            }
        }
    }
}

/// Sends. `by_kernel` is the program's call.
pub(crate) fn send(
    fd: c_int,
    socket: &Arc<Socket>,
    mut buffers: Buffers,
    flags: c_int,
    by_kernel: impl Fn() -> isize,
) -> isize {
    if flags & (KERNELS | libc::MSG_FASTOPEN) != 0 {
        // What is urgent goes by TCP, after what was sent before it.
        if let Some(link) = socket.link() {
            link.stop_sending(fd);
        }
        socket.stay(URGENT);
        return by_kernel();
    }
    if buffers.len() == 0 {
        return by_kernel();
    }
    errno::call(|| match send_all(fd, socket, &mut buffers, flags, &by_kernel) {
        Err(_) if buffers.done() > 0 => Ok(buffers.done()),
        Err(libc::EPIPE) if flags & libc::MSG_NOSIGNAL == 0 => {
            kernel::raise_pipe_signal();
            Err(libc::EPIPE)
        }
        result => result,
    })
}

fn send_all(
    fd: c_int,
    socket: &Arc<Socket>,
    buffers: &mut Buffers,
    flags: c_int,
    by_kernel: &impl Fn() -> isize,
) -> Result<usize> {
    let mut end = None;
    loop {
        let Some(link) = socket.link() else {
            moving::count(socket);
            let _writing = socket.writing();
            if socket.link().is_some_and(|link| link.sends_by_via() || link.is_common()) {
                continue;
            }
            return rest_by_kernel(fd, buffers, flags, by_kernel);
        };
        match link.send(fd, buffers.source(), || socket.has_writers())? {
            Step::Done(count) => {
                buffers.advance(count);
                if buffers.done() == buffers.len() {
                    return Ok(buffers.done());
                }
            }
            Step::Kernel => {
                let _writing = socket.writing();
                if !link.sends_by_via() {
                    return rest_by_kernel(fd, buffers, flags, by_kernel);
                }
            }
            Step::Over => return rest_by_kernel(fd, buffers, flags, by_kernel),
            step => {
                if socket.is_nonblocking() || flags & libc::MSG_DONTWAIT != 0 {
                    return Err(libc::EAGAIN);
                }
                let [_, limit] = socket.limits();
                let end = *end.get_or_insert_with(|| end_of(limit));
                wait::for_step(link.nic(), fd, step, end, || link.stream().ready().writes)?;
            }
        }
    }
}

/// Sends what is left by the kernel.
fn rest_by_kernel(
    fd: c_int,
    buffers: &mut Buffers,
    flags: c_int,
    by_kernel: &impl Fn() -> isize,
) -> Result<usize> {
    if buffers.done() == 0 {
        return errno::counted(by_kernel());
    }
    while buffers.done() < buffers.len() {
        let source = buffers.source();
        let sent = real::send(fd, source.as_ptr().cast(), source.len(), flags);
        let sent = errno::counted(sent)?;
        buffers.advance(sent);
    }
    Ok(buffers.done())
}

/// Bytes of a file that the kernel sends at a time while a connection may move.
const FILE_PIECE: usize = 256 << 10;

/// Sends a file's bytes from `at` on, or from where the file is.
pub(crate) fn send_file(
    fd: c_int,
    socket: &Arc<Socket>,
    file: c_int,
    at: Option<&mut i64>,
    count: usize,
    by_kernel: impl Fn(usize) -> isize,
) -> isize {
    let mut done = 0;
    while socket.link().is_none() {
        errno::kept(|| moving::count(socket));
        let _writing = socket.writing();
        if socket.link().is_some_and(|link| link.sends_by_via()) {
            break;
        }
        let left = count - done;
        // Of one call a whole file would go by TCP.
        let piece = if socket.may_move() { left.min(FILE_PIECE) } else { left };
        let sent = by_kernel(piece);
        done += usize::try_from(sent).unwrap_or(0);
        if done == 0 {
            return sent;
        }
        if done == count || usize::try_from(sent) != Ok(piece) {
            return isize::try_from(done).unwrap_or(isize::MAX);
        }
    }
    let rest = errno::call(|| copy_file(fd, socket, file, at, count - done));
    if done == 0 { rest } else { isize::try_from(done).unwrap_or(isize::MAX) + rest.max(0) }
}

fn copy_file(
    fd: c_int,
    socket: &Arc<Socket>,
    file: c_int,
    mut at: Option<&mut i64>,
    count: usize,
) -> Result<usize> {
    let mut chunk = vec![0u8; count.min(SCRATCH)];
    let mut done = 0;
    while done < count {
        let length = chunk.len().min(count - done);
        let place = at.as_deref().copied();
        let read = kernel::read_file(file, &mut chunk[..length], place);
        let read = match read {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        };
        let buffers = Buffers::one(chunk.as_mut_ptr().cast(), read);
        let sent = send(fd, socket, buffers, 0, || real::send(fd, chunk.as_ptr().cast(), read, 0));
        let sent = match errno::counted(sent) {
            Ok(sent) => sent,
            Err(error) => {
                kernel::unread_file(file, read, place);
                if done == 0 {
                    return Err(error);
                }
                break;
            }
        };
        done += sent;
        match &mut at {
            Some(at) => **at += i64::try_from(sent).unwrap_or(0),
            None => kernel::unread_file(file, read - sent, None),
        }
        if sent < read {
            break;
        }
    }
    Ok(done)
}

/// Writes bytes that a connection's former owner left into a pipe.
pub(crate) fn splice_left(socket: &Arc<Socket>, pipe: c_int, length: usize) -> isize {
    let mut chunk = vec![0u8; length.min(SCRATCH)];
    let count = socket.take_left(&mut chunk, true);
    let written = real::write(pipe, chunk.as_ptr().cast(), count);
    if let Ok(written) = usize::try_from(written) {
        let _ = socket.take_left(&mut chunk[..written], false);
    }
    written
}

/// What the program wants to shut down.
pub(crate) fn shut_down(fd: c_int, socket: &Arc<Socket>, how: c_int) -> c_int {
    if let Some(link) = socket.link() {
        if how == libc::SHUT_WR || how == libc::SHUT_RDWR {
            link.close_sending();
        }
        if how == libc::SHUT_RD || how == libc::SHUT_RDWR {
            link.stop_receiving();
        }
    }
    real::shutdown(fd, how)
}

/// Bytes that have come and are not read, or None if the kernel has the answer.
pub(crate) fn unread(fd: c_int, socket: &Arc<Socket>) -> Option<u64> {
    if socket.has_left() {
        return Some(socket.left() as u64 + kernel::unread(fd).unwrap_or(0));
    }
    socket.link()?.unread(fd)
}
