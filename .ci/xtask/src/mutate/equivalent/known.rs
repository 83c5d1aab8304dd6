//! The mutants that are known to be equivalent, with their reasons.

use super::{Equivalent, Subject};

/// All that are known.
pub(super) const KNOWN: &[Equivalent] = &[
    of_rtl(
        "top$tpt",
        ["attribute_ram$write_data = 32'h0;", "attribute_ram$write_data = 32'h1;"],
        "bit 0 is of the tag of an entry that is not valid (bit 38), which nobody looks at",
    ),
    of_rtl(
        "*picker$firsts$*",
        ["index[*] = |(lowest & 8'b00000000);", "*"],
        "a place has three bits; a fourth is read by nobody, and those above it are of the place of the next \
         eight, which counts only if there is nobody in these",
    ),
    of_rtl(
        "*picker$group",
        ["index[*] = |(lowest & 8'b00000000);", "*"],
        "three bits of it are read",
    ),
    of_rtl(
        "top$events$queues",
        ["record_address = (((base_now$q)*", "*((offset$q) & 64'hfffffffffffffffe);"],
        "records are of 16 bytes or more: the low bits of an offset are 0",
    ),
    of_rtl(
        "top$dma_read$tags$first",
        ["index[*] = |(lowest & 32'b00000000000000000000000000000000);", "*"],
        "a tag has five bits; those above are read by nobody",
    ),
    of_rtl("top$dma_read$bulk", ["at$d = address0;", "(nothing)"], "its one client is the second"),
    of_rtl("top$dma_read$bulk", ["next_turn = 32'h2;", "*"], "it has one client"),
    of_rtl("top$dma_read$bulk", ["away$d = 32'h0;", "*"], "nobody asks then"),
    of_rtl(
        "top$dma_write$cutter",
        ["bytes = shape[(32'h19)+:(10)];", "*"],
        "what a completion has to have; writes have none",
    ),
    of_rtl(
        "top$send$retire$verdict",
        ["stop_status = bit_*", "*"],
        "what a peer has refused stops a VI by the receive engine, which knows its status",
    ),
    of_rtl("top$send$retire$verdict", ["if (*(detail == *", "*"], "detail is 0 there"),
    of_rtl(
        "top$recv$reply$desc$reader",
        ["immediate_at$d = read$rsp_data[(32'h20)+:(32)];", "*"],
        "an RDMA read has no immediate data",
    ),
    of_rtl(
        "*arbiter",
        ["grant_index[*] = |(lowest & 4'b0000);", "*"],
        "of four clients a place has two bits; what is above them is read by nobody",
    ),
    of_rtl(
        "top$csr$bank$row3",
        ["else if (index[(32'h0)+:(2)] == 32'h3) begin", "*32'h1)+:(2)] == 32'h3) begin"],
        LAST_OF_FOUR,
    ),
    of_rtl(
        "top$csr$bank$row3",
        ["else if (index[(32'h0)+:(2)] == 32'h3) begin", "*32'h0)+:(2)] == 32'h2) begin"],
        LAST_OF_FOUR,
    ),
    of_rtl(
        "top$channel$*picker",
        ["pause$d = 32'h0;", "pause$d = 32'h1;"],
        "it is over a cycle behind the reset, when no channel is open yet",
    ),
    of_rtl("top$channel$pending_ops", ["nak$d = 32'h0;", "*"], CLOSED),
    of_rtl("top$channel$pending_ops", ["ack$d = 32'h0;", "*"], CLOSED),
    of_rtl(
        "top$channel$hub$pending_ops",
        ["arrivals$d = 32'h0;", "*"],
        "forgotten at the next look, and at a reset no channel is there that it would keep alive",
    ),
    of_rtl(
        "top$csr$counters",
        ["reading$d = 1'b0;", "(nothing)"],
        "it settles before the reset of 16 cycles ends (`hdl::csr`)",
    ),
    of_rtl(
        "top$vis$doorbells",
        ["offset = 32'h0;", "offset = 32'h1;"],
        "bit 0 of the record is set by the code of the error",
    ),
    of_rtl(
        "top$dma_write$cutter",
        ["above$d = 32'h0;", "above$d = 32'h1;"],
        "the first client before all others, or the first one of all",
    ),
    of_rtl(
        "top$recv$prefetch$loader$resolver$next_one",
        ["reaches$d = *(have >= one_line)*", "*(have > one_line)*"],
        "a descriptor whose end is that of what was read is read again",
    ),
    of_rtl(
        "top$send$prefetch",
        ["rest_landed$d = landing - step;", "rest_landed$d = landing + step;"],
        "a read waits for the one before, which does not have all of it, and is asked for then",
    ),
    of_rtl("top$recv$reply$desc$walker", ["known = *", "*"], "nobody looks at it in a reply"),
    of_rtl(
        "top$recv$reply$desc",
        ["pending$d = 1'b0;", "(nothing)"],
        "the reader, which is reset, takes what is pending before the reset of 16 cycles ends",
    ),
    of_rtl(
        "top$recv$frame_lookups",
        ["calling$d = 32'h0;", "(nothing)"],
        "one more look-up behind the reset, for whose answer nobody waits",
    ),
    of_rtl(
        "top$channel$pending_ops",
        ["blocked$d = 32'h0;", "(nothing)"],
        "a look at a channel that has nothing to send",
    ),
    of_rtl(
        "top$channel$hub$scheduler$service_picker",
        ["pause$d = restart;", "(nothing)"],
        "a look at a channel that was just served",
    ),
    of_rtl(
        "top$channel$hub$comparisons",
        ["freed_after = freed + 32'h1;", "*"],
        "the last frame that is acknowledged is served in one look or in two",
    ),
    of_rtl(
        "top$channel$link_tx",
        ["value = 32'h0;", "*"],
        "no beat is emitted where nothing else sets it",
    ),
    of_rtl(
        "top$recv$reply$desc$reader$extent",
        ["several_bytes = ((several) & 9'h1ff) << 32'h6;", "*9'h1fe) << 32'h6;"],
        "how many bytes behind a descriptor are read with it",
    ),
    of_rtl(
        "*$extent",
        ["if (most_covered < covered) begin", "if (most_covered <= covered) begin"],
        "at the most it has that value already",
    ),
    of_rtl(
        "top$send$fetch$opening",
        ["else if (direct) begin", "*"],
        "the same in the cycle before, when the peers that were refused are as they are now",
    ),
    of_rtl(
        "top$recv$reply$desc$list",
        ["passes = add & (asked == filled$q);", "*"],
        "an answer's segments are asked for when all of them are there",
    ),
    of_model(
        "nic-model/src/work_queue.rs",
        ["Head::Token(Token { vi, region, offset_64, segments: 0, queue })", "*segments: 1*"],
        "a hint; the model reads what the descriptor says",
    ),
    of_model(
        "nic-model/src/tpt.rs",
        [
            "let access = Access { generation, place, length: *, owner, rights: 0 };",
            "*rights: 1 };",
        ],
        "of a region that is there this right is set: it says that it is",
    ),
    of_model(
        "nic-model/src/channel/accept.rs",
        ["Err(if distance < 0 *", "Err(if distance <*"],
        "a distance of 0 was accepted before",
    ),
    of_model(
        "nic-model/src/channel/peer.rs",
        ["last_received: 0,", "*"],
        "set when the channel opens",
    ),
    of_model(
        "nic-model/src/work_queue.rs",
        ["v.send = SendPhase::Between;", "(nothing)"],
        "a VI that has stopped is disconnected before it is used again, and that forgets it too",
    ),
    of_model(
        "nic-model/src/event.rs",
        ["self.peers.set(index, false);", "*"],
        "the peer has no event that is not reported: there is nothing to deliver",
    ),
    of_model(
        "nic-model/src/work_queue.rs",
        ["let partial = if partial { status::PARTIAL_ERROR } else { 0 };", "*else { 1 };"],
        "bit 0, DONE, is set in every status",
    ),
    of_model(
        "nic-model/src/channel/accept.rs",
        ["if distance < 0 {", "if distance < 1 {"],
        "a distance of 0 was accepted before",
    ),
    of_model("nic-model/src/channel/peer.rs", ["our_epoch: 0,", "*"], "set when the channel opens"),
    of_model(
        "nic-model/src/channel/peer.rs",
        ["peer_epoch: 0,", "*"],
        "set when the channel opens",
    ),
    of_model("nic-model/src/vi.rs", ["max_transfer: 0,", "*"], "set when the VI is created"),
    of_model(
        "nic-model/src/vector.rs",
        ["let due = self.sent[vector].map_or(0, *", "*map_or(1, *"],
        "no interrupt is sent in cycle 0",
    ),
    of_model(
        "nic-model/src/csr.rs",
        ["REGS.iter().find(*).map_or(0, *", "*.map_or(1, *"],
        "every register is in the table",
    ),
    of_model(
        "nic-model/src/event.rs",
        ["self.stops.set(vi, false);", "*"],
        "the VI has no stop that is not reported: there is nothing to deliver",
    ),
    of_model(
        "nic-model/src/work_queue.rs",
        ["let mut bytes = [0; size(CONTROL_BYTES)];", "*"],
        "they are read then",
    ),
    of_model(
        "nic-model/src/vi.rs",
        ["owner: Owner { tag: 0, domain: 0 },", "*"],
        "set when the VI is created",
    ),
    of_model(
        "nic-model/src/csr.rs",
        ["fields.iter().fold(0, *", "fields.iter().fold(1, *"],
        "every register that is written has a bit 0",
    ),
    of_model("nic-model/src/vi.rs", ["allows: 0,", "*"], "set when the VI is created"),
    of_model("nic-model/src/vi.rs", ["retry: false,", "*"], "no VI is blocked at first"),
    of_model(
        "nic-model/src/vi.rs",
        ["self.next = None;", "(nothing)"],
        "it was taken when the queue became empty",
    ),
    of_model(
        "nic-model/src/vector.rs",
        ["self.next = u64::MAX;", "(nothing)"],
        "vectors are looked at more often than they need be",
    ),
    of_model(
        "nic-model/src/event.rs",
        ["peers: BitVec::repeat(false, PEER_COUNT),", "*"],
        "no peer has an event at first: there is nothing to deliver",
    ),
    of_model(
        "nic-model/src/work_queue.rs",
        ["Ok(Resolved { * short: false, inline: Some(data) })", "*short: true*"],
        "of receives alone it is asked for",
    ),
    of_model(
        "nic-model/src/work_queue.rs",
        ["v.recv = None;", "(nothing)"],
        "a VI that has stopped is disconnected before it is used again, and that forgets it too",
    ),
    of_model(
        "nic-model/src/work_queue.rs",
        ["self.vis[vi].queues[queue as usize].next = next;", "(nothing)"],
        "Next is read again when it is needed",
    ),
    of_model(
        "nic-model/src/work_queue.rs",
        [
            "let immediate_bit = if immediate.is_some() { status::IMMEDIATE } else { 0 };",
            "*else { 1 };",
        ],
        "bit 0, DONE, is set in every status",
    ),
    of_model("nic-model/src/channel/peer.rs", ["last_sent: 0,", "*"], "set when the channel opens"),
    of_model("nic-model/src/channel/peer.rs", ["granted: 0,", "*"], "set when the channel opens"),
    of_model(
        "nic-model/src/event.rs",
        ["completions: BitVec::repeat(false, 2 * VI_COUNT),", "*3 * VI_COUNT*"],
        "there are more bits than VIs",
    ),
    of_model(
        "nic-model/src/event.rs",
        ["stops: BitVec::repeat(false, VI_COUNT),", "*true*"],
        "no VI has a stop to report at first: there is nothing to deliver",
    ),
    of_model(
        "nic-model/src/admin/command.rs",
        ["let mut text = [0; size(MESSAGE_BYTES)];", "*"],
        "the text is put there then",
    ),
    of_model(
        "nic-model/src/send.rs",
        ["payload.resize(at + n, 0);", "*, 1);"],
        "the bytes are read then",
    ),
    of_model(
        "nic-model/src/work_queue.rs",
        ["immediate: immediate.unwrap_or(0),", "*"],
        "without IMMEDIATE nobody looks at it",
    ),
    of_model("nic-model/src/csr.rs", ["STATUS(0)", "*"], "each of its fields is set then"),
    of_model(
        "nic-model/src/channel/timers.rs",
        ["self.next_timer = deadlines.min().unwrap_or(u64::MAX);", "(nothing)"],
        "timers are looked at more often than they need be",
    ),
    of_model(
        "nic-model/src/channel.rs",
        ["self.next_timer = 0;", "self.next_timer = 1;"],
        "both are over",
    ),
    of_model(
        "nic-model/src/admin.rs",
        ["let mut bytes = [0; size(ENTRY_BYTES)];", "*"],
        "they are read then",
    ),
];

/// Why it does nothing what the last word of each four of registers is.
const LAST_OF_FOUR: &str =
    "the last of each four is no register in this row: what is chosen for it is not answered";

/// Why a mark that stays through a reset does nothing.
const CLOSED: &str =
    "a mark of a channel that is not Open is dropped without a frame, and behind a reset none is";

/// An edit of the RTL: before and after.
const fn of_rtl(
    module: &'static str,
    [before, after]: [&'static str; 2],
    reason: &'static str,
) -> Equivalent {
    Equivalent { subject: Subject::Rtl, module, before, after, reason }
}

/// An edit of a file of the model: lines before and after.
const fn of_model(
    module: &'static str,
    [before, after]: [&'static str; 2],
    reason: &'static str,
) -> Equivalent {
    Equivalent { subject: Subject::Model, module, before, after, reason }
}
