/* What goes wrong with descriptors, by reliability level. */
#define _GNU_SOURCE
#include "frame.h"

static int is_reliable(VIP_RELIABILITY_LEVEL level) { return level != VIP_SERVICE_UNRELIABLE; }

/* Sends a descriptor that is in error; it must end so, and the VI as its level says. */
static void bad_send(pair_t *p, VIP_RELIABILITY_LEVEL level, VIP_DESCRIPTOR *d, VIP_UINT32 bit)
{
    VIP_DESCRIPTOR *done;
    OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 0, 64), p->b.handle));
    OK(VipPostSend(p->va, d, p->a.handle));
    GIVES(VipSendWait(p->va, LONG, &done), VIP_DESCRIPTOR_ERROR);
    CHECK(done == d);
    SAME(done->CS.Status & VIP_STATUS_ERROR_MASK, bit);
    CHECK(done->CS.Status & VIP_STATUS_DONE);
    if (is_reliable(level)) {
        vi_await(p->va, VIP_STATE_ERROR);
    } else {
        /* It stays connected, and works. */
        SAME(vi_state(p->va), VIP_STATE_CONNECTED);
        OK(VipPostSend(p->va, one_segment(&p->a, 9, 0, 9), p->a.handle));
        OK(VipRecvWait(p->vb, LONG, &done));
        SAME(done->CS.Length, 9);
    }
}

