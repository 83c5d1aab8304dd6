//! The stages of a message in order, and how long each lasts by the stamps of both ends.

use port::stamp::{Stage, Stamps};

use crate::bench::statistics::Sample;

/// Categories of the paper's table 3. What a processor does is processing, copies included; what is
/// left is transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Category {
    /// The program and the part of the library that runs in it.
    User,
    ProtocolSend,
    ProtocolReceive,
    /// System calls and interrupts of the sender, and of the receiver.
    SystemSend,
    SystemReceive,
    Transmission,
}

impl Category {
    pub(super) const ALL: [Self; 6] = [
        Self::User,
        Self::ProtocolSend,
        Self::ProtocolReceive,
        Self::SystemSend,
        Self::SystemReceive,
        Self::Transmission,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::User => "user application",
            Self::ProtocolSend => "protocol processing (send)",
            Self::ProtocolReceive => "protocol processing (recv)",
            Self::SystemSend => "OS overhead (send)",
            Self::SystemReceive => "OS overhead (recv)",
            Self::Transmission => "DMA/transmit/receive",
        }
    }
}

/// A stage as a table has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) stage: Stage,
    pub(super) name: &'static str,
    pub(super) category: Category,
    /// It is a part of the one-way time; the others happen beside it.
    pub(super) is_critical: bool,
    pub(super) what: &'static str,
}

pub(super) const fn row(
    stage: Stage,
    name: &'static str,
    category: Category,
    what: &'static str,
) -> Row {
    let is_critical = !matches!(stage, Stage::Complete | Stage::Return | Stage::Repost);
    Row { stage, name, category, is_critical, what }
}

use Category as C;

/// All stages, by number.
pub(super) const ROWS: [Row; Stage::COUNT] = [
    row(Stage::Program, "program", C::User, "takes an earlier send back, writes the message"),
    row(Stage::Post, "post", C::User, "VIPL: queue locked, descriptor linked"),
    row(Stage::Doorbell, "doorbell", C::ProtocolSend, "port called, VI locked"),
    row(Stage::Descriptor, "descriptor", C::ProtocolSend, "read and checked"),
    row(Stage::Data, "data", C::ProtocolSend, "gathered, or copied to the inbox"),
    row(Stage::Store, "store", C::ProtocolSend, "message stored in the receiver's queue"),
    row(Stage::Complete, "complete", C::ProtocolSend, "status of the send written"),
    row(Stage::Return, "return", C::User, "the post returns"),
    row(Stage::Repost, "repost", C::User, "a receive posted, the peer notified"),
    row(Stage::Wire, "wire", C::Transmission, "until the polling receiver finds it"),
    row(Stage::Match, "match", C::ProtocolReceive, "receive descriptor read and checked"),
    row(Stage::Write, "write", C::ProtocolReceive, "data copied to the receive buffer"),
    row(Stage::Status, "status", C::ProtocolReceive, "status of the receive written"),
    row(Stage::Release, "release", C::ProtocolReceive, "slot freed"),
    row(Stage::Poll, "poll", C::User, "VIPL finds the status, returns the descriptor"),
];

const SENDER: [Stage; 6] =
    [Stage::Program, Stage::Post, Stage::Doorbell, Stage::Descriptor, Stage::Data, Stage::Store];
const BESIDE: [Stage; 3] = [Stage::Complete, Stage::Return, Stage::Repost];
const RECEIVER: [Stage; 6] =
    [Stage::Wire, Stage::Match, Stage::Write, Stage::Status, Stage::Release, Stage::Poll];

/// The end of every message, which the next one begins with.
const END: Stage = Stage::Poll;

/// Stamps of this process, and of the other one, which answers. Those of a round begin with the receive
/// before and end with its send.
pub(super) type Turn = [Vec<Stamps>; 2];

/// Rounds at the start of a turn that find caches cold.
const COLD: usize = 8;
/// Times of a measurement, there and back: a direction has the difference of the two counters in it
/// that the other one lacks.
type Ways = [Vec<f64>; 2];

/// When stages end, counted from the message before, in cycles. Each stage is measured by itself, with
/// stamps of its end and of the message's end and no others: so no time has more than one stamp in it,
/// and stamps do not keep the processor from doing work of several stages at once.
#[derive(Debug, Default)]
pub(super) struct Ends {
    stages: [Ways; Stage::COUNT],
    /// Messages, with stamps or without, in all turns of a stage.
    messages: [usize; Stage::COUNT],
}

impl Ends {
    /// The stamps that a turn of this stage takes.
    pub(super) const fn wanted(stage: Stage) -> [Stage; 2] {
        [stage, END]
    }

