//! Where the cycles of one message go: what its pins and stamps show, in order. The steps add up to
//! the whole.

use super::Job;
use super::latency::{find, one_message};
use super::pins::{is_data_in, is_data_out, is_event, is_payload, is_post, is_status, waits};
use super::progress::Progress;
use super::rig::{End, Form, Rig, Setup};
use crate::Failure;
use cosim::probe::{Record, What};
use nic_regs::csr::{self, Stamp};
use std::fmt::Write as _;

/// A moment: cycle of the world, what happened, where that was seen.
type Moment = (u64, &'static str, &'static str);

const PIN: &str = "pins";
const STAMP: &str = "stamp";

const SENDER: [(Stamp, &str); 3] = [
    (Stamp::Doorbell, "doorbell accepted"),
    (Stamp::Descriptor, "descriptor checked, data asked for"),
    (Stamp::Data, "data on the chip"),
];
const RECEIVER: [(Stamp, &str); 1] = [(Stamp::Matched, "descriptor checked")];

/// The tables of one message by each doorbell that the device has, with a completion queue at each
/// end.
pub(crate) fn tables(job: &Job) -> Result<String, Failure> {
    let mut all = table(job, Form::Token)?.unwrap_or_default();
    if let Some(push) = table(job, Form::Push)? {
        all += "\n\n";
        all += &push;
    }
    Ok(all)
}

fn table(job: &Job, form: Form) -> Result<Option<String>, Failure> {
    let progress = Progress::default();
    progress.start("anatomy");
    let setup = Setup { completion_queue: true, ..Setup::default() };
    let mut rig = Rig::new(job, &progress, &setup)?;
    if form == Form::Push && Form::push(rig.capabilities()).is_none() {
        return Ok(None);
    }
    for end in &rig.ends {
        let vi = u32::from(end.vis[0].number);
        let sample = csr::SAMPLE::RESET.with(csr::SAMPLE::VI, vi).with(csr::SAMPLE::ARMED, 1);
        end.driver.set_register(csr::SAMPLE::OFFSET, sample.0);
    }
    let [sender, receiver] = one_message(&mut rig, form)?;
    let mut moments = sender_moments(&sender)?;
    let out = find(&sender, 0, "frame", is_data_out)?;
    stamps(&rig.ends[0], Stamp::FirstBeatOut, out.first, &SENDER, &mut moments)?;
    let frame = find(&receiver, 0, "frame", is_data_in)?;
    moments.extend(receiver_moments(&receiver, frame)?);
    stamps(&rig.ends[1], Stamp::FirstBeatIn, frame.first, &RECEIVER, &mut moments)?;
    // At the same cycle the pins come first.
    moments.sort_by_key(|&(cycle, _, seen)| (cycle, seen == STAMP));
    Ok(Some(text(&moments, form)))
}

fn sender_moments(records: &[Record]) -> Result<Vec<Moment>, Failure> {
    let post = find(records, 0, "doorbell", is_post)?;
    let frame = find(records, post.last, "frame", is_data_out)?;
    let mut moments = vec![(post.last, "doorbell: last beat in", PIN)];
    let names = [
        ["descriptor read: last beat out", "descriptor: first beat in", "descriptor: last beat in"],
        ["data read: last beat out", "data: first beat in", "data: last beat in"],
    ];
    let before: Vec<Record> =
        records.iter().filter(|r| r.last >= post.last && r.last < frame.first).copied().collect();
    reads(&before, &names, &mut moments);
    moments.push((frame.first, "frame: first beat out", PIN));
    Ok(moments)
}

/// Adds the moments of reads, in order.
fn reads(records: &[Record], names: &[[&'static str; 3]], moments: &mut Vec<Moment>) {
    let answers = records.iter().filter(|r| matches!(r.what, What::Completion { end: true, .. }));
    for (((asked, first), answer), [a, b, c]) in waits(records).into_iter().zip(answers).zip(names)
    {
        moments.extend([(asked, *a, PIN), (first, *b, PIN), (answer.last, *c, PIN)]);
    }
}

fn receiver_moments(records: &[Record], frame: Record) -> Result<Vec<Moment>, Failure> {
    let payload = find(records, frame.last, "payload write", is_payload)?;
    let status = find(records, payload.last, "status write", is_status)?;
    let event = find(records, status.last, "event", is_event)?;
    let mut moments = vec![(frame.last, "frame: last beat in", PIN)];
    let names = [[
        "receive descriptor read: last beat out",
        "receive descriptor: first beat in",
        "receive descriptor: last beat in",
    ]];
    let before: Vec<Record> = records
        .iter()
        .filter(|record| record.last > frame.last && record.last < payload.last)
        .copied()
        .collect();
    reads(&before, &names, &mut moments);
    moments.push((payload.last, "payload write: last beat out", PIN));
    moments.push((status.last, "status write: last beat out", PIN));
    moments.push((event.last, "event: last beat out", PIN));
    Ok(moments)
}

/// Adds stamps, moved from the NIC's own clock to the world's by one that is known in both.
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

fn text(moments: &[Moment], form: Form) -> String {
    let start = moments.first().map_or(0, |moment| moment.0);
    let mut text = format!(
        "Anatomy of a message of {} bytes by {} doorbell, on idle NICs:\n\
         {:>6} {:>6}  what\n",
        form.bytes(),
        form.name(),
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
