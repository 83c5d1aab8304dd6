//! Where the cycles of one message go: what its pins and stamps show, in order. The steps add up to
//! the whole.

use super::Job;
use super::latency::{find, one_message};
use super::pair::{End, Form, Pair, Setup};
use super::pins::{is_event, is_message_in, is_message_out, is_payload, is_post, is_status, waits};
use crate::Failure;
use crate::progress::Progress;
use cosim::probe::{Record, What};
use host_driver::nic::Capabilities;
use nic_regs::csr::{self, Stamp};
use nic_regs::desc::control;
use std::fmt::Write as _;

/// A moment: cycle of the simulation, what happened, where that was seen.
type Moment = (u64, &'static str, &'static str);

const PIN: &str = "pins";
const STAMP: &str = "stamp";

const DOORBELL: (Stamp, &str) = (Stamp::Doorbell, "doorbell accepted");
const SENT: (Stamp, &str) = (Stamp::LastBeatOut, "frame: last beat out");
const PAYLOAD: (Stamp, &str) = (Stamp::DataWritten, "payload accepted by the host port");
const STATUS: (Stamp, &str) = (Stamp::StatusWritten, "status accepted by the host port");
// The first beat of the frame has a pin too: by it the clocks are set.
const SENDER: [(Stamp, &str); 4] = [
    DOORBELL,
    (Stamp::Descriptor, "descriptor checked, data asked for"),
    (Stamp::Data, "data on the chip"),
    SENT,
];
const RECEIVER: [(Stamp, &str); 3] = [(Stamp::Matched, "descriptor checked"), PAYLOAD, STATUS];
const WRITTEN: [(Stamp, &str); 2] = [(Stamp::Matched, "rights checked"), PAYLOAD];
const REQUESTER: [(Stamp, &str); 7] = [
    DOORBELL,
    (Stamp::Descriptor, "descriptor checked"),
    SENT,
    (Stamp::FirstBeatIn, "answer: first beat in"),
    (Stamp::Matched, "descriptor checked again"),
    PAYLOAD,
    STATUS,
];
const TARGET: [(Stamp, &str); 2] =
    [(Stamp::Data, "data on the chip"), (Stamp::LastBeatOut, "answer: last beat out")];

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sampled {
    Message(Form),
    Write,
    Read,
}

/// Bytes of an RDMA.
const RDMA_BYTES: usize = 64;

const DESCRIPTOR: [&str; 3] =
    ["descriptor read: last beat out", "descriptor: first beat in", "descriptor: last beat in"];
const DATA: [&str; 3] = ["data read: last beat out", "data: first beat in", "data: last beat in"];
const RECEIVE_DESCRIPTOR: [&str; 3] = [
    "receive descriptor read: last beat out",
    "receive descriptor: first beat in",
    "receive descriptor: last beat in",
];
const DESCRIPTOR_AGAIN: [&str; 3] = [
    "descriptor read again: last beat out",
    "descriptor again: first beat in",
    "descriptor again: last beat in",
];

impl Sampled {
    fn is_in(self, device: &Capabilities) -> bool {
        match self {
            Self::Message(Form::Push) => Form::push(device).is_some(),
            Self::Message(Form::Token) => true,
            Self::Write => device.rdma_write,
            Self::Read => device.rdma_read,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Message(form) => {
                format!("a message of {} bytes by {} doorbell", form.bytes(), form.name())
            }
            Self::Write => format!("an RDMA write of {RDMA_BYTES} bytes by token doorbell"),
            Self::Read => format!("an RDMA read of {RDMA_BYTES} bytes by token doorbell"),
        }
    }
}

/// The tables of one message by each doorbell that the device has, and of each kind of RDMA, with
/// a completion queue at each end.
pub(crate) fn tables(job: &Job) -> Result<String, Failure> {
    let (token, push) = (Sampled::Message(Form::Token), Sampled::Message(Form::Push));
    let mut all = Vec::new();
    for sampled in [token, push, Sampled::Write, Sampled::Read] {
        all.extend(table(job, sampled)?);
    }
    Ok(all.join("\n\n"))
}

