//! The exported functions. `viarpc.h` says what their arguments must point to: each is NULL, which is
//! found out here, or good for the call.
#![expect(unsafe_code, reason = "names of exported functions, and texts of programs")]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::MaybeUninit;
use std::time::Duration;

use via_rpc::Buffer;

use crate::client::Client;
use crate::failure::{Failure, Outcome, guard, last};
use crate::server::Server;

/// Where a result goes.
type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// A string that ends with 0.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
struct Text(*const c_char);

impl Text {
    fn get(self, what: &str) -> Outcome<String> {
        if self.0.is_null() {
            return Err(Failure::invalid(&format!("{what} is NULL")));
        }
        // SAFETY: not NULL, so it is a string that ends with 0, as the header says.
        let text = unsafe { CStr::from_ptr(self.0) };
        Ok(text.to_string_lossy().into_owned())
    }
}

fn good<T>(pointer: Option<T>, what: &str) -> Outcome<T> {
    pointer.ok_or_else(|| Failure::invalid(&format!("{what} is NULL")))
}

/// A time-out of the header, in microseconds.
fn timeout(us: i64) -> Duration {
    u64::try_from(us).map_or(vipl::INFINITE, Duration::from_micros)
}

fn set_bytes(bytes: &[u8], start: Out<'_, *const c_void>, length: Out<'_, usize>) -> Outcome {
    good(start, "the place for the bytes")?.write(bytes.as_ptr().cast());
    good(length, "the place for the length")?.write(bytes.len());
    Ok(())
}

/// The place of a buffer, NULL if there is none.
fn place_of(room: Out<'_, usize>, make: impl FnOnce() -> Outcome<(*mut u8, usize)>) -> *mut c_void {
    let mut place = core::ptr::null_mut();
    guard(|| {
        let (pointer, capacity) = make()?;
        if let Some(room) = room {
            room.write(capacity);
        }
        place = pointer;
        Ok(())
    });
    place.cast()
}

fn parts(buffer: &Buffer) -> (*mut u8, usize) {
    (buffer.pointer(), buffer.capacity())
}

#[unsafe(export_name = "viarpc_connect")]
extern "C" fn connect(
    host: Text,
    endpoint: Text,
    timeout_us: i64,
    client: Out<'_, Box<Client>>,
) -> c_int {
    guard(|| {
        let client = good(client, "the place for the client")?;
        let (host, endpoint) = (host.get("the host")?, endpoint.get("the endpoint")?);
        client.write(Box::new(Client::connect(&host, &endpoint, timeout(timeout_us))?));
        Ok(())
    })
}

#[unsafe(export_name = "viarpc_request")]
extern "C" fn request(
    client: Option<&mut Client>,
    length: usize,
    room: Out<'_, usize>,
) -> *mut c_void {
    place_of(room, || good(client, "the client")?.request(length).map(parts))
}

#[unsafe(export_name = "viarpc_call")]
extern "C" fn call(
    client: Option<&mut Client>,
    length: usize,
    timeout_us: i64,
    answer: Out<'_, *const c_void>,
    answer_length: Out<'_, usize>,
) -> c_int {
    guard(|| {
        let bytes = good(client, "the client")?.call(length, timeout(timeout_us))?;
        set_bytes(bytes, answer, answer_length)
    })
}

#[unsafe(export_name = "viarpc_disconnect")]
extern "C" fn disconnect(client: Option<Box<Client>>) {
    guard(|| {
        client.into_iter().for_each(|client| client.end());
        Ok(())
    });
}

#[unsafe(export_name = "viarpc_bind")]
extern "C" fn bind(endpoint: Text, server: Out<'_, Box<Server>>) -> c_int {
    guard(|| {
        let server = good(server, "the place for the server")?;
        server.write(Box::new(Server::bind(&endpoint.get("the endpoint")?)?));
        Ok(())
    })
}

#[unsafe(export_name = "viarpc_next")]
extern "C" fn next(
    server: Option<&mut Server>,
    timeout_us: i64,
    request: Out<'_, *const c_void>,
    length: Out<'_, usize>,
) -> c_int {
    guard(|| {
        let bytes = good(server, "the server")?.next(timeout(timeout_us))?;
        set_bytes(bytes, request, length)
    })
}

#[unsafe(export_name = "viarpc_answer")]
extern "C" fn answer(
    server: Option<&mut Server>,
    length: usize,
    room: Out<'_, usize>,
) -> *mut c_void {
    place_of(room, || good(server, "the server")?.answer(length).map(parts))
}

#[unsafe(export_name = "viarpc_reply")]
extern "C" fn reply(server: Option<&mut Server>, length: usize) -> c_int {
    guard(|| good(server, "the server")?.reply(length))
}

#[unsafe(export_name = "viarpc_unbind")]
extern "C" fn unbind(server: Option<Box<Server>>) {
    guard(|| {
        server.into_iter().for_each(|server| server.end());
        Ok(())
    });
}

#[unsafe(export_name = "viarpc_error")]
extern "C" fn error() -> *const c_char {
    last()
}