#define BAD_SEND(row, text, bit, change)                                                           \
    ROW_LEVELS(EARLY, send_with_##row, "VipSendWait", text ": " #bit)                              \
    {                                                                                              \
        VIP_DESCRIPTOR *d = one_segment(&p->a, 0, 0, 32);                                          \
        change;                                                                                    \
        bad_send(p, level, d, bit);                                                                \
    }
BAD_SEND(reserved_control_bits, "reserved bits in Control", VIP_STATUS_FORMAT_ERROR,
         d->CS.Control |= 0x10)
BAD_SEND(reserved_operation, "operation 3", VIP_STATUS_FORMAT_ERROR,
         d->CS.Control |= VIP_CONTROL_OP_RESERVED)
BAD_SEND(reserved_field, "Reserved not 0", VIP_STATUS_FORMAT_ERROR, d->CS.Reserved = 1)
BAD_SEND(too_many_segments, "SegCount over the limit", VIP_STATUS_FORMAT_ERROR,
         d->CS.SegCount = (VIP_UINT16)(p->a.attributes.MaxSegmentsPerDesc + 1))
BAD_SEND(wild_segment_count, "SegCount 65,535", VIP_STATUS_FORMAT_ERROR, d->CS.SegCount = 0xffff)
BAD_SEND(bad_segment_handle, "a segment with handle 0", VIP_STATUS_PROTECTION_ERROR,
         d->DS[0].Local.Handle = 0)
BAD_SEND(segment_outside, "a segment that leaves its region", VIP_STATUS_PROTECTION_ERROR,
         d->DS[0].Local.Data.AddressBits = (size_t)p->a.memory + MEMORY_BYTES - 16)
BAD_SEND(segment_address_zero, "a segment at address 0", VIP_STATUS_PROTECTION_ERROR,
         d->DS[0].Local.Data.AddressBits = 0)
BAD_SEND(too_much_data, "more than MaxTransferSize", VIP_STATUS_LENGTH_ERROR,
         d->CS.Length = d->DS[0].Local.Length =
             (VIP_UINT32)p->a.attributes.MaxTransferSize + 1)

ROW_LEVELS(EARLY, send_with_memory_of_another_tag, "VipSendWait",
           "a segment in memory of another tag: VIP_STATUS_PROTECTION_ERROR")
{
    VIP_DESCRIPTOR *d = one_segment(&p->a, 0, 0, 32);
    VIP_MEM_ATTRIBUTES attributes;
    VIP_MEM_HANDLE handle;
    memset(&attributes, 0, sizeof attributes);
    OK(VipCreatePtag(p->a.nic, &attributes.Ptag));
    OK(VipRegisterMem(p->a.nic, p->a.memory, MEMORY_BYTES, &attributes, &handle));
    d->DS[0].Local.Handle = handle;
    bad_send(p, level, d, VIP_STATUS_PROTECTION_ERROR);
}

ROW_LEVELS(EARLY, send_with_deregistered_memory, "VipSendWait",
           "a segment in memory that was deregistered: VIP_STATUS_PROTECTION_ERROR")
{
    VIP_DESCRIPTOR *d = one_segment(&p->a, 0, 0, 32);
    VIP_MEM_ATTRIBUTES attributes;
    VIP_MEM_HANDLE handle;
    memset(&attributes, 0, sizeof attributes);
    attributes.Ptag = p->a.tag;
    OK(VipRegisterMem(p->a.nic, p->a.memory, MEMORY_BYTES, &attributes, &handle));
    OK(VipDeregisterMem(p->a.nic, p->a.memory, handle));
    d->DS[0].Local.Handle = handle;
    bad_send(p, level, d, VIP_STATUS_PROTECTION_ERROR);
}

ROW_RELIABLE(EARLY, error_flushes_the_rest, "VipSendDone",
             "sends behind one in error are flushed, and posted receives too")
{
    VIP_DESCRIPTOR *done, *d;
    (void)level;
    OK(VipPostRecv(p->va, one_segment(&p->a, 20, 0, 64), p->a.handle));
    d = one_segment(&p->a, 0, 0, 32);
    d->DS[0].Local.Handle = 0;
    OK(VipPostSend(p->va, d, p->a.handle));
    for (unsigned i = 1; i < 5; i++)
        OK(VipPostSend(p->va, one_segment(&p->a, i, 0, 8), p->a.handle));
    GIVES(VipSendWait(p->va, LONG, &done), VIP_DESCRIPTOR_ERROR);
    CHECK(done == d && (done->CS.Status & VIP_STATUS_PROTECTION_ERROR));
    for (unsigned i = 1; i < 5; i++) {
        GIVES(VipSendWait(p->va, LONG, &done), VIP_DESCRIPTOR_ERROR);
        SAME(done->CS.Status & VIP_STATUS_ERROR_MASK, VIP_STATUS_DESC_FLUSHED_ERROR);
    }
    GIVES(VipRecvWait(p->va, LONG, &done), VIP_DESCRIPTOR_ERROR);
    SAME(done->CS.Status & VIP_STATUS_ERROR_MASK, VIP_STATUS_DESC_FLUSHED_ERROR);
}

ROW_LEVELS(EARLY, receive_too_short, "VipRecvWait",
           "a message longer than the receive buffer: VIP_STATUS_LENGTH_ERROR")
{
    VIP_DESCRIPTOR *done;
    memset(p->b.memory + DATA_OFFSET, 0x33, 128);
    OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 0, 16), p->b.handle));
    OK(VipPostSend(p->va, one_segment(&p->a, 0, 0, 64), p->a.handle));
    GIVES(VipRecvWait(p->vb, LONG, &done), VIP_DESCRIPTOR_ERROR);
    CHECK(done->CS.Status & VIP_STATUS_LENGTH_ERROR);
    for (unsigned i = 16; i < 128; i++)
        SAME(p->b.memory[DATA_OFFSET + i], 0x33);
    if (is_reliable(level)) {
        vi_await(p->vb, VIP_STATE_ERROR);
        vi_await(p->va, VIP_STATE_ERROR);
    } else {
        SAME(vi_state(p->vb), VIP_STATE_CONNECTED);
    }
}