    /// Adds a turn of a stage.
    pub(super) fn add(&mut self, stage: Stage, [own, theirs]: &Turn) {
        let there = own.iter().zip(theirs);
        let back = theirs.iter().zip(own.iter().skip(1));
        let [there_times, back_times] = &mut self.stages[stage as usize];
        let messages = &mut self.messages[stage as usize];
        for (from, to) in there.skip(COLD) {
            there_times.extend(time(stage, from, to));
            *messages += 1;
        }
        for (from, to) in back.skip(COLD) {
            back_times.extend(time(stage, from, to));
            *messages += 1;
        }
    }

    /// Cycles by which the other process's counter is ahead of this one's: half of how much longer
    /// messages seem to need there than back. None: most messages have no stamps.
    pub(super) fn offset(&self) -> Option<f64> {
        self.is_stamped(END).then(|| {
            let [there, back] = self.stages[END as usize].each_ref().map(|times| median(times));
            (there - back) / 2.0
        })
    }

    fn is_stamped(&self, stage: Stage) -> bool {
        let found: usize = self.stages[stage as usize].iter().map(Vec::len).sum();
        2 * found > self.messages[stage as usize]
    }

    /// When a stage ends: the mean of both directions, whose offsets cancel. None: most messages have no
    /// stamp of it.
    ///
    /// Messages in which it ends later than usual by more than a whole message takes were interrupted,
    /// and are left out. Those that are only slow are not, and neither are the fastest: a counter that
    /// counts in steps has few different values, of which only the mean of all is exact.
    fn end(&self, stage: Stage) -> Option<f64> {
        let [there, back] = self.stages[END as usize].each_ref().map(|times| median(times));
        let whole = f64::midpoint(there, back);
        self.is_stamped(stage).then(|| {
            let [there, back] = self.stages[stage as usize].each_ref().map(|times| {
                let bound = median(times) + whole;
                mean(times.iter().copied().filter(|time| *time <= bound))
            });
            f64::midpoint(there, back)
        })
    }

    /// Cycles of each stage, where a stamp costs so many. A stage without stamps is a part of the next
    /// one that has some.
    pub(super) fn stages(&self, stamp: f64) -> [Option<f64>; Stage::COUNT] {
        let mut stages = [None; Stage::COUNT];
        let mut walk = |path: &[Stage], start: f64| {
            path.iter().fold(start, |last, stage| {
                let Some(end) = self.end(*stage).map(|end| end - stamp) else { return last };
                stages[*stage as usize] = Some(end - last);
                end
            })
        };
        let sent = walk(&SENDER, 0.0);
        walk(&BESIDE, sent);
        walk(&RECEIVER, sent);
        stages
    }

    pub(super) fn messages(&self) -> usize {
        self.messages.iter().sum()
    }
}

