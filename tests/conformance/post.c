/* Posting descriptors and taking them back: what a message does, what is refused. */
#define _GNU_SOURCE
#include "frame.h"

static void fill(const side_t *n, unsigned at, unsigned length, unsigned seed)
{
    for (unsigned i = 0; i < length; i++)
        n->memory[DATA_OFFSET + at + i] = (unsigned char)(seed + i * 7 + (i >> 8));
}

static void is_filled(const side_t *n, unsigned at, unsigned length, unsigned seed)
{
    for (unsigned i = 0; i < length; i++)
        if (n->memory[DATA_OFFSET + at + i] != (unsigned char)(seed + i * 7 + (i >> 8)))
            fail(__FILE__, __LINE__, "byte %u of %u is wrong", i, length);
}

/* Sends `length` bytes from a to b and checks all of it. */
static void exchange(pair_t *p, unsigned length)
{
    VIP_DESCRIPTOR *done, *recv = one_segment(&p->b, 0, 0, length), *send;
    memset(p->b.memory + DATA_OFFSET, 0xee, length);
    fill(&p->a, 0, length, length);
    OK(VipPostRecv(p->vb, recv, p->b.handle));
    send = one_segment(&p->a, 0, 0, length);
    OK(VipPostSend(p->va, send, p->a.handle));
    OK(VipRecvWait(p->vb, LONG, &done));
    CHECK(done == recv);
    SAME(done->CS.Length, length);
    SAME(done->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE);
    OK(VipSendWait(p->va, LONG, &done));
    CHECK(done == send);
    SAME(done->CS.Length, length);
    SAME(done->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_SEND);
    is_filled(&p->b, 0, length, length);
}

