//! Planted bugs: errors that somebody could make, each under a name, which the suites are asked to find.
//!
//! They are edits of the emitted Verilog, and of the model, that are chosen at run time as random mutants are
//! (`mutants.rs` here, `mutate/model.rs` of xtask). What an edit replaces has to be there once: in one line of
//! the kernel of its module, or in its file. An entry that fits no more fails the build of mutants: change it
//! with the code. `cargo xtask mutate --planted` makes the table of docs/verification.md of them.

/// An error under a name.
#[derive(Debug)]
pub(crate) struct Planted {
    /// Unique among those of the RTL, and among those of the model.
    pub(crate) name: &'static str,
    /// What is wrong, for the table.
    pub(crate) what: &'static str,
    /// All of them are in force together.
    pub(crate) edits: &'static [Edit],
}

/// Text that becomes another.
#[derive(Debug)]
pub(crate) struct Edit {
    /// A module of the emitted NIC, or a file of the model.
    pub(crate) place: &'static str,
    /// A part of a condition or of an assigned value of the RTL; an expression of the model.
    pub(crate) from: &'static str,
    /// What it becomes.
    pub(crate) to: &'static str,
}

const fn edit(place: &'static str, from: &'static str, to: &'static str) -> Edit {
    Edit { place, from, to }
}

/// In the emitted Verilog.
pub(crate) const RTL: &[Planted] = &[
    Planted {
        name: "staging-full",
        what: "a frame that fills staging is refused",
        edits: &[edit("top$channel$stage", "(wanted <= units_all)", "(wanted < units_all)")],
    },
    Planted {
        name: "region-end",
        what: "the byte behind a region is allowed",
        edits: &[edit("top$tpt", "(~slack$q[32'h22])", "((~slack$q[32'h22]) | (&slack$q))")],
    },
    Planted {
        name: "generation-half",
        what: "8 of 16 bits of a generation are compared",
        edits: &[edit(
            "top$tpt",
            "(attributes$q[(32'h10)+:(16)] == arg_generation$q)",
            "(attributes$q[(32'h10)+:(8)] == arg_generation$q[7:0])",
        )],
    },
    Planted {
        name: "credits-sender",
        what: "a frame of 4 KiB costs its sender a credit too few",
        edits: &[edit(
            "top$channel$store$question",
            "cost$d = chunks;",
            "cost$d = chunks - (chunks == 8'd16);",
        )],
    },
    Planted {
        name: "credits-receiver",
        what: "a frame of 4 KiB releases a credit too few",
        edits: &[edit(
            "top$channel$stage",
            "back_units$d = held$freed_units;",
            "back_units$d = held$freed_units - (held$freed_units == 7'd16);",
        )],
    },
    Planted {
        name: "frame-long",
        what: "data of 4,097 to 4,112 bytes is accepted",
        edits: &[edit(
            "top$channel$link_rx",
            "end_limit = end_plain_14;",
            "end_limit = end_max_14;",
        )],
    },
    Planted {
        name: "ack-window",
        what: "an acknowledgement of what was not sent is taken",
        edits: &[edit(
            "top$channel$acceptance",
            "ack_good = compare$ack_step <= compare$ack_room;",
            "ack_good = 1'b1;",
        )],
    },
    Planted {
        name: "next-early-send",
        what: "a send's Next is taken at a posted count of 1",
        edits: &[edit("top$send", "port$covered > one", "port$covered >= one")],
    },
    Planted {
        name: "next-early-recv",
        what: "a receive's Next is known at a posted count of 1",
        edits: &[edit(
            "top$recv$prefetch$loader",
            "goes_on = one_covered < covered$q;",
            "goes_on = one_covered <= covered$q;",
        )],
    },
    Planted {
        name: "next-early-reply",
        what: "a read's Next is taken at a posted count of 1",
        edits: &[edit(
            "top$recv$port",
            "several_at$d = one < count_at$q;",
            "several_at$d = one <= count_at$q;",
        )],
    },
    Planted {
        name: "next-generation-send",
        what: "the generation of a send's NextHandle is not compared",
        edits: &[edit(
            "top$send$desc",
            "tpt$check_generation = ~reader$reaching;",
            "tpt$check_generation = (~reader$reaching) & ((walker$length != 32'h1) | (|walker$address[5:0]));",
        )],
    },
    Planted {
        name: "next-generation-recv",
        what: "nor that of a receive's",
        edits: &[
            edit(
                "top$recv$prefetch$loader$resolver",
                "tpt$check_generation = 1'b1;",
                "tpt$check_generation = state$q != ParseState$NextLookup;",
            ),
            edit(
                "top$recv$prefetch$loader$resolver$next_one",
                "(handle == known_handle$q)",
                "(handle[15:0] == known_handle$q[15:0])",
            ),
        ],
    },
    Planted {
        name: "event-full",
        what: "an event queue is full with one entry left",
        edits: &[edit(
            "top$events$queues",
            "full = fill$q[log2];",
            "full = fill$q >= (size_now$q - 1);",
        )],
    },
    Planted {
        name: "event-early",
        what: "a receive is reported before its status is written",
        edits: &[edit(
            "top$recv",
            "finish$written = writer$status_written;",
            "finish$written = finish$beat & finish$last;",
        )],
    },
    Planted {
        name: "fence-early",
        what: "a fence is answered with writes still queued",
        edits: &[edit(
            "top$recv",
            "control$idle & quiet & prefetch$paused",
            "control$idle & prefetch$paused",
        )],
    },
    Planted {
        name: "region-cached",
        what: "a region that the prefetcher knows survives RegionClear",
        edits: &[edit(
            "top$recv$prefetch$loader$resolver$region_cache",
            "known$d = 1'b0;",
            "known$d = known$q;",
        )],
    },
    Planted {
        name: "message-number",
        what: "the number of an Unreliable message is not compared",
        edits: &[edit("top$recv$port", " & (message$q == header2[(32'h8)+:(8)])", "")],
    },
    Planted {
        name: "tail-enables",
        what: "a tail of 3 bytes behind a multiple of 4 KiB enables 4",
        edits: &[edit(
            "top$dma_write$cutter",
            "last_mask = 32'h7;",
            "last_mask = (at$q[11:0] == 12'h0) ? 32'hf : 32'h7;",
        )],
    },
    Planted {
        name: "read-age",
        what: "a read from before the clock's wrap never times out",
        edits: &[edit(
            "top$dma_read$tags",
            "age$d = now$q - starts$read_data;",
            "age$d = (now$q < starts$read_data) ? 32'h0 : (now$q - starts$read_data);",
        )],
    },
];

