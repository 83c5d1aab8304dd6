/* Extensions of a VI: deferred sends, receives that are split, transfers of each kind. A device may
 * have none, and says so. */
#include "frame.h"

static VIP_VI_EXTENSIONS extensions(int defer, int split, VIP_ULONG transfer)
{
    VIP_VI_EXTENSIONS made;
    memset(&made, 0, sizeof made);
    made.DeferSend = defer;
    made.SplitReceive = split;
    made.Transfer = transfer;
    return made;
}

/* Sets extensions on a VI that is idle. 0: the device has none. */
static int set(VIP_VI_HANDLE vi, VIP_VI_EXTENSIONS wanted)
{
    VIP_RETURN code = VipSetViExtensions(vi, &wanted);
    if (code != VIP_ERROR_NOT_SUPPORTED)
        OK(code);
    return code == VIP_SUCCESS;
}

/* Connects two new VIs with these extensions in the place of those of the row. 0: the device has
 * none. */
static int extended(pair_t *p, VIP_RELIABILITY_LEVEL level, VIP_VI_EXTENSIONS a,
                    VIP_VI_EXTENSIONS b)
{
    p->va = vi_create(&p->a, level, NULL, NULL);
    p->vb = vi_create(&p->b, level, NULL, NULL);
    if (!set(p->va, a) || !set(p->vb, b))
        return 0;
    vi_connect(&p->a, p->va, &p->b, p->vb);
    return 1;
}

static void fill(unsigned char *data, unsigned length)
{
    for (unsigned i = 0; i < length; i++)
        data[i] = (unsigned char)(i * 7 + i / 251);
}

static int is_filled(const unsigned char *data, unsigned from, unsigned length)
{
    for (unsigned i = from; i < from + length; i++)
        if (data[i - from] != (unsigned char)(i * 7 + i / 251))
            return 0;
    return 1;
}

