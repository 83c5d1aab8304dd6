//! The interfaces between blocks. A block boundary is registered: outputs of a block come from
//! flip-flops or block RAM wherever a path would otherwise cross two blocks.
//!
//! | interface | from (client) | to (server) | carries |
//! |---|---|---|---|
//! | [`ReadClient`] | desc x 2, send, admin | dma_read | host reads |
//! | [`WriteClient`] | send, event, admin | dma_write | host writes |
//! | [`PacketClient`] | recv | dma_write | host writes that are told ahead |
//! | [`TptClient`] | desc x 2 | tpt | region look-ups |
//! | [`TptSetClient`] | admin | tpt | region set, clear |
//! | [`PostClient`] | doorbell | vi, event | doorbells |
//! | [`ViSendClient`] | send | vi | send work and its outcome |
//! | [`ViRecvClient`] | recv | vi | receive work and its outcome |
//! | [`ViCompleteClient`] | recv, its completer | vi | what was received is announced |
//! | [`ViLookClient`] | recv, its prefetcher | vi | receive queues |
//! | [`AskerClient`] | vi, receive side | vi, send side | RDMA reads: what concerns the send queue |
//! | [`ViAdminClient`] | admin | vi | create, destroy, connect, disconnect, query |
//! | [`EventClient`] | vi, recv, channel | event | event records |
//! | [`EventAdminClient`] | admin | event | event queues, message queues |
//! | [`PushClient`] | pcie/cq | send | data of push doorbells |
//! | [`PoolClient`] | send | channel | frames to send |
//! | [`StagingClient`] | recv | channel | frames received |
//! | [`MessageClient`] | admin | send | 48-byte messages to send |
//! | [`PeerClient`] | admin | channel | open, close, query |
//! | [`KillClient`] | channel | vi | a peer is down |
//! | [`DrainClient`] | event | vi | an event queue has room again |
//! | [`RegClient`] | pcie/cq | csr | register accesses |
//! | [`MsixClient`] | csr | event | accesses to the MSI-X table |
//! | [`FenceClient`] | admin | send, recv | pause between frames (contract 8) |
//!
//! Handshakes are of three kinds. *Stream*: a beat moves in a cycle with `valid & ready`; `valid`
//! does not wait for `ready` and, once up, stays up with stable contents until the beat moves.
//! *Call*: the client holds `valid` and the arguments until `done` is high for one cycle, in which
//! the results are valid; the client lowers `valid` in the next cycle (it may raise it again one
//! cycle later). *Pulse*: high for one cycle, no answer.

use rust_hdl::prelude::*;