/// In `nic-model/src`. What is replaced and what replaces it are expressions of one type.
pub(crate) const MODEL: &[Planted] = &[
    Planted {
        name: "region-end",
        what: "the byte behind a region is allowed",
        edits: &[edit(
            "tpt.rs",
            "u64::from(self.length) <= room",
            "u64::from(self.length) <= room + 1",
        )],
    },
    Planted {
        name: "credits-receiver",
        what: "a frame of 4 KiB releases a credit too few",
        edits: &[edit(
            "channel.rs",
            "peer.released.wrapping_add(small8(header.credits()))",
            "peer.released.wrapping_add(small8(header.credits() - usize::from(header.credits() == 16)))",
        )],
    },
    Planted {
        name: "next-early",
        what: "Next is taken at a posted count of 1",
        edits: &[edit("work_queue.rs", "work.count >= 2", "work.count >= 1")],
    },
    Planted {
        name: "next-generation",
        what: "the generation of NextHandle is not compared",
        edits: &[edit(
            "tpt.rs",
            "(Some(handle.generation()), Place::Address(next))",
            "(None, Place::Address(next))",
        )],
    },
    Planted {
        name: "message-number",
        what: "the number of an Unreliable message is not compared",
        edits: &[edit(
            "recv.rs",
            "header.sequence != message.sequence",
            "header.sequence & 0xff != message.sequence & 0xff",
        )],
    },
    Planted {
        name: "drain-order",
        what: "deferred completions of receives go before those of sends",
        edits: &[edit(
            "event.rs",
            "self.completions.iter_ones().collect()",
            "{ let mut all: Vec<usize> = self.completions.iter_ones().collect(); \
             all.sort_by_key(|index| index ^ 1); all }",
        )],
    },
    Planted {
        name: "partial-lost",
        what: "a message that fails in its midst is completed without PARTIAL_ERROR",
        edits: &[edit("work_queue.rs", "if partial { status::PARTIAL_ERROR } else { 0 }", "0")],
    },
    Planted {
        name: "partial-early",
        what: "a read of which nothing was placed ends with PARTIAL_ERROR",
        edits: &[edit(
            "work_queue.rs",
            "matches!(v.send, SendPhase::Reading { placed: 1.., .. })",
            "matches!(v.send, SendPhase::Reading { .. })",
        )],
    },
];
