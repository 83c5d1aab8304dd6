//! Single messages through NICs at rest.

use super::pair::{Form, Pair, Setup};
use super::pins::{is_data_in, is_data_out, is_event, is_payload, is_post, is_status, waited};
use super::{Job, Value};
use crate::Failure;
use crate::progress::Progress;
use cosim::probe::Record;
use nic_regs::doorbell::PUSH_WORDS;

/// Messages of a row.
const MESSAGES: usize = 16;
/// Extra cycles before each message, so that they do not all meet the NIC in one phase.
const PHASE_STEP: u64 = 7;

/// Sends one message from node 0 to node 1; gives what crossed the pins of both.
pub(crate) fn one_message(
    pair: &mut Pair<'_>,
    form: Form,
    bytes: usize,
) -> Result<[Vec<Record>; 2], Failure> {
    pair.ends[1].receive(0, bytes)?;
    pair.settle()?;
    pair.records();
    pair.ends[0].send(0, bytes, form)?;
    pair.settle()?;
    pair.check(0, 1)?;
    Ok(pair.records())
}

/// The first record of a kind at or after a cycle.
pub(crate) fn find(
    records: &[Record],
    from: u64,
    what: &str,
    is: fn(&Record) -> bool,
) -> Result<Record, Failure> {
    let found = records.iter().find(|record| record.last >= from && is(record));
    found.copied().ok_or_else(|| format!("no {what} at the pins").into())
}

/// One message after the other, each measured in some ways.
fn messages<const N: usize>(
    pair: &mut Pair<'_>,
    form: Form,
    measure: impl Fn(&[Vec<Record>; 2]) -> Result<[u64; N], Failure>,
) -> Result<[Vec<u64>; N], Failure> {
    let mut samples = [const { Vec::new() }; N];
    for message in 0..MESSAGES {
        pair.simulation.run(PHASE_STEP * message as u64);
        let records = one_message(pair, form, form.bytes())?;
        for (samples, sample) in samples.iter_mut().zip(measure(&records)?) {
            samples.push(sample);
        }
    }
    Ok(samples)
}

/// A row with the slowest of the messages.
#[allow(clippy::cast_precision_loss, reason = "cycles of one message")]
fn slowest(name: &'static str, samples: &[u64], note: &str) -> Value {
    let (least, most) = (samples.iter().min(), samples.iter().max());
    let (least, most) = (least.copied().unwrap_or(0), most.copied().unwrap_or(0));
    let range = if least == most { String::new() } else { format!("{least} to {most}; ") };
    Value::new(name, most as f64, format!("{range}{note}"))
}

pub(super) fn push_to_wire(job: &Job, progress: &Progress) -> Result<Vec<Value>, Failure> {
    const NAME: &str = "push_to_wire";
    let mut samples = Vec::new();
    for line_words in [PUSH_WORDS, 1] {
        let mut pair = Pair::new(job, progress, &Setup { line_words, ..Setup::default() })?;
        let Some(form) = Form::push(pair.capabilities()) else {
            return Ok(vec![Value::none(NAME, "not in this device revision")]);
        };
        let [gross] = messages(&mut pair, form, |[sender, _]| {
            let frame = find(sender, 0, "frame", is_data_out)?;
            let mut posts = sender.iter().rev().filter(|r| is_post(r) && r.last <= frame.first);
            let post = posts.next().ok_or("no doorbell at the pins")?;
            Ok([frame.first - post.last])
        })?;
        samples.push(gross);
    }
    let eight = samples[1].iter().max().unwrap_or(&0);
    Ok(vec![slowest(NAME, &samples[0], &format!("{eight} from the last of eight writes"))])
}

pub(super) fn token_to_wire(job: &Job, progress: &Progress) -> Result<Vec<Value>, Failure> {
    let mut pair = Pair::new(job, progress, &Setup::default())?;
    let [net, waiting] = messages(&mut pair, Form::Token, |[sender, _]| {
        let post = find(sender, 0, "doorbell", is_post)?;
        let frame = find(sender, post.last, "frame", is_data_out)?;
        let waiting = waited(sender, post.last, frame.first);
        Ok([frame.first - post.last - waiting, waiting])
    })?;
    let note = format!("and {} waiting for the host", waiting.iter().max().unwrap_or(&0));
    Ok(vec![slowest("token_to_wire_net", &net, &note)])
}

pub(super) fn wire_to_host(job: &Job, progress: &Progress) -> Result<Vec<Value>, Failure> {
    let setup = Setup { completion_queue: true, ..Setup::default() };
    let mut pair = Pair::new(job, progress, &setup)?;
    // The longest that the rows allow: a push has no room for it.
    let [payload, status, event, waiting] = messages(&mut pair, Form::Token, |[_, receiver]| {
        let frame = find(receiver, 0, "frame", is_data_in)?;
        let payload = find(receiver, frame.last, "payload write", is_payload)?;
        let status = find(receiver, payload.last, "status write", is_status)?;
        let event = find(receiver, status.last, "event", is_event)?;
        let waiting = waited(receiver, frame.last, payload.last);
        Ok([payload.last - frame.last, status.last - frame.last, event.last - frame.last, waiting])
    })?;
    // Zero once the NIC fetches receive descriptors ahead.
    let waiting = waiting.iter().max().unwrap_or(&0);
    let note = match waiting {
        0 => String::new(),
        cycles => format!("the descriptor is fetched in it ({cycles} waiting for the host)"),
    };
    Ok(vec![
        slowest("wire_to_payload", &payload, &note),
        slowest("wire_to_status", &status, ""),
        slowest("wire_to_event", &event, ""),
    ])
}