/// Declares both sides of an interface: `out` signals are driven by the client, `back` signals by
/// the server.
macro_rules! interface {
    ($(#[$doc:meta])* $client:ident / $server:ident, $client_name:literal, $server_name:literal {
        out { $($(#[$odoc:meta])* $o:ident: $oty:ty,)* }
        back { $($(#[$bdoc:meta])* $b:ident: $bty:ty,)* }
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, LogicInterface)]
        #[join = $server_name]
        pub struct $client {
            $($(#[$odoc])* pub $o: Signal<Out, $oty>,)*
            $($(#[$bdoc])* pub $b: Signal<In, $bty>,)*
        }
        /// The server's side.
        #[derive(Clone, Debug, Default, LogicInterface)]
        #[join = $client_name]
        pub struct $server {
            $($(#[$odoc])* pub $o: Signal<In, $oty>,)*
            $($(#[$bdoc])* pub $b: Signal<Out, $bty>,)*
        }
    };
}

interface! {
    /// Host reads. Requests are a stream; a client may have several outstanding and gets the
    /// responses in the order of its requests. The response cannot be held off. Bytes come in the
    /// lane of their address (address modulo 8), as many beats as aligned 8-byte words are touched;
    /// a failed read ends with `rsp_error` on its `rsp_last` beat (its data is undefined, and beats
    /// may be missing).
    ReadClient / ReadServer, "ReadClient", "ReadServer" {
        out {
            req_valid: Bit,
            req_address: Bits<64>,
            /// Bytes, 1 to 4,096.
            req_length: Bits<13>,
        }
        back {
            req_ready: Bit,
            rsp_valid: Bit,
            rsp_data: Bits<64>,
            rsp_last: Bit,
            rsp_error: Bit,
        }
    }
}

interface! {
    /// Host writes whose packets are told ahead of their data. Requests are a stream of packets of 1
    /// to 4,096 bytes; beats are a stream of the data of all of them, in the same order, in the lane
    /// of their address. Whoever asks has the data, or gets it without waiting for another block. A
    /// packet's place in the order of writes is that of its last beat, as for [`WriteClient`].
    PacketClient / PacketServer, "PacketClient", "PacketServer" {
        out {
            req_valid: Bit,
            req_address: Bits<64>,
            /// Bytes.
            req_length: Bits<13>,
            valid: Bit,
            data: Bits<64>,
            last: Bit,
        }
        back {
            req_ready: Bit,
            ready: Bit,
        }
    }
}

interface! {
    /// Host writes: one packet of 1 to 4,096 bytes, as a stream of beats in the lane of their
    /// address. `address` and `length` (bytes) are stable from the first beat to the last. Once the
    /// last beat has moved, the packet is ordered before every packet whose last beat moves later,
    /// on any client.
    WriteClient / WriteServer, "WriteClient", "WriteServer" {
        out {
            valid: Bit,
            address: Bits<64>,
            length: Bits<13>,
            data: Bits<64>,
            last: Bit,
        }
        back {
            ready: Bit,
        }
    }
}

interface! {
    /// Region look-up (call): is `length` bytes at `address` inside a valid region of this tag and
    /// domain, with these rights? `va_mode` 1: `address` is a virtual address; 0: a byte offset from
    /// the region's base rounded down to 64. `length` is at least 1 and below 2^32.
    TptClient / TptServer, "TptClient", "TptServer" {
        out {
            valid: Bit,
            index: Bits<16>,
            generation: Bits<16>,
            /// The generation must match.
            check_generation: Bit,
            va_mode: Bit,
            address: Bits<64>,
            length: Bits<32>,
            tag: Bits<16>,
            domain: Bits<8>,
            /// Rights that the region must give, as in `nic_regs::tpt`.
            rights: Bits<3>,
        }
        back {
            done: Bit,
            ok: Bit,
            /// Bus address of the first byte.
            bus: Bits<64>,
            /// Bytes from there to the region's end, saturated to 2^32 - 1.
            room: Bits<32>,
            /// Distance from the region's base rounded down to 64, in units of 64 bytes (saturated
            /// to 2^27 - 1: not a token offset).
            offset_64: Bits<27>,
        }
    }
}

interface! {
    /// Region table writes (call). `clear` 1: RegionClear. `ok` 0: BadState.
    TptSetClient / TptSetServer, "TptSetClient", "TptSetServer" {
        out {
            valid: Bit,
            clear: Bit,
            index: Bits<16>,
            va_base: Bits<64>,
            bus_base: Bits<64>,
            length: Bits<32>,
            tag: Bits<16>,
            generation: Bits<16>,
            domain: Bits<8>,
            rights: Bits<8>,
        }
        back {
            done: Bit,
            ok: Bit,
        }
    }
}

interface! {
    /// Doorbells (stream): the 8 bytes written and the page (domain).
    PostClient / PostServer, "PostClient", "PostServer" {
        out {
            valid: Bit,
            token: Bits<64>,
            domain: Bits<8>,
            /// Bit 0: the token of a push; its line 2:1. Bit 3: its data is in the slot 6:4 of
            /// [`PushClient`].
            push: Bits<7>,
        }
        back {
            ready: Bit,
        }
    }
}

interface! {
    /// Words of push lines, from the doorbells to the send engine, which has eight slots of eight
    /// words for them. A slot is used again when its bit of `free` was high (pulse).
    PushClient / PushServer, "PushClient", "PushServer" {
        out {
            valid: Bit,
            /// Slot 5:3, word of the line 2:0.
            at: Bits<6>,
            data: Bits<64>,
        }
        back {
            free: Bits<8>,
        }
    }
}

interface! {
    /// The send engine's view of VIs. `work_*`: the next VI of the ready ring (stream; taking it
    /// clears its 'scheduled' flag, a VI with work left must be given back with SAVE or lose its
    /// turn). `acked_*`: the next VI whose Reception send is acknowledged and is to be ended, whatever the
    /// VI's state (stream); `acked_left`: some are not taken. Operations are calls:
    ///
    /// | op | arguments | effect |
    /// |---|---|---|
    /// | 0 GET | vi | results `ctx_*` |
    /// | 1 SAVE | vi, in_progress, offset, fragment; or reading, offset (= length) | store message progress, or that the answer to an RDMA read is waited for; schedule again if it has work |
    /// | 2 POP | vi, in_progress (the message ends here and takes its number: see CHECK), next_valid, next_region, next_offset | pop the head by the successor rule; `need_next` 1: nothing done, read Next again and repeat. Clears progress; schedule again if it has work (not on Reception VIs) |
    /// | 3 AWAIT | vi, offset (= message length), fragment | Reception: remember the popped token and length, wait for ViAck |
    /// | 4 COMPLETE | vi | the popped descriptor's status is written: announce; schedule again if it has work; clears an AWAIT |
    /// | 5 STOP | vi, reason, queue, status, refuse | contract 6.1; `refuse`: a ViRefuse becomes pending (ignored on Unreliable) |
    /// | 6 SENT | vi, control_pending, answered | these pending bits (0: none), or a frame of the answer to an RDMA read, were sent or forgotten; schedule again if it has work |
    /// | 7 CHECK | vi, in_progress (the frame ends its message) | before a commit: results `ctx_*`; then the message takes its number if it ends |
    /// | 8 UNPUSH | vi, next_region, next_offset, fragment (segments) | a push goes back to the head of its queue |
    /// | 9 PUSH | vi, next_region, next_offset, offset (= length) | a push goes out: as POP, AWAIT on Reception, and CHECK of a frame that ends its message |
    /// | 15 | vi | nothing: the call is begun before it is known whether it will be one of them |
    ///
    /// `ctx_state` is valid with each answer. 8 and 9 end what `push_inline` began. Another call may come in
    /// the cycle after an answer. The operation and its arguments are looked at in the cycle before the answer,
    /// and may change until then.
    ///
    /// `push_valid` (pulse): the post of a push with data in `push_slot` was judged. With
    /// `push_inline`, which comes only then, the send engine has it: it is not in the queue, `ctx_*` tell its
    /// VI, and the VI is not offered nor takes a second push until 8 or 9. Only while `push_ready`, and not for the
    /// VI that the engine is `holding`; while `push_open` the doorbell may wait a little for both.
    ViSendClient / ViSendServer, "ViSendClient", "ViSendServer" {
        out {
            work_ready: Bit,
            acked_ready: Bit,
            valid: Bit,
            op: Bits<4>,
            vi: Bits<16>,
            in_progress: Bit,
            reading: Bit,
            offset: Bits<19>,
            fragment: Bits<8>,
            next_valid: Bit,
            next_region: Bits<16>,
            next_offset: Bits<26>,
            reason: Bits<8>,
            /// Status bits of the ViError event.
            status: Bits<32>,
            /// The event's queue bit (1: receive).
            queue: Bit,
            refuse: Bit,
            /// SENT: 1 ViAck, 2 ViRefuse, 4 Fin.
            control_pending: Bits<3>,
            answered: Bit,
            push_ready: Bit,
            /// No fence waits: what is not ready now may be soon.
            push_open: Bit,
            holding: Bit,
            holding_vi: Bits<16>,
        }
        back {
            push_valid: Bit,
            push_inline: Bit,
            push_slot: Bits<3>,
            push_vi: Bits<16>,
            /// Region 15:0, offset 41:16, segments 46:42.
            push_token: Bits<47>,
            work_valid: Bit,
            work_vi: Bits<16>,
            /// `work_vi` was quiet until a cycle ago, when `posting` told of its only descriptor.
            work_fresh: Bit,
            /// A doorbell is looked at: the context is that of its VI, `push_token` its token.
            posting: Bit,
            acked_valid: Bit,
            acked_vi: Bits<16>,
            acked_left: Bit,
            done: Bit,
            need_next: Bit,
            /// `vi::State`.
            ctx_state: Bits<2>,
            ctx_domain: Bits<8>,
            ctx_tag: Bits<16>,
            /// `vi::Reliability` (1, 2, 4).
            ctx_reliability: Bits<3>,
            ctx_peer: Bits<8>,
            ctx_peer_vi: Bits<16>,
            ctx_connection: Bits<16>,
            ctx_max_transfer: Bits<20>,
            /// RDMA that the peer's VI allows, see `vi::rdma`.
            ctx_allows: Bits<2>,
            /// Head token of the send queue; when awaiting: the popped one.
            ctx_region: Bits<16>,
            ctx_offset: Bits<26>,
            ctx_segments: Bits<5>,
            /// Posted count of the send queue.
            ctx_count: Bits<16>,
            ctx_in_progress: Bit,
            /// Bytes of the message already sent; when awaiting: its length.
            ctx_progress: Bits<19>,
            /// Unreliable: number of the message in progress or next; modulo 256 (counts messages
            /// of which a frame was sent).
            ctx_message: Bits<8>,
            ctx_fragment: Bits<8>,
            /// A Reception send waits for its ViAck / has it.
            ctx_awaiting: Bit,
            ctx_acked: Bit,
            /// Owed: 1 ViAck, 2 ViRefuse, 4 Fin.
            ctx_control_pending: Bits<3>,
            /// Reason to put into the pending ViRefuse.
            ctx_refuse_reason: Bits<8>,
            /// The answer to an RDMA read of this VI is waited for: nothing else is sent.
            ctx_reading: Bit,
            /// An answer to the peer is pending: the bytes that are left of it.
            ctx_answer: Bit,
            ctx_answer_address: Bits<64>,
            ctx_answer_handle: Bits<32>,
            ctx_answer_left: Bits<19>,
        }
    }
}

interface! {
    /// The receive engine's view of the VI of its frame. Operations are calls:
    ///
    /// | op | arguments | effect |
    /// |---|---|---|
    /// | 0 GET | vi | results `ctx_*` (a VI number >= 1,024 gives state Free) |
    /// | 1 SAVE | vi, in_progress, write, offset, total, message, fragment, need_ack | store message progress; a ViAck becomes pending |
    /// | 2 POP | vi, next_valid, next_region, next_offset | as for send; clears progress |
    /// | 3 ANSWER | vi, address, handle, total | the answer to an RDMA read is pending |
    /// | 5 STOP | vi, reason, detail, queue, status, refuse | as for send; `detail`: peer's reason |
    /// | 6 ACKED | vi | a ViAck arrived (the VIs count Unmatched if no send waits) |
    ///
    /// With `sends`, GET, SAVE (offset alone) and POP are about the send queue, whose head is an RDMA read
    /// that is being answered: `ctx_in_progress` says so, `ctx_progress` and `ctx_total` how far it is.
    ViRecvClient / ViRecvServer, "ViRecvClient", "ViRecvServer" {
        out {
            valid: Bit,
            op: Bits<3>,
            vi: Bits<16>,
            in_progress: Bit,
            /// The message in progress is an RDMA write.
            write: Bit,
            /// Bytes of the message already placed.
            offset: Bits<19>,
            /// Length of the whole message.
            total: Bits<19>,
            message: Bits<8>,
            fragment: Bits<8>,
            next_valid: Bit,
            next_region: Bits<16>,
            next_offset: Bits<26>,
            need_ack: Bit,
            sends: Bit,
            /// ANSWER: the memory that the peer asks for.
            address: Bits<64>,
            handle: Bits<32>,
            reason: Bits<8>,
            detail: Bits<8>,
            status: Bits<32>,
            queue: Bit,
            refuse: Bit,
        }
        back {
            done: Bit,
            need_next: Bit,
            ctx_state: Bits<2>,
            ctx_domain: Bits<8>,
            ctx_tag: Bits<16>,
            ctx_reliability: Bits<3>,
            ctx_peer: Bits<8>,
            ctx_peer_vi: Bits<16>,
            ctx_connection: Bits<16>,
            ctx_region: Bits<16>,
            ctx_offset: Bits<26>,
            ctx_segments: Bits<5>,
            ctx_count: Bits<16>,
            ctx_in_progress: Bit,
            ctx_write: Bit,
            ctx_progress: Bits<19>,
            ctx_total: Bits<19>,
            ctx_message: Bits<8>,
            ctx_fragment: Bits<8>,
            /// RDMA that the VI allows its peer, see `vi::rdma`.
            ctx_allows: Bits<2>,
            /// An answer is pending already.
            ctx_answering: Bit,
            /// Pulse: a receive descriptor was posted to this VI.
            posted: Bit,
            posted_vi: Bits<16>,
        }
    }
}

interface! {
    /// The receive engine's completer: a call says that the status of a descriptor that left its queue
    /// is written; report it, and a ViAck becomes pending. With `sends` it is that of an RDMA read: the VI sends
    /// nothing of its own before this call, so statuses keep their order. Calls overlap with those of
    /// [`ViRecvClient`] and [`ViLookClient`].
    ViCompleteClient / ViCompleteServer, "ViCompleteClient", "ViCompleteServer" {
        out {
            valid: Bit,
            vi: Bits<10>,
            need_ack: Bit,
            sends: Bit,
        }
        back {
            done: Bit,
        }
    }
}

interface! {
    /// The receive engine's prefetcher: a call reads what a VI's receive queue holds.
    ViLookClient / ViLookServer, "ViLookClient", "ViLookServer" {
        out {
            valid: Bit,
            vi: Bits<10>,
        }
        back {
            done: Bit,
            state: Bits<2>,
            domain: Bits<8>,
            tag: Bits<16>,
            region: Bits<16>,
            offset: Bits<26>,
            segments: Bits<5>,
            count: Bits<16>,
        }
    }
}

interface! {
    /// Inside the VIs: what the receive engine does to a VI's send queue, for RDMA reads (pulses), and
    /// what it is told of it.
    AskerClient / AskerServer, "AskerClient", "AskerServer" {
        out {
            /// So many bytes of the head, an RDMA read, are placed.
            place: Bit,
            offset: Bits<19>,
            /// It leaves the queue (region 15:0, offset 41:16 of its successor); it is complete.
            pop: Bit,
            next_valid: Bit,
            next_token: Bits<42>,
            complete: Bit,
            /// The peer asks for this memory.
            need: Bit,
            address: Bits<64>,
            handle: Bits<32>,
            left: Bits<19>,
        }
        back {
            /// An answer is waited for: bytes placed, in all.
            reading: Bit,
            placed: Bits<19>,
            total: Bits<19>,
            /// Head (segments 46:42) and posted count of the queue.
            head: Bits<47>,
            posted: Bits<16>,
            need_next: Bit,
            /// An answer is pending.
            answering: Bit,
        }
    }
}

interface! {
    /// Admin's operations on VIs (call). op 0 CREATE, 1 DESTROY, 2 CONNECT, 3 DISCONNECT, 4 QUERY.
    /// Arguments were range-checked by admin. `status`: `admin::AdminStatus` (Ok, BadState, Busy);
    /// `result`: of QUERY.
    ViAdminClient / ViAdminServer, "ViAdminClient", "ViAdminServer" {
        out {
            valid: Bit,
            op: Bits<3>,
            vi: Bits<16>,
            domain: Bits<8>,
            reliability: Bits<3>,
            tag: Bits<16>,
            send_queue: Bits<16>,
            recv_queue: Bits<16>,
            max_transfer: Bits<20>,
            /// RDMA (`vi::rdma`): CREATE, what the VI allows; CONNECT, what the peer's VI allows.
            allows: Bits<2>,
            peer: Bits<8>,
            peer_vi: Bits<16>,
            connection: Bits<16>,
        }
        back {
            done: Bit,
            status: Bits<4>,
            result: Bits<32>,
        }
    }
}

interface! {
    /// Event records (call). `wide`: a message; the server reads its six beats with
    /// `message_index`, data in the next cycle. `outcome` 0: written; 1: full, keep it (the queue
    /// then drains later); 2: absent (or narrow for a message).
    EventClient / EventServer, "EventClient", "EventServer" {
        out {
            valid: Bit,
            queue: Bits<16>,
            word0: Bits<32>,
            word1: Bits<32>,
            word2: Bits<32>,
            wide: Bit,
            message_data: Bits<64>,
        }
        back {
            done: Bit,
            outcome: Bits<2>,
            message_index: Bits<3>,
        }
    }
}

interface! {
    /// Event queue set-up (call). op 0 EventCreate, 1 EventDestroy, 2 MessageQueue (index: domain,
    /// queue). `status` as in `AdminStatus`.
    EventAdminClient / EventAdminServer, "EventAdminClient", "EventAdminServer" {
        out {
            valid: Bit,
            op: Bits<2>,
            index: Bits<16>,
            base: Bits<64>,
            log2: Bits<4>,
            wide: Bit,
            domain: Bits<8>,
            vector: Bits<8>,
            queue: Bits<16>,
        }
        back {
            done: Bit,
            status: Bits<4>,
        }
    }
}

interface! {
    /// Frames to send. First the question (call): may a frame of this kind and payload length to
    /// this peer enter the channel now? Then the payload as beats (stream, packed from byte 0, last
    /// beat zero-padded by the client), then commit or abort (call). Chunks are reserved by a good
    /// answer and given back by abort. A frame may be asked for while the one before is brought
    /// (up to four at a time): beats, commits and aborts come in the order of the good answers, no
    /// more beats than the length has, and those of a frame behind the commit or abort of the one
    /// before. The next question may come in the cycle after an answer.
    PoolClient / PoolServer, "PoolClient", "PoolServer" {
        out {
            ask_valid: Bit,
            /// Only a question: a good answer reserves nothing.
            ask_probe: Bit,
            /// A Data frame (else a control or message frame).
            ask_data: Bit,
            ask_sequenced: Bit,
            ask_peer: Bits<8>,
            ask_length: Bits<13>,
            beat_valid: Bit,
            beat_data: Bits<64>,
            commit_valid: Bit,
            commit_abort: Bit,
            /// `frame::Type`.
            kind: Bits<8>,
            dst_vi: Bits<16>,
            src_vi: Bits<16>,
            connection: Bits<16>,
            flags: Bits<8>,
            /// Message and fragment number of Unreliable data.
            unsequenced: Bits<16>,
            word: Bits<32>,
        }
        back {
            ask_done: Bit,
            ask_ok: Bit,
            /// The peer's channel is not open.
            ask_down: Bit,
            beat_ready: Bit,
            commit_done: Bit,
        }
    }
}

interface! {
    /// Received frames, oldest first. While `valid`, header beats and `base` are stable. `take`
    /// (pulse) puts the offered frame into the client's hand, where up to 16 can be, and the next
    /// one is offered. Payload beat n (packed from byte 0) of a frame, in flight or offered, is read
    /// with `address` = n and `origin` = its `base`, data in the next cycle. `release` (pulse) gives
    /// back the staging memory of the oldest frame in flight, or of the offered one if there is none:
    /// a client that never takes has one frame at a time. When the offered frame is taken or
    /// released, `valid` is low for at least one cycle.
    StagingClient / StagingServer, "StagingClient", "StagingServer" {
        out {
            address: Bits<10>,
            origin: Bits<12>,
            take: Bit,
            release: Bit,
            /// Pulse, with `release` or before: the frame that is released next is a message that
            /// was refused; send MessageRefused to its source.
            refused: Bit,
        }
        back {
            valid: Bit,
            header0: Bits<64>,
            header1: Bits<64>,
            header2: Bits<64>,
            /// Place of its payload.
            base: Bits<12>,
            data: Bits<64>,
        }
    }
}

interface! {
    /// Messages to send (call). The server reads the six beats with `index`, data in the next
    /// cycle. `status` as in `AdminStatus`: Ok, PeerDown, Busy.
    MessageClient / MessageServer, "MessageClient", "MessageServer" {
        out {
            valid: Bit,
            peer: Bits<8>,
            domain: Bits<8>,
            data: Bits<64>,
        }
        back {
            done: Bit,
            status: Bits<4>,
            index: Bits<3>,
        }
    }
}

interface! {
    /// Peers (call). op 0 open, 1 close, 2 query. `status` as in `AdminStatus`; `state`:
    /// `admin::PeerState`.
    PeerClient / PeerServer, "PeerClient", "PeerServer" {
        out {
            valid: Bit,
            op: Bits<2>,
            peer: Bits<8>,
            epoch: Bits<32>,
            credits: Bits<8>,
        }
        back {
            done: Bit,
            status: Bits<4>,
            state: Bits<4>,
        }
    }
}

interface! {
    /// Stop every VI connected to `peer` (call; takes a scan of all VIs).
    KillClient / KillServer, "KillClient", "KillServer" {
        out {
            valid: Bit,
            peer: Bits<8>,
        }
        back {
            done: Bit,
        }
    }
}

interface! {
    /// A deferring event queue has room again (call; the answer comes when the scan of all VIs is
    /// over or the queue is full again). `queue` bit 15: try ViErrors, else completions.
    DrainClient / DrainServer, "DrainClient", "DrainServer" {
        out {
            valid: Bit,
            queue: Bits<16>,
        }
        back {
            done: Bit,
        }
    }
}

interface! {
    /// Register accesses in BAR0 (call). `bad`: not one whole aligned dword.
    RegClient / RegServer, "RegClient", "RegServer" {
        out {
            valid: Bit,
            write: Bit,
            bad: Bit,
            offset: Bits<16>,
            wdata: Bits<32>,
        }
        back {
            done: Bit,
            rdata: Bits<32>,
        }
    }
}

interface! {
    /// Accesses to the MSI-X table (call). `index`: dword of the table, 0 to 127.
    MsixClient / MsixServer, "MsixClient", "MsixServer" {
        out {
            valid: Bit,
            write: Bit,
            index: Bits<7>,
            wdata: Bits<32>,
        }
        back {
            done: Bit,
            rdata: Bits<32>,
        }
    }
}

interface! {
    /// Fence: while `pause` is high the server starts nothing new; `paused` rises when nothing it
    /// approved before is still to come (its last write accepted, its last read answered), and
    /// falls after `pause` does.
    FenceClient / FenceServer, "FenceClient", "FenceServer" {
        out {
            pause: Bit,
        }
        back {
            paused: Bit,
        }
    }
}