ROW_NIC(EARLY, query_vi_extensions_none, "VipQueryViExtensions", "a new VI has none")
{
    VIP_VI_HANDLE vi = vi_create(n, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_VI_EXTENSIONS found;
    memset(&found, 0xff, sizeof found);
    OK(VipQueryViExtensions(vi, &found));
    CHECK(!found.DeferSend && !found.SplitReceive && found.Transfer == VIP_TRANSFER_DYNAMIC);
}

ROW_NIC(EARLY, set_vi_extensions_or_none, "VipSetViExtensions",
        "what is set can be queried, or VIP_ERROR_NOT_SUPPORTED and nothing changes")
{
    VIP_VI_HANDLE vi = vi_create(n, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_VI_EXTENSIONS found;
    int has = set(vi, extensions(1, 1, VIP_TRANSFER_DMA));
    OK(VipQueryViExtensions(vi, &found));
    SAME(found.DeferSend, has);
    SAME(found.SplitReceive, has);
    SAME(found.Transfer, has ? VIP_TRANSFER_DMA : VIP_TRANSFER_DYNAMIC);
    /* What the specification says, every device does. */
    CHECK(set(vi, extensions(0, 0, VIP_TRANSFER_DYNAMIC)));
}

ROW_NIC(EARLY, set_vi_extensions_transfer, "VipSetViExtensions",
        "an unknown Transfer: VIP_INVALID_PARAMETER")
{
    VIP_VI_HANDLE vi = vi_create(n, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_VI_EXTENSIONS wrong = extensions(0, 0, 3);
    GIVES(VipSetViExtensions(vi, &wrong), VIP_INVALID_PARAMETER);
}

ROW_CONNECTED(EARLY, set_vi_extensions_connected, "VipSetViExtensions",
              "connected: VIP_INVALID_STATE")
{
    VIP_VI_EXTENSIONS none = extensions(0, 0, VIP_TRANSFER_DYNAMIC);
    GIVES(VipSetViExtensions(p->va, &none), VIP_INVALID_STATE);
}

ROW_NIC(EARLY, set_vi_extensions_stay, "VipSetViExtensions", "other attributes leave them")
{
    VIP_VI_HANDLE vi = vi_create(n, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_VI_ATTRIBUTES attributes = vi_attributes(n, VIP_SERVICE_RELIABLE_RECEPTION);
    VIP_VI_EXTENSIONS found;
    int has = set(vi, extensions(1, 0, VIP_TRANSFER_PIO));
    OK(VipSetViAttributes(vi, &attributes));
    OK(VipQueryViExtensions(vi, &found));
    SAME(found.DeferSend, has);
    SAME(found.Transfer, has ? VIP_TRANSFER_PIO : VIP_TRANSFER_DYNAMIC);
}

ROW_LEVELS(FUNCTIONAL, set_vi_extensions_defer, "VipSetViExtensions",
           "a send waits for a receive, and those behind it wait too")
{
    VIP_VI_EXTENSIONS defer = extensions(1, 0, VIP_TRANSFER_DYNAMIC);
    VIP_DESCRIPTOR *done, *first = one_segment(&p->a, 0, 0, 33), *second = one_segment(&p->a, 1, 64, 5);
    order_by_hand();
    if (!extended(p, level, defer, defer))
        return;
    fill(p->a.memory + DATA_OFFSET, 33);
    OK(VipPostSend(p->va, first, p->a.handle));
    OK(VipPostSend(p->va, second, p->a.handle));
    sleep_ms(20);
    GIVES(VipSendDone(p->va, &done), VIP_NOT_DONE);
    OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 0, 64), p->b.handle));
    OK(VipSendWait(p->va, LONG, &done));
    CHECK(done == first);
    OK(VipRecvWait(p->vb, LONG, &done));
    SAME(done->CS.Length, 33);
    CHECK(is_filled(p->b.memory + DATA_OFFSET, 0, 33));
    GIVES(VipSendDone(p->va, &done), VIP_NOT_DONE);
    OK(VipPostRecv(p->vb, one_segment(&p->b, 1, 0, 64), p->b.handle));
    OK(VipSendWait(p->va, LONG, &done));
    CHECK(done == second);
    OK(VipRecvWait(p->vb, LONG, &done));
    SAME(done->CS.Length, 5);
    SAME(vi_state(p->va), VIP_STATE_CONNECTED);
}

ROW_RELIABLE(FUNCTIONAL, set_vi_extensions_defer_rdma, "VipSetViExtensions",
             "an RDMA write with immediate data waits for a receive too")
{
    VIP_VI_EXTENSIONS defer = extensions(1, 0, VIP_TRANSFER_DYNAMIC);
    VIP_VI_ATTRIBUTES attributes = vi_attributes(&p->b, level);
    VIP_DESCRIPTOR *done, *sent = rdma(&p->a, 0, VIP_CONTROL_OP_RDMAWRITE, &p->b, 0, 0, 500);
    order_by_hand();
    p->va = vi_create(&p->a, level, NULL, NULL);
    p->vb = vi_create(&p->b, level, NULL, NULL);
    attributes.EnableRdmaWrite = VIP_TRUE;
    OK(VipSetViAttributes(p->vb, &attributes));
    if (!set(p->va, defer))
        return;
    vi_connect(&p->a, p->va, &p->b, p->vb);
    fill(p->a.memory + DATA_OFFSET, 500);
    sent->CS.Control |= VIP_CONTROL_IMMEDIATE;
    sent->CS.ImmediateData = 78;
    OK(VipPostSend(p->va, sent, p->a.handle));
    sleep_ms(20);
    GIVES(VipSendDone(p->va, &done), VIP_NOT_DONE);
    OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 1000, 0), p->b.handle));
    OK(VipSendWait(p->va, LONG, &done));
    OK(VipRecvWait(p->vb, LONG, &done));
    SAME(done->CS.ImmediateData, 78);
    CHECK(is_filled(p->b.memory + DATA_OFFSET, 0, 500));
}

ROW_LEVELS(FUNCTIONAL, set_vi_extensions_split, "VipSetViExtensions",
           "a long message continues in the next receives; the last has the immediate data")
{
    static const unsigned rooms[4] = {40, 0, 70, 64}, lengths[4] = {40, 0, 70, 23};
    VIP_DESCRIPTOR *done, *sent = one_segment(&p->a, 0, 0, 133);
    if (!extended(p, level, extensions(0, 0, 0), extensions(0, 1, 0)))
        return;
    fill(p->a.memory + DATA_OFFSET, 133);
    for (unsigned i = 0, at = 0; i < 4; at += rooms[i++])
        OK(VipPostRecv(p->vb, one_segment(&p->b, i, at, rooms[i]), p->b.handle));
    OK(VipPostRecv(p->vb, one_segment(&p->b, 4, 512, 64), p->b.handle));
    sent->CS.Control |= VIP_CONTROL_IMMEDIATE;
    sent->CS.ImmediateData = 77;
    OK(VipPostSend(p->va, sent, p->a.handle));
    OK(VipSendWait(p->va, LONG, &done));
    SAME(done->CS.Length, 133);
    for (unsigned i = 0; i < 4; i++) {
        VIP_UINT32 more = i < 3 ? VIP_STATUS_CONTINUED : VIP_STATUS_IMMEDIATE;
        OK(VipRecvWait(p->vb, LONG, &done));
        SAME(done->CS.Length, lengths[i]);
        SAME(done->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | more);
    }
    SAME(done->CS.ImmediateData, 77);
    CHECK(is_filled(p->b.memory + DATA_OFFSET, 0, 133));
    /* One that fits does not. */
    OK(VipPostSend(p->va, one_segment(&p->a, 1, 0, 64), p->a.handle));
    OK(VipRecvWait(p->vb, LONG, &done));
    SAME(done->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE);
}

