//! Stamps: when a message has passed each stage between two programs, for `viaduct bench anatomy`.
//!
//! A stamp is the processor's cycle counter, taken where a stage ends. Stamps exist only with the
//! feature `stamps`; without it [`stamp`] is an empty function, and the data path is the same as
//! without the calls. With it a thread takes those of the stages that it has chosen, and the others
//! cost it a load and a branch.
//!
//! ```text
//! sender    Program -> Post -> Doorbell -> Descriptor -> Data -> Store  (-> Complete -> Return -> Repost)
//!                                                                  |
//! receiver                                                         +--> Wire -> Match -> Write -> Status
//!                                                                          -> Release -> Poll
//! ```
//! A thread keeps one stamp for each stage, the last one: [`take`] returns them. The stages in
//! parentheses happen while the message is under way already.

#[cfg(feature = "stamps")]
mod counter;

/// A stage of a message. Its stamp is taken where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The program, from the message before to the call that posts a send.
    Program,
    /// VIPL and the work queue, up to the doorbell.
    Post,
    /// The port is called, and owns the VI.
    Doorbell,
    /// The send descriptor is read and checked.
    Descriptor,
    /// The data is gathered, or copied to where the receiver takes it from.
    Data,
    /// The message is stored in the receiver's queue.
    Store,
    /// The send descriptor has its status. The message is under way.
    Complete,
    /// The call that posts has returned. The message is under way.
    Return,
    /// A receive is posted again, and the peer notified of it. The message is under way.
    Repost,
    /// The receiver has found the message.
    Wire,
    /// The receive descriptor is read and checked.
    Match,
    /// The data is in the receiver's buffers.
    Write,
    /// The receive descriptor has its status.
    Status,
    /// The message's slot is free again.
    Release,
    /// VIPL has returned the descriptor to the program.
    Poll,
}

impl Stage {
    /// Number of stages.
    pub const COUNT: usize = Self::ALL.len();

    /// All stages, by number.
    pub const ALL: [Self; 15] = [
        Self::Program,
        Self::Post,
        Self::Doorbell,
        Self::Descriptor,
        Self::Data,
        Self::Store,
        Self::Complete,
        Self::Return,
        Self::Repost,
        Self::Wire,
        Self::Match,
        Self::Write,
        Self::Status,
        Self::Release,
        Self::Poll,
    ];

    #[cfg(feature = "stamps")]
    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// A stamp for each stage, by its number, in cycles of the counter; 0: none was taken.
pub type Stamps = [u64; Stage::COUNT];

/// Whether stamps are compiled in.
pub const BUILT_IN: bool = cfg!(feature = "stamps");

/// Ends a stage: takes its stamp, if this thread has chosen it.
#[inline(always)]
pub fn stamp(stage: Stage) {
    #[cfg(feature = "stamps")]
    recorder::stamp(stage);
    #[cfg(not(feature = "stamps"))]
    let _ = stage;
}

/// Has this thread take the stamps of these stages, and of no others.
pub fn choose(stages: &[Stage]) {
    #[cfg(feature = "stamps")]
    recorder::CHOSEN.set(stages.iter().fold(0, |chosen, stage| chosen | stage.bit()));
    #[cfg(not(feature = "stamps"))]
    let _ = stages;
}

/// The stamps that this thread has taken since the last call. None are left.
#[must_use]
pub fn take() -> Stamps {
    #[cfg(feature = "stamps")]
    return recorder::STAMPS.take();
    #[cfg(not(feature = "stamps"))]
    [0; Stage::COUNT]
}

/// The cycle counter; 0 without the feature.
#[must_use]
pub fn now() -> u64 {
    #[cfg(feature = "stamps")]
    return counter::read();
    #[cfg(not(feature = "stamps"))]
    0
}

#[cfg(feature = "stamps")]
mod recorder {
    use core::cell::Cell;

    use super::{Stage, Stamps, counter};

    thread_local! {
        /// The stages of which this thread takes stamps, a bit for each.
        pub(super) static CHOSEN: Cell<u32> = const { Cell::new(0) };
        /// The last stamp of each stage.
        pub(super) static STAMPS: Cell<Stamps> = const { Cell::new([0; Stage::COUNT]) };
    }

    #[inline(always)]
    pub(super) fn stamp(stage: Stage) {
        if CHOSEN.get() & stage.bit() == 0 {
            return;
        }
        STAMPS.with(|stamps| {
            let stamps: &Cell<[u64]> = stamps;
            stamps.as_slice_of_cells()[stage as usize].set(counter::read());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_have_numbers_in_order() {
        for (number, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, number);
        }
    }

    #[test]
    fn a_thread_takes_the_stamps_that_it_has_chosen() {
        stamp(Stage::Post);
        assert_eq!(take(), [0; Stage::COUNT]);
        choose(&[Stage::Post, Stage::Doorbell]);
        for stage in [Stage::Post, Stage::Doorbell, Stage::Descriptor] {
            stamp(stage);
        }
        let stamps = take();
        let [post, doorbell] = [Stage::Post, Stage::Doorbell].map(|stage| stamps[stage as usize]);
        assert_eq!(BUILT_IN, post > 0);
        assert!(doorbell >= post);
        assert_eq!(stamps[Stage::Descriptor as usize], 0);
        choose(&[]);
        stamp(Stage::Post);
        assert_eq!(take(), [0; Stage::COUNT]);
    }
}