ROW_LEVELS(EARLY, receive_beyond_its_region, "VipRecvWait",
           "a receive longer than its memory: what fits arrives, for more VIP_STATUS_PROTECTION_ERROR")
{
    const unsigned at = MEMORY_BYTES - DATA_OFFSET - 64;
    VIP_DESCRIPTOR *done;
    for (unsigned i = 0; i < 2; i++)
        OK(VipPostRecv(p->vb, one_segment(&p->b, i, at, 65472), p->b.handle));
    memset(p->a.memory + DATA_OFFSET, 0x5a, 65);
    OK(VipPostSend(p->va, one_segment(&p->a, 0, 0, 64), p->a.handle));
    OK(VipRecvWait(p->vb, LONG, &done));
    SAME(done->CS.Length, 64);
    CHECK(!memcmp(p->b.memory + DATA_OFFSET + at, p->a.memory + DATA_OFFSET, 64));
    OK(VipPostSend(p->va, one_segment(&p->a, 1, 0, 65), p->a.handle));
    GIVES(VipRecvWait(p->vb, LONG, &done), VIP_DESCRIPTOR_ERROR);
    CHECK(done->CS.Status & VIP_STATUS_PROTECTION_ERROR);
    if (is_reliable(level)) {
        vi_await(p->vb, VIP_STATE_ERROR);
        vi_await(p->va, VIP_STATE_ERROR);
    } else {
        SAME(vi_state(p->vb), VIP_STATE_CONNECTED);
    }
}

ROW_CONNECTED(EARLY, receive_too_short_sender, "VipSendWait",
              "reliable reception: the sender sees VIP_STATUS_REMOTE_DESC_ERROR")
{
    VIP_DESCRIPTOR *done;
    OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 0, 16), p->b.handle));
    OK(VipPostSend(p->va, one_segment(&p->a, 0, 0, 64), p->a.handle));
    GIVES(VipSendWait(p->va, LONG, &done), VIP_DESCRIPTOR_ERROR);
    CHECK(done->CS.Status & VIP_STATUS_REMOTE_DESC_ERROR);
}

ROW_RELIABLE(EARLY, nothing_posted_to_receive, "VipSendWait",
             "no receive posted: the connection breaks, asynchronous VIP_ERROR_RECVQ_EMPTY")
{
    (void)level;
    OK(VipPostSend(p->va, one_segment(&p->a, 0, 0, 8), p->a.handle));
    errors_await(&p->eb, VIP_ERROR_RECVQ_EMPTY);
    vi_await(p->va, VIP_STATE_ERROR);
    vi_await(p->vb, VIP_STATE_ERROR);
}

ROW(EARLY, nothing_posted_to_receive_unreliable, "VipSendWait",
    "no receive posted, unreliable: the message is dropped, the VIs stay connected")
{
    static pair_t pair, *p = &pair;
    VIP_DESCRIPTOR *done;
    pair_connect(p, VIP_SERVICE_UNRELIABLE);
    OK(VipPostSend(p->va, one_segment(&p->a, 0, 0, 8), p->a.handle));
    OK(VipSendWait(p->va, LONG, &done));
    sleep_ms(5);
    OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 0, 64), p->b.handle));
    OK(VipPostSend(p->va, one_segment(&p->a, 0, 0, 9), p->a.handle));
    OK(VipRecvWait(p->vb, LONG, &done));
    SAME(done->CS.Length, 9);
    SAME(vi_state(p->va), VIP_STATE_CONNECTED);
    SAME(vi_state(p->vb), VIP_STATE_CONNECTED);
    pair_close(p);
}

ROW_CONNECTED(EARLY, other_vis_go_on, "VipSendWait", "an error of one VI disturbs no other")
{
    VIP_VI_HANDLE va = vi_create(&p->a, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_VI_HANDLE vb = vi_create(&p->b, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_DESCRIPTOR *done, *bad = one_segment(&p->a, 0, 0, 8);
    vi_connect(&p->a, va, &p->b, vb);
    bad->DS[0].Local.Handle = 0;
    OK(VipPostSend(p->va, bad, p->a.handle));
    for (unsigned i = 1; i < 50; i++) {
        OK(VipPostRecv(vb, one_segment(&p->b, i, 0, 64), p->b.handle));
        OK(VipPostSend(va, one_segment(&p->a, i, 0, i), p->a.handle));
        OK(VipRecvWait(vb, LONG, &done));
        SAME(done->CS.Length, i);
    }
    GIVES(VipSendWait(p->va, LONG, &done), VIP_DESCRIPTOR_ERROR);
}