fn table(job: &Job, sampled: Sampled) -> Result<Option<String>, Failure> {
    let progress = Progress::default();
    progress.start("anatomy");
    let setup = Setup { completion_queue: true, ..Setup::default() };
    let mut pair = Pair::new(job, &progress, &setup)?;
    if !sampled.is_in(pair.capabilities()) {
        return Ok(None);
    }
    for end in &pair.ends {
        let vi = u32::from(end.vis[0].number);
        let sample = csr::SAMPLE::RESET.with(csr::SAMPLE::VI, vi).with(csr::SAMPLE::ARMED, 1);
        end.driver.set_register(csr::SAMPLE::OFFSET, sample.0);
    }
    let [sender, receiver] = match sampled {
        Sampled::Message(form) => one_message(&mut pair, form, form.bytes())?,
        Sampled::Write => pair.rdma(control::OP_RDMA_WRITE, RDMA_BYTES)?,
        Sampled::Read => pair.rdma(control::OP_RDMA_READ, RDMA_BYTES)?,
    };
    let post = find(&sender, 0, "doorbell", is_post)?;
    let mut moments = vec![(post.last, "doorbell: last beat in", PIN)];
    let out = leaving(&sender, post.last, &[DESCRIPTOR, DATA], &mut moments)?;
    moments.push((out.first, "frame: first beat out", PIN));
    let frame = find(&receiver, 0, "frame", is_message_in)?;
    moments.push((frame.last, "frame: last beat in", PIN));
    match sampled {
        Sampled::Message(_) => {
            arrived(&receiver, frame.last, RECEIVE_DESCRIPTOR, &mut moments)?;
            ended(&receiver, frame.last, &mut moments)?;
        }
        Sampled::Write => {
            arrived(&receiver, frame.last, RECEIVE_DESCRIPTOR, &mut moments)?;
            ended(&sender, out.first, &mut moments)?;
        }
        Sampled::Read => {
            let answer = leaving(&receiver, frame.last, &[DATA], &mut moments)?;
            moments.push((answer.first, "answer: first beat out", PIN));
            let answer = find(&sender, out.last, "answer", is_message_in)?;
            moments.push((answer.last, "answer: last beat in", PIN));
            arrived(&sender, answer.last, DESCRIPTOR_AGAIN, &mut moments)?;
            ended(&sender, answer.last, &mut moments)?;
        }
    }
    let (near, far): (&[_], &[_]) = match sampled {
        Sampled::Message(_) => (&SENDER, &RECEIVER),
        Sampled::Write => (&SENDER, &WRITTEN),
        Sampled::Read => (&REQUESTER, &TARGET),
    };
    stamps(&pair.ends[0], Stamp::FirstBeatOut, out.first, near, &mut moments)?;
    stamps(&pair.ends[1], Stamp::FirstBeatIn, frame.first, far, &mut moments)?;
    // At the same cycle the pins come first.
    moments.sort_by_key(|&(cycle, _, seen)| (cycle, seen == STAMP));
    Ok(Some(text(&moments, sampled)))
}

/// The next frame that leaves, and the reads before it.
fn leaving(
    records: &[Record],
    from: u64,
    names: &[[&'static str; 3]],
    moments: &mut Vec<Moment>,
) -> Result<Record, Failure> {
    let frame = find(records, from, "frame", is_message_out)?;
    let before: Vec<Record> =
        records.iter().filter(|r| r.last >= from && r.last < frame.first).copied().collect();
    reads(&before, names, moments);
    Ok(frame)
}

/// The write of the payload that came, and the read before it.
fn arrived(
    records: &[Record],
    from: u64,
    names: [&'static str; 3],
    moments: &mut Vec<Moment>,
) -> Result<(), Failure> {
    let payload = find(records, from, "payload write", is_payload)?;
    let before: Vec<Record> =
        records.iter().filter(|r| r.last > from && r.last < payload.last).copied().collect();
    reads(&before, &[names], moments);
    moments.push((payload.last, "payload write: last beat out", PIN));
    Ok(())
}

/// The completion.
fn ended(records: &[Record], from: u64, moments: &mut Vec<Moment>) -> Result<(), Failure> {
    let status = find(records, from, "status write", is_status)?;
    let event = find(records, status.last, "event", is_event)?;
    moments.push((status.last, "status write: last beat out", PIN));
    moments.push((event.last, "event: last beat out", PIN));
    Ok(())
}

/// Adds the moments of reads, in order.
fn reads(records: &[Record], names: &[[&'static str; 3]], moments: &mut Vec<Moment>) {
    let answers = records.iter().filter(|r| matches!(r.what, What::Completion { end: true, .. }));
    for (((asked, first), answer), [a, b, c]) in waits(records).into_iter().zip(answers).zip(names)
    {
        moments.extend([(asked, *a, PIN), (first, *b, PIN), (answer.last, *c, PIN)]);
    }
}

/// Adds stamps, moved from the NIC's own clock to the simulation's by one that is known in both.
fn stamps(
    end: &End,
    known: Stamp,
    cycle: u64,
    wanted: &[(Stamp, &'static str)],
    moments: &mut Vec<Moment>,
) -> Result<(), Failure> {
    let stamp = |stamp: Stamp| -> Result<u32, Failure> {
        Ok(end.driver.register(csr::STAMP0::OFFSET + 4 * stamp as u32)?)
    };
    let taken = csr::SAMPLED(end.driver.register(csr::SAMPLED::OFFSET)?);
    let is_taken = |stamp: Stamp| taken.get(csr::SAMPLED::STAGES) >> stamp as u32 & 1 == 1;
    if !is_taken(known) {
        return Err(format!("{known:?} is not stamped").into());
    }
    let known = stamp(known)?;
    for &(wanted, name) in wanted {
        if is_taken(wanted) {
            let before = known.wrapping_sub(stamp(wanted)?).cast_signed();
            moments.push((cycle.saturating_add_signed(-i64::from(before)), name, STAMP));
        }
    }
    Ok(())
}

fn text(moments: &[Moment], sampled: Sampled) -> String {
    let start = moments.first().map_or(0, |moment| moment.0);
    let mut text = format!(
        "Anatomy of {}, on idle NICs:\n\
         {:>6} {:>6}  what\n",
        sampled.name(),
        "cycle",
        "step"
    );
    let (mut before, mut sum) = (start, 0);
    for &(cycle, what, seen) in moments {
        let step = cycle - before;
        sum += step;
        writeln!(text, "{:>6} {step:>+6}  {what} ({seen})", cycle - start)
            .expect("a string takes every write");
        before = cycle;
    }
    write!(text, "{:>6} {sum:>6}  in all", before - start).expect("a string takes every write");
    text
}