#define LENGTH_ROW(length)                                                                         \
    ROW_LEVELS(EARLY, send_##length##_bytes, "VipPostSend", "a message of " #length " bytes")      \
    {                                                                                              \
        (void)level;                                                                               \
        exchange(p, length);                                                                       \
    }
LENGTH_ROW(1)
LENGTH_ROW(40)
LENGTH_ROW(41)
LENGTH_ROW(4096)
LENGTH_ROW(4097)
LENGTH_ROW(65472)

ROW_LEVELS(EARLY, send_the_longest, "VipPostSend", "a message of MaxTransferSize bytes")
{
    (void)level;
    exchange(p, (unsigned)p->a.attributes.MaxTransferSize);
}

static void exchange_empty(pair_t *p, VIP_UINT16 segments)
{
    VIP_DESCRIPTOR *done, *send = one_segment(&p->a, 0, 0, 0), *recv = one_segment(&p->b, 0, 0, 0);
    send->CS.SegCount = segments;
    recv->CS.SegCount = segments;
    OK(VipPostRecv(p->vb, recv, p->b.handle));
    OK(VipPostSend(p->va, send, p->a.handle));
    OK(VipRecvWait(p->vb, LONG, &done));
    SAME(done->CS.Length, 0);
    OK(VipSendWait(p->va, LONG, &done));
}

ROW_LEVELS(EARLY, send_nothing_without_segments, "VipPostSend", "an empty message, no segments")
{
    (void)level;
    exchange_empty(p, 0);
}

ROW_LEVELS(EARLY, send_nothing_with_a_segment, "VipPostSend", "an empty message, an empty segment")
{
    (void)level;
    exchange_empty(p, 1);
}

ROW_LEVELS(EARLY, send_immediate, "VipPostSend", "immediate data arrive, and only when sent")
{
    VIP_DESCRIPTOR *done, *send = one_segment(&p->a, 0, 0, 8), *recv = one_segment(&p->b, 0, 0, 8);
    (void)level;
    send->CS.Control |= VIP_CONTROL_IMMEDIATE;
    send->CS.ImmediateData = 0xfeedf00d;
    OK(VipPostRecv(p->vb, recv, p->b.handle));
    OK(VipPostSend(p->va, send, p->a.handle));
    OK(VipRecvWait(p->vb, LONG, &done));
    SAME(done->CS.ImmediateData, 0xfeedf00d);
    SAME(done->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_IMMEDIATE);
    OK(VipSendWait(p->va, LONG, &done));
    recv = one_segment(&p->b, 0, 0, 8);
    recv->CS.ImmediateData = 0x11223344;
    OK(VipPostRecv(p->vb, recv, p->b.handle));
    OK(VipPostSend(p->va, one_segment(&p->a, 0, 0, 8), p->a.handle));
    OK(VipRecvWait(p->vb, LONG, &done));
    SAME(done->CS.ImmediateData, 0x11223344);
    SAME(done->CS.Status & VIP_STATUS_IMMEDIATE, 0);
}

ROW_CONNECTED(EARLY, send_with_data_names, "VipPostSend", "the names Control and Data")
{
    VIP_DESCRIPTOR *done, *send = descriptor(&p->a, 0), *recv = one_segment(&p->b, 0, 0, 64);
    fill(&p->a, 0, 33, 3);
    send->Control.SegCount = 1;
    send->Control.Length = 33;
    send->Data[0].Data.AddressBits = (VIP_UINT64)(size_t)(p->a.memory + DATA_OFFSET);
    send->Data[0].Handle = p->a.handle;
    send->Data[0].Length = 33;
    OK(VipPostRecv(p->vb, recv, p->b.handle));
    OK(VipPostSend(p->va, send, p->a.handle));
    OK(VipRecvWait(p->vb, LONG, &done));
    SAME(done->Control.Length, 33);
    is_filled(&p->b, 0, 33, 3);
}

ROW_LEVELS(EARLY, gather_and_scatter, "VipPostSend", "MaxSegmentsPerDesc segments on both sides")
{
    unsigned count = (unsigned)p->a.attributes.MaxSegmentsPerDesc, total = 0, at = 0;
    VIP_DESCRIPTOR *done, *send = descriptor(&p->a, 0), *recv = descriptor(&p->b, 0);
    (void)level;
    CHECK(count <= 64);
    for (unsigned i = 0; i < count; i++) {
        unsigned length = 1 + i * 37 % 200;
        set_segment(send, i, p->a.memory + DATA_OFFSET + total, p->a.handle, length);
        total += length;
    }
    fill(&p->a, 0, total, 5);
    for (unsigned i = 0; i < count; i++) {
        unsigned length = i + 1 < count ? total / count : total - at;
        set_segment(recv, i, p->b.memory + DATA_OFFSET + at, p->b.handle, length);
        at += length;
    }
    send->CS.SegCount = recv->CS.SegCount = (VIP_UINT16)count;
    send->CS.Length = recv->CS.Length = total;
    OK(VipPostRecv(p->vb, recv, p->b.handle));
    OK(VipPostSend(p->va, send, p->a.handle));
    OK(VipRecvWait(p->vb, LONG, &done));
    SAME(done->CS.Length, total);
    is_filled(&p->b, 0, total, 5);
}

ROW_LEVELS(EARLY, sends_arrive_in_order, "VipPostSend", "200 messages, in order")
{
    VIP_DESCRIPTOR *done;
    (void)level;
    for (unsigned i = 0; i < 200; i++)
        OK(VipPostRecv(p->vb, one_segment(&p->b, i, 64 * i, 64), p->b.handle));
    for (unsigned i = 0; i < 200; i++) {
        VIP_DESCRIPTOR *d = one_segment(&p->a, i, 0, 16);
        d->CS.Control |= VIP_CONTROL_IMMEDIATE;
        d->CS.ImmediateData = i;
        OK(VipPostSend(p->va, d, p->a.handle));
    }
    for (unsigned i = 0; i < 200; i++) {
        OK(VipRecvWait(p->vb, LONG, &done));
        SAME(done->CS.ImmediateData, i);
        CHECK(done == (VIP_DESCRIPTOR *)(void *)(p->b.memory + 64 * i));
        OK(VipSendWait(p->va, LONG, &done));
        CHECK(done == (VIP_DESCRIPTOR *)(void *)(p->a.memory + 64 * i));
    }
}

ROW_CONNECTED(EARLY, post_send_until_full, "VipPostSend",
              "MaxDescriptorsPerQueue sends fit, one more: VIP_ERROR_RESOURCE")
{
    VIP_ULONG limit = p->a.attributes.MaxDescriptorsPerQueue;
    VIP_VI_HANDLE idle = vi_create(&p->a, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_DESCRIPTOR *done;
    CHECK(limit <= 1024);
    for (VIP_ULONG i = 0; i < limit; i++)
        OK(VipPostSend(idle, one_segment(&p->a, (unsigned)i, 0, 8), p->a.handle));
    GIVES(VipPostSend(idle, one_segment(&p->a, 1100, 0, 8), p->a.handle), VIP_ERROR_RESOURCE);
    GIVES(VipSendDone(idle, &done), VIP_DESCRIPTOR_ERROR);
    OK(VipPostSend(idle, one_segment(&p->a, 1100, 0, 8), p->a.handle));
}

ROW_NIC(EARLY, post_recv_until_full, "VipPostRecv",
        "MaxDescriptorsPerQueue receives fit, one more: VIP_ERROR_RESOURCE")
{
    VIP_ULONG limit = n->attributes.MaxDescriptorsPerQueue;
    VIP_VI_HANDLE vi = vi_create(n, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    for (VIP_ULONG i = 0; i < limit; i++)
        OK(VipPostRecv(vi, one_segment(n, (unsigned)(i % 1024), 0, 8), n->handle));
    GIVES(VipPostRecv(vi, one_segment(n, 0, 0, 8), n->handle), VIP_ERROR_RESOURCE);
}

#define POST_BAD(row, what, place, handle)                                                         \
    ROW_NIC(EARLY, post_send_##row, "VipPostSend", what ": VIP_INVALID_PARAMETER")                 \
    {                                                                                              \
        VIP_VI_HANDLE vi = vi_create(n, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);                \
        one_segment(n, 0, 0, 8);                                                                   \
        GIVES(VipPostSend(vi, (VIP_DESCRIPTOR *)(place), handle), VIP_INVALID_PARAMETER);          \
    }                                                                                              \
    ROW_NIC(EARLY, post_recv_##row, "VipPostRecv", what ": VIP_INVALID_PARAMETER")                 \
    {                                                                                              \
        VIP_VI_HANDLE vi = vi_create(n, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);                \
        one_segment(n, 0, 0, 8);                                                                   \
        GIVES(VipPostRecv(vi, (VIP_DESCRIPTOR *)(place), handle), VIP_INVALID_PARAMETER);          \
    }
POST_BAD(misaligned, "a descriptor at a multiple of 32 bytes", (size_t)n->memory + 32, n->handle)
POST_BAD(outside, "a descriptor behind its region", (size_t)n->memory + MEMORY_BYTES, n->handle)
POST_BAD(before, "a descriptor before its region", (size_t)n->memory - 64, n->handle)
POST_BAD(handle_zero, "memory handle 0", n->memory, 0)
POST_BAD(handle_stale, "a memory handle of another generation", n->memory, n->handle + 0x10000)
POST_BAD(handle_made_up, "a memory handle that was never given", n->memory, 0xffffffffu)

ROW_CONNECTED(EARLY, post_clears_stale_fields, "VipPostRecv",
              "Next and Status of an earlier use are overwritten")
{
    VIP_DESCRIPTOR *done, *recv = one_segment(&p->b, 0, 0, 64), *send = one_segment(&p->a, 0, 0, 9);
    recv->CS.Status = send->CS.Status = VIP_STATUS_DONE | VIP_STATUS_FORMAT_ERROR;
    recv->CS.Next.AddressBits = send->CS.Next.AddressBits = ~(VIP_UINT64)0;
    recv->CS.NextHandle = send->CS.NextHandle = 0xdead;
    OK(VipPostRecv(p->vb, recv, p->b.handle));
    GIVES(VipRecvDone(p->vb, &done), VIP_NOT_DONE);
    OK(VipPostSend(p->va, send, p->a.handle));
    OK(VipRecvWait(p->vb, LONG, &done));
    SAME(done->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE);
    OK(VipSendWait(p->va, LONG, &done));
    SAME(done->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_SEND);
}

ROW_CONNECTED(EARLY, post_recv_with_immediate_bit, "VipPostRecv",
              "the bit VIP_CONTROL_IMMEDIATE in a receive is taken")
{
    VIP_DESCRIPTOR *done, *recv = one_segment(&p->b, 0, 0, 64);
    recv->CS.Control |= VIP_CONTROL_IMMEDIATE;
    OK(VipPostRecv(p->vb, recv, p->b.handle));
    OK(VipPostSend(p->va, one_segment(&p->a, 0, 0, 9), p->a.handle));
    OK(VipRecvWait(p->vb, LONG, &done));
    SAME(done->CS.Length, 9);
}

ROW_TWO(EARLY, post_recv_before_connecting, "VipPostRecv",
        "an idle VI keeps its receives for the connection")
{
    VIP_VI_HANDLE va = vi_create(&p->a, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_VI_HANDLE vb = vi_create(&p->b, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_DESCRIPTOR *done;
    for (unsigned i = 0; i < 4; i++)
        OK(VipPostRecv(vb, one_segment(&p->b, i, 64 * i, 64), p->b.handle));
    vi_connect(&p->a, va, &p->b, vb);
    for (unsigned i = 0; i < 4; i++) {
        OK(VipPostSend(va, one_segment(&p->a, i, 0, 10 + i), p->a.handle));
        OK(VipRecvWait(vb, LONG, &done));
        SAME(done->CS.Length, 10 + i);
    }
}

ROW_NIC(EARLY, post_send_idle, "VipPostSend", "on an idle VI: done at once, flushed")
{
    VIP_VI_HANDLE vi = vi_create(n, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_DESCRIPTOR *done, *send = one_segment(n, 0, 0, 8);
    OK(VipPostSend(vi, send, n->handle));
    GIVES(VipSendDone(vi, &done), VIP_DESCRIPTOR_ERROR);
    CHECK(done == send);
    SAME(done->CS.Status, VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_OP_SEND);
}

#define EMPTY_ROW(row, function, call, code, text)                                                 \
    ROW_NIC(EARLY, row, function, text)                                                            \
    {                                                                                              \
        VIP_VI_HANDLE vi = vi_create(n, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);                \
        VIP_DESCRIPTOR *done = (VIP_DESCRIPTOR *)(void *)n->memory;                                \
        GIVES(call, code);                                                                         \
        CHECK(done == NULL);                                                                       \
    }
EMPTY_ROW(send_done_nothing_posted, "VipSendDone", VipSendDone(vi, &done), VIP_DESCRIPTOR_ERROR,
          "nothing posted: VIP_DESCRIPTOR_ERROR and NULL")
EMPTY_ROW(recv_done_nothing_posted, "VipRecvDone", VipRecvDone(vi, &done), VIP_DESCRIPTOR_ERROR,
          "nothing posted: VIP_DESCRIPTOR_ERROR and NULL")
EMPTY_ROW(send_wait_nothing_posted, "VipSendWait", VipSendWait(vi, VIP_INFINITE, &done),
          VIP_DESCRIPTOR_ERROR, "nothing posted: VIP_DESCRIPTOR_ERROR and NULL, at once")
EMPTY_ROW(recv_wait_nothing_posted, "VipRecvWait", VipRecvWait(vi, VIP_INFINITE, &done),
          VIP_DESCRIPTOR_ERROR, "nothing posted: VIP_DESCRIPTOR_ERROR and NULL, at once")

ROW_CONNECTED(EARLY, recv_done_not_done, "VipRecvDone", "not finished: VIP_NOT_DONE")
{
    VIP_DESCRIPTOR *done;
    OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 0, 8), p->b.handle));
    for (int i = 0; i < 100; i++)
        GIVES(VipRecvDone(p->vb, &done), VIP_NOT_DONE);
}

ROW_CONNECTED(EARLY, recv_wait_times_out, "VipRecvWait", "not finished in time: VIP_TIMEOUT")
{
    VIP_DESCRIPTOR *done;
    OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 0, 8), p->b.handle));
    GIVES(VipRecvWait(p->vb, 0, &done), VIP_TIMEOUT);
    GIVES(VipRecvWait(p->vb, 1, &done), VIP_TIMEOUT);
    GIVES(VipRecvWait(p->vb, 50, &done), VIP_TIMEOUT);
}

ROW_CONNECTED(EARLY, recv_wait_timed_out_receive_still_good, "VipRecvWait",
              "after a time-out the receive is still posted")
{
    VIP_DESCRIPTOR *done;
    OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 0, 8), p->b.handle));
    GIVES(VipRecvWait(p->vb, 1, &done), VIP_TIMEOUT);
    OK(VipPostSend(p->va, one_segment(&p->a, 0, 0, 8), p->a.handle));
    OK(VipRecvWait(p->vb, LONG, &done));
}

