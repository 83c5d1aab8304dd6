//! vrdma: RDMA writes and reads.
//!
//! Arguments as of vpingpong. The server sends the place of its buffer; the client writes into it, with
//! immediate data that tell the server so, and reads back what the server has made of it.
#![expect(clippy::print_stdout, reason = "what the program is for")]

use vipl::{Descriptor, INFINITE, Reliability, RemoteBuffer, Vi};
use vipl_examples::{DESCRIPTOR, Outcome, Station, example};

const BYTES: u32 = 4096;
// Places in the memory: three descriptors, the message with the place of the buffer, the buffer.
const SEND: usize = 0;
const RECVS: usize = DESCRIPTOR;
const INFO: usize = 512;
const BUFFER: usize = 4096;
const MEMORY: usize = 16_384;
/// Bytes of the message with the place of a buffer: address, handle, four that are nothing.
const INFO_BYTES: usize = 16;

fn send(station: &Station, vi: &Vi, length: usize) -> Outcome<()> {
    vi.post_send(&station.prepare(SEND, INFO, u32::try_from(length)?)?)?;
    vi.send_wait(INFINITE)?;
    Ok(())
}

/// A text as C has it: zero-terminated.
fn put_text(station: &Station, text: &str) {
    station.region.memory().copy_from(BUFFER, &[text.as_bytes(), &[0]].concat());
}

fn text(station: &Station) -> String {
    let bytes = station.region.memory().to_vec(BUFFER, BYTES as usize);
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

fn server(device: &str) -> Outcome<()> {
    let station = Station::open(device, MEMORY, true)?;
    let vi = station.create_vi(Reliability::Reception, None)?;
    // One receive for the immediate data, one for the client's last message; both are empty.
    for i in 0..2 {
        vi.post_recv(&station.prepare(RECVS + DESCRIPTOR * i, INFO, 0)?)?;
    }
    station.serve(&vi, "rdma")?;
    let RemoteBuffer { address, handle } = station.region.remote(BUFFER);
    let info = [&address.to_le_bytes()[..], &handle.to_le_bytes(), &[0; 4]].concat();
    station.region.memory().copy_from(INFO, &info);
    send(&station, &vi, INFO_BYTES)?;
    // The client has written. Without immediate data nothing here would tell so.
    let done = vi.recv_wait(INFINITE)?;
    println!("the client wrote: {} (immediate data {})", text(&station), done.immediate());
    put_text(&station, "and this is what the client read");
    send(&station, &vi, 0)?;
    // The client has read.
    vi.recv_wait(INFINITE)?;
    vi.disconnect()?;
    station.nic.close();
    Ok(())
}

fn client(device: &str, server: &str) -> Outcome<()> {
    let station = Station::open(device, MEMORY, true)?;
    let vi = station.create_vi(Reliability::Reception, None)?;
    let info_bytes = u32::try_from(INFO_BYTES)?;
    vi.post_recv(&station.prepare(RECVS, INFO, info_bytes)?)?;
    vi.post_recv(&station.prepare(RECVS + DESCRIPTOR, INFO + INFO_BYTES, 0)?)?;
    station.ask(&vi, server, "rdma")?;
    vi.recv_wait(INFINITE)?;
    let memory = station.region.memory();
    let theirs = RemoteBuffer { address: memory.load_u64(INFO), handle: memory.load_u32(INFO + 8) };
    // Two segments: the remote place, and the local one.
    let rdma: Descriptor = station.region.descriptor(SEND, 2)?;
    let local = [station.region.segment(BUFFER, BYTES)];
    put_text(&station, "this went straight into the server's memory");
    rdma.prepare_rdma_write(theirs, &local, Some(1998))?;
    vi.post_send(&rdma)?;
    vi.send_wait(INFINITE)?;
    // The server has seen it, and has put something else there.
    vi.recv_wait(INFINITE)?;
    rdma.prepare_rdma_read(theirs, &local)?;
    vi.post_send(&rdma)?;
    vi.send_wait(INFINITE)?;
    println!("the client read: {}", text(&station));
    send(&station, &vi, 0)?;
    vi.disconnect()?;
    station.nic.close();
    Ok(())
}

fn main() -> Outcome<()> {
    example(server, client)
}