fn median(values: &[f64]) -> f64 {
    Sample::new(values.to_vec()).median()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

/// Cycles from the end of the message before, at the sender, to the end of a stage.
fn time(stage: Stage, sender: &Stamps, receiver: &Stamps) -> Option<f64> {
    let at = |stamps: &Stamps, stage| Some(stamps[stage as usize]).filter(|stamp| *stamp != 0);
    let end = if RECEIVER.contains(&stage) { receiver } else { sender };
    Some(at(end, stage)?.wrapping_sub(at(sender, END)?).cast_signed() as f64)
}

/// Time of the stages that follow each other. A stage has the same place in every table, so it does not
/// matter of which one.
pub(super) fn critical(stages: &[Option<f64>; Stage::COUNT]) -> f64 {
    let critical = ROWS.iter().filter(|row| row.is_critical);
    critical.filter_map(|row| stages[row.stage as usize]).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stamps of one end in a round that begins at `start`: the receive before, then the send; a
    /// stage lasts as many cycles as `lasts` says.
    fn stamps(start: u64, lasts: impl Fn(Stage) -> u64) -> (Stamps, u64) {
        let (mut all, mut now) = ([0; Stage::COUNT], start);
        for stage in RECEIVER.iter().chain(&SENDER) {
            now += lasts(*stage);
            all[*stage as usize] = now;
        }
        let mut beside = now;
        for stage in BESIDE {
            beside += lasts(stage);
            all[stage as usize] = beside;
        }
        (all, now)
    }

    const fn lasts(stage: Stage) -> u64 {
        match stage {
            Stage::Wire => 300,
            stage => 10 + stage as u64,
        }
    }

    /// A turn whose second process has a counter that is ahead.
    fn turn(rounds: usize, ahead: u64) -> Turn {
        let (mut own, mut theirs) = (Vec::new(), Vec::new());
        let mut now = 1_000_000;
        for _ in 0..rounds {
            let stamps_of;
            (stamps_of, now) = stamps(now, lasts);
            own.push(stamps_of);
            let stamps_of;
            (stamps_of, now) = stamps(now, lasts);
            theirs.push(stamps_of.map(|stamp| stamp + ahead));
        }
        [own, theirs]
    }

    #[test]
    fn rows_are_in_the_order_of_their_numbers() {
        for (number, row) in ROWS.iter().enumerate() {
            assert_eq!(row.stage as usize, number);
        }
        let critical = ROWS.iter().filter(|row| row.is_critical).map(|row| row.stage);
        assert!(critical.eq(SENDER.into_iter().chain(RECEIVER)));
    }

    /// The ends of all stages, each in a turn of its own.
    fn ends(turn: &Turn) -> Ends {
        let mut ends = Ends::default();
        for row in &ROWS {
            let wanted = Ends::wanted(row.stage).map(|stage| stage as usize);
            let chosen = |stamps: &Stamps| {
                core::array::from_fn(|at| if wanted.contains(&at) { stamps[at] } else { 0 })
            };
            let only = turn.each_ref().map(|all| all.iter().map(chosen).collect());
            ends.add(row.stage, &only);
        }
        ends
    }

    #[test]
    fn a_counter_that_is_ahead_is_found_and_does_not_change_the_stages() {
        for ahead in [0, 7_000] {
            let ends = ends(&turn(50, ahead));
            assert_eq!(ends.offset(), Some(ahead as f64));
            assert_eq!(ends.messages(), Stage::COUNT * (50 + 49 - 2 * COLD));
            for (row, stage) in ROWS.iter().zip(ends.stages(0.0)) {
                assert_eq!(stage, Some(lasts(row.stage) as f64), "{}", row.name);
            }
        }
    }

    #[test]
    fn the_critical_stages_are_the_time_from_message_to_message() {
        let turn = turn(20, 0);
        let stages = ends(&turn).stages(0.0);
        let (from, to) = (turn[0][10][END as usize], turn[1][10][END as usize]);
        assert_eq!(critical(&stages), (to - from) as f64);
    }

    #[test]
    fn what_a_stamp_costs_is_subtracted_once() {
        let ends = ends(&turn(20, 0));
        let (with, without) = (ends.stages(0.0), ends.stages(9.0));
        assert_eq!(critical(&with) - critical(&without), 9.0);
        let stage = |stages: &[Option<f64>; Stage::COUNT], stage| stages[stage as usize];
        assert_eq!(stage(&without, Stage::Program), Some(lasts(Stage::Program) as f64 - 9.0));
        assert_eq!(stage(&without, Stage::Store), stage(&with, Stage::Store));
    }

    #[test]
    fn a_stage_without_stamps_is_a_part_of_the_next() {
        let turn = turn(20, 0).map(|mut all| {
            all.iter_mut().for_each(|stamps| stamps[Stage::Doorbell as usize] = 0);
            all
        });
        let stages = ends(&turn).stages(0.0);
        assert_eq!(stages[Stage::Doorbell as usize], None);
        let both = lasts(Stage::Doorbell) + lasts(Stage::Descriptor);
        assert_eq!(stages[Stage::Descriptor as usize], Some(both as f64));
    }

    #[test]
    fn rare_interruptions_are_left_out() {
        let mut turn = turn(200, 0);
        for stamps in turn[0].iter_mut().step_by(40) {
            stamps[Stage::Store as usize] += 1_000_000;
        }
        let store = ends(&turn).stages(0.0)[Stage::Store as usize];
        assert_eq!(store, Some(lasts(Stage::Store) as f64));
    }

    #[test]
    fn means_are_finer_than_the_steps_of_the_counter() {
        const STEP: u64 = 26;
        let coarse =
            |all: Vec<Stamps>| all.iter().map(|one| one.map(|at| at / STEP * STEP)).collect();
        let ends = ends(&turn(10_000, 0).map(coarse));
        for (row, stage) in ROWS.iter().zip(ends.stages(0.0)) {
            let (found, exact) = (stage.expect("it is stamped"), lasts(row.stage) as f64);
            assert!((found - exact).abs() < 1.0, "{}: {found} and not {exact}", row.name);
        }
    }

    #[test]
    fn without_stamps_there_is_no_time() {
        let turn = [vec![[0; Stage::COUNT]; 20], vec![[0; Stage::COUNT]; 20]];
        let ends = ends(&turn);
        assert_eq!((ends.offset(), ends.stages(0.0)), (None, [None; Stage::COUNT]));
    }
}