#define TIMEOUT_ROW(row, ms, text)                                                                 \
    ROW_CONNECTED(EARLY, recv_wait_##row, "VipRecvWait", text)                                     \
    {                                                                                              \
        VIP_DESCRIPTOR *done;                                                                      \
        OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 0, 8), p->b.handle));                          \
        OK(VipPostSend(p->va, one_segment(&p->a, 0, 0, 8), p->a.handle));                          \
        OK(VipRecvWait(p->vb, ms, &done));                                                         \
        OK(VipSendWait(p->va, ms, &done));                                                         \
    }
TIMEOUT_ROW(infinite, VIP_INFINITE, "VIP_INFINITE")
TIMEOUT_ROW(windows_infinite, 0xffffffffu, "0xFFFFFFFF is without end too")
TIMEOUT_ROW(very_long, 0xfffffffeu, "the longest time-out that ends")
TIMEOUT_ROW(huge, (VIP_ULONG)1 << 63, "a huge time-out")

typedef struct {
    pair_t *p;
    VIP_RETURN code;
} waiter_t;

static void wait_long(void *argument)
{
    waiter_t *w = argument;
    VIP_DESCRIPTOR *done;
    w->code = VipRecvWait(w->p->vb, VIP_INFINITE, &done);
}

ROW_CONNECTED(EARLY, recv_done_beside_a_waiter, "VipRecvDone",
              "does not block behind VipRecvWait of another thread")
{
    waiter_t w = {p, VIP_NOT_DONE};
    VIP_DESCRIPTOR *done;
    OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 0, 8), p->b.handle));
    thread_t *thread = thread_start(wait_long, &w);
    sleep_ms(20);
    GIVES(VipRecvDone(p->vb, &done), VIP_NOT_DONE);
    OK(VipPostSend(p->va, one_segment(&p->a, 0, 0, 8), p->a.handle));
    thread_join(thread);
    SAME(w.code, VIP_SUCCESS);
}

ROW_CONNECTED(EARLY, recv_wait_ends_with_the_connection, "VipRecvWait",
              "the other side disconnects: the waiter gets its descriptor, flushed")
{
    waiter_t w = {p, VIP_NOT_DONE};
    OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 0, 8), p->b.handle));
    thread_t *thread = thread_start(wait_long, &w);
    sleep_ms(20);
    OK(VipDisconnect(p->va));
    thread_join(thread);
    SAME(w.code, VIP_DESCRIPTOR_ERROR);
}

ROW_CONNECTED(EARLY, receives_share_a_buffer, "VipPostRecv", "several receives into one buffer")
{
    VIP_DESCRIPTOR *done;
    for (unsigned i = 0; i < 8; i++)
        OK(VipPostRecv(p->vb, one_segment(&p->b, i, 0, 64), p->b.handle));
    for (unsigned i = 0; i < 8; i++) {
        fill(&p->a, 0, 20, i);
        OK(VipPostSend(p->va, one_segment(&p->a, 0, 0, 20), p->a.handle));
        OK(VipRecvWait(p->vb, LONG, &done));
        is_filled(&p->b, 0, 20, i);
        OK(VipSendWait(p->va, LONG, &done));
    }
}