ROW_RELIABLE(FUNCTIONAL, set_vi_extensions_split_overrun, "VipSetViExtensions",
             "without enough receives a message that is split is one without a receive")
{
    VIP_DESCRIPTOR *done;
    if (!extended(p, level, extensions(0, 0, 0), extensions(0, 1, 0)))
        return;
    OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 0, 64), p->b.handle));
    OK(VipPostSend(p->va, one_segment(&p->a, 0, 0, 65), p->a.handle));
    vi_await(p->vb, VIP_STATE_ERROR);
    vi_await(p->va, VIP_STATE_ERROR);
    OK(VipRecvDone(p->vb, &done));
    SAME(done->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_CONTINUED);
}

ROW_LEVELS(FUNCTIONAL, set_vi_extensions_split_defer, "VipSetViExtensions",
           "a message that is split waits for each receive, if its sends are deferred")
{
    VIP_DESCRIPTOR *done, *sent = one_segment(&p->a, 0, 0, 200000);
    unsigned at = 0, more;
    order_by_hand();
    if (!extended(p, level, extensions(1, 0, 0), extensions(0, 1, 0)))
        return;
    fill(p->a.memory + DATA_OFFSET, 200000);
    OK(VipPostSend(p->va, sent, p->a.handle));
    do {
        GIVES(VipSendDone(p->va, &done), VIP_NOT_DONE);
        OK(VipPostRecv(p->vb, one_segment(&p->b, 0, at, 70000), p->b.handle));
        do
            more = VipSendDone(p->va, &done) == VIP_NOT_DONE;
        while (VipRecvDone(p->vb, &done) == VIP_NOT_DONE);
        at += done->CS.Length;
    } while (done->CS.Status & VIP_STATUS_CONTINUED);
    SAME(at, 200000);
    if (more)
        OK(VipSendWait(p->va, LONG, &done));
    CHECK(is_filled(p->b.memory + DATA_OFFSET, 0, 200000));
}

static void transfers(pair_t *p, VIP_RELIABILITY_LEVEL level, VIP_ULONG transfer)
{
    static const unsigned lengths[] = {0, 1, 4, 40, 41, 4096, 16385, 100001, 262144};
    VIP_DESCRIPTOR *done, *sent;
    if (!extended(p, level, extensions(0, 0, transfer), extensions(0, 0, transfer)))
        return;
    fill(p->a.memory + DATA_OFFSET, 262144);
    for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        memset(p->b.memory + DATA_OFFSET, 0xee, 262144 + 64);
        OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 0, 262144), p->b.handle));
        OK(VipPostSend(p->va, one_segment(&p->a, 0, 0, lengths[i]), p->a.handle));
        /* A long one goes on while both sides look. */
        sent = NULL;
        do
            if (sent == NULL)
                VipSendDone(p->va, &sent);
        while (VipRecvDone(p->vb, &done) == VIP_NOT_DONE);
        SAME(done->CS.Length, lengths[i]);
        if (sent == NULL)
            OK(VipSendWait(p->va, LONG, &sent));
        SAME(sent->CS.Length, lengths[i]);
        CHECK(is_filled(p->b.memory + DATA_OFFSET, 0, lengths[i]));
        SAME(p->b.memory[DATA_OFFSET + lengths[i]], 0xee);
    }
}

ROW_LEVELS(FUNCTIONAL, set_vi_extensions_pio, "VipSetViExtensions",
           "data of every length arrives by stores")
{
    transfers(p, level, VIP_TRANSFER_PIO);
}

ROW_LEVELS(FUNCTIONAL, set_vi_extensions_dma, "VipSetViExtensions",
           "data of every length arrives by copies into the receiver's buffers")
{
    transfers(p, level, VIP_TRANSFER_DMA);
}
