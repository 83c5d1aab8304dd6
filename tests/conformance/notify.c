/* Handlers that are called when something is done. */
#define _GNU_SOURCE
#include "frame.h"

#define RR VIP_SERVICE_RELIABLE_RECEPTION
#define CALLS 16

/* What a handler was called with; the last field is written last. */
typedef struct {
    VIP_NIC_HANDLE nic;
    VIP_VI_HANDLE vi;
    VIP_DESCRIPTOR *descriptors[CALLS];
    VIP_BOOLEAN is_recv;
    volatile unsigned calls;
} calls_t;

static void on_vi(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *d)
{
    calls_t *calls = context;
    calls->nic = nic;
    calls->vi = vi;
    calls->descriptors[calls->calls % CALLS] = d;
    __sync_fetch_and_add(&calls->calls, 1);
}

static void on_cq(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN is_recv)
{
    calls_t *calls = context;
    calls->nic = nic;
    calls->vi = vi;
    calls->is_recv = is_recv;
    __sync_fetch_and_add(&calls->calls, 1);
}

static void await(calls_t *calls, unsigned count)
{
    for (int i = 0; i < LONG && calls->calls < count; i++)
        sleep_ms(1);
    SAME(calls->calls, count);
}

ROW_LEVELS(FULL, recv_notify_calls_once, "VipRecvNotify",
           "one call, with the descriptor, which is taken back")
{
    static calls_t calls;
    VIP_DESCRIPTOR *done, *first = one_segment(&p->b, 0, 0, 64);
    (void)level;
    memset(&calls, 0, sizeof calls);
    OK(VipPostRecv(p->vb, first, p->b.handle));
    OK(VipPostRecv(p->vb, one_segment(&p->b, 1, 0, 64), p->b.handle));
    OK(VipRecvNotify(p->vb, &calls, on_vi));
    sleep_ms(5);
    SAME(calls.calls, 0);
    OK(VipPostSend(p->va, one_segment(&p->a, 0, 0, 7), p->a.handle));
    OK(VipPostSend(p->va, one_segment(&p->a, 1, 0, 8), p->a.handle));
    await(&calls, 1);
    CHECK(calls.nic == p->b.nic && calls.vi == p->vb && calls.descriptors[0] == first);
    SAME(first->CS.Length, 7);
    OK(VipRecvWait(p->vb, LONG, &done));
    SAME(done->CS.Length, 8);
    sleep_ms(5);
    SAME(calls.calls, 1);
}

ROW_LEVELS(FULL, send_notify_calls_once, "VipSendNotify", "one call, with the descriptor")
{
    static calls_t calls;
    VIP_DESCRIPTOR *sent = one_segment(&p->a, 0, 0, 7), *done;
    (void)level;
    memset(&calls, 0, sizeof calls);
    OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 0, 64), p->b.handle));
    OK(VipPostSend(p->va, sent, p->a.handle));
    OK(VipSendNotify(p->va, &calls, on_vi));
    await(&calls, 1);
    CHECK(calls.vi == p->va && calls.descriptors[0] == sent);
    GIVES(VipSendDone(p->va, &done), VIP_DESCRIPTOR_ERROR);
    CHECK(done == NULL);
}

ROW_CONNECTED(FULL, recv_notify_queues, "VipRecvNotify", "requests queue, and are served in order")
{
    static calls_t calls;
    memset(&calls, 0, sizeof calls);
    for (unsigned i = 0; i < 10; i++) {
        OK(VipPostRecv(p->vb, one_segment(&p->b, i, 0, 64), p->b.handle));
        OK(VipRecvNotify(p->vb, &calls, on_vi));
    }
    for (unsigned i = 0; i < 10; i++)
        OK(VipPostSend(p->va, one_segment(&p->a, i, 0, 8), p->a.handle));
    await(&calls, 10);
    for (unsigned i = 0; i < 10; i++)
        CHECK(calls.descriptors[i] == (VIP_DESCRIPTOR *)(void *)(p->b.memory + 64 * i));
}

ROW_CONNECTED(FULL, recv_notify_of_a_flushed_descriptor, "VipRecvNotify",
              "a descriptor that is flushed calls too")
{
    static calls_t calls;
    memset(&calls, 0, sizeof calls);
    OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 0, 64), p->b.handle));
    OK(VipRecvNotify(p->vb, &calls, on_vi));
    OK(VipDisconnect(p->va));
    await(&calls, 1);
    CHECK(calls.descriptors[0]->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
}

ROW_CONNECTED(FULL, close_nic_with_notify, "VipCloseNic",
              "a request that is left does no harm, and is not served")
{
    static calls_t calls;
    memset(&calls, 0, sizeof calls);
    OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 0, 64), p->b.handle));
    OK(VipRecvNotify(p->vb, &calls, on_vi));
    OK(VipCloseNic(p->b.nic));
    sleep_ms(10);
    SAME(calls.calls, 0);
    side_open(&p->b, 1);
}

ROW_TWO(FULL, cq_notify_calls_once, "VipCQNotify",
        "one call, with the entry; the descriptor is still to be taken")
{
    static calls_t calls;
    VIP_CQ_HANDLE cq;
    VIP_VI_HANDLE va = vi_create(&p->a, RR, NULL, NULL), vb;
    VIP_DESCRIPTOR *done;
    memset(&calls, 0, sizeof calls);
    OK(VipCreateCQ(p->b.nic, 64, &cq));
    vb = vi_create(&p->b, RR, NULL, cq);
    vi_connect(&p->a, va, &p->b, vb);
    OK(VipCQNotify(cq, &calls, on_cq));
    OK(VipPostRecv(vb, one_segment(&p->b, 0, 0, 64), p->b.handle));
    OK(VipPostSend(va, one_segment(&p->a, 0, 0, 8), p->a.handle));
    await(&calls, 1);
    CHECK(calls.nic == p->b.nic && calls.vi == vb && calls.is_recv == VIP_TRUE);
    OK(VipRecvDone(vb, &done));
    SAME(done->CS.Length, 8);
}
