/* Completion queues. */
#define _GNU_SOURCE
#include "frame.h"

#define RR VIP_SERVICE_RELIABLE_RECEPTION

/* A pair whose VIs have completion queues. */
typedef struct {
    VIP_CQ_HANDLE send, recv;
    VIP_VI_HANDLE va, vb;
} queues_t;

static queues_t connect_queues(pair_t *p, VIP_RELIABILITY_LEVEL level)
{
    queues_t q;
    OK(VipCreateCQ(p->a.nic, 1024, &q.send));
    OK(VipCreateCQ(p->b.nic, 1024, &q.recv));
    q.va = vi_create(&p->a, level, q.send, NULL);
    q.vb = vi_create(&p->b, level, NULL, q.recv);
    vi_connect(&p->a, q.va, &p->b, q.vb);
    return q;
}

#define CQ_LEVEL(row, suffix, level)                                                               \
    ROW_TWO(EARLY, row##_##suffix, "VipCQWait",                                                    \
            "entries for sends and receives, each with one descriptor at once (" #suffix ")")      \
    {                                                                                              \
        row##_body(p, level);                                                                      \
    }

static void cq_entries_body(pair_t *p, VIP_RELIABILITY_LEVEL level)
{
    queues_t q = connect_queues(p, level);
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN is_recv;
    VIP_DESCRIPTOR *done;
    for (unsigned i = 0; i < 30; i++) {
        OK(VipPostRecv(q.vb, one_segment(&p->b, i, 0, 64), p->b.handle));
        OK(VipPostSend(q.va, one_segment(&p->a, i, 0, 8), p->a.handle));
        OK(VipCQWait(q.recv, LONG, &vi, &is_recv));
        CHECK(vi == q.vb && is_recv == VIP_TRUE);
        OK(VipRecvDone(vi, &done));
        OK(VipCQWait(q.send, LONG, &vi, &is_recv));
        CHECK(vi == q.va && is_recv == VIP_FALSE);
        OK(VipSendDone(vi, &done));
    }
    GIVES(VipCQDone(q.recv, &vi, &is_recv), VIP_NOT_DONE);
    GIVES(VipCQDone(q.send, &vi, &is_recv), VIP_NOT_DONE);
}
CQ_LEVEL(cq_entries, unreliable, VIP_SERVICE_UNRELIABLE)
CQ_LEVEL(cq_entries, delivery, VIP_SERVICE_RELIABLE_DELIVERY)
CQ_LEVEL(cq_entries, reception, VIP_SERVICE_RELIABLE_RECEPTION)

ROW_NIC(EARLY, create_cq_sizes, "VipCreateCQ", "1 entry up to MaxCQEntries")
{
    VIP_CQ_HANDLE cq;
    for (VIP_ULONG count = 1; count <= n->attributes.MaxCQEntries; count = count * 3 + 1) {
        OK(VipCreateCQ(n->nic, count, &cq));
        OK(VipDestroyCQ(cq));
    }
    OK(VipCreateCQ(n->nic, n->attributes.MaxCQEntries, &cq));
}

ROW_NIC(EARLY, create_cq_bad_sizes, "VipCreateCQ", "0 entries, or too many: VIP_INVALID_PARAMETER")
{
    VIP_CQ_HANDLE cq;
    GIVES(VipCreateCQ(n->nic, 0, &cq), VIP_INVALID_PARAMETER);
    GIVES(VipCreateCQ(n->nic, n->attributes.MaxCQEntries + 1, &cq), VIP_INVALID_PARAMETER);
    GIVES(VipCreateCQ(n->nic, (VIP_ULONG)1 << 32, &cq), VIP_INVALID_PARAMETER);
    GIVES(VipCreateCQ(n->nic, ~(VIP_ULONG)0, &cq), VIP_INVALID_PARAMETER);
}

ROW_NIC(EARLY, create_cq_until_none_is_left, "VipCreateCQ",
        "too many: VIP_ERROR_RESOURCE, and again after a destroy")
{
    VIP_CQ_HANDLE cqs[1024];
    VIP_ULONG count = 0;
    VIP_RETURN code = VIP_SUCCESS;
    while (count <= n->attributes.MaxCQ && code == VIP_SUCCESS) {
        code = VipCreateCQ(n->nic, 16, &cqs[count]);
        count += code == VIP_SUCCESS;
    }
    GIVES(code, VIP_ERROR_RESOURCE);
    SAME(count, n->attributes.MaxCQ);
    OK(VipDestroyCQ(cqs[3]));
    OK(VipCreateCQ(n->nic, 16, &cqs[3]));
}

ROW_NIC(EARLY, destroy_cq_in_use, "VipDestroyCQ",
        "while a VI uses it: VIP_ERROR_RESOURCE, afterwards not")
{
    VIP_CQ_HANDLE cq;
    OK(VipCreateCQ(n->nic, 16, &cq));
    VIP_VI_HANDLE vi = vi_create(n, RR, NULL, cq);
    GIVES(VipDestroyCQ(cq), VIP_ERROR_RESOURCE);
    OK(VipDestroyVi(vi));
    OK(VipDestroyCQ(cq));
}

ROW_NIC(EARLY, destroy_cq_twice, "VipDestroyCQ", "a second time: VIP_INVALID_PARAMETER")
{
    VIP_CQ_HANDLE cq;
    OK(VipCreateCQ(n->nic, 16, &cq));
    OK(VipDestroyCQ(cq));
    GIVES(VipDestroyCQ(cq), VIP_INVALID_PARAMETER);
}

ROW_NIC(EARLY, cq_done_empty, "VipCQDone", "nothing there: VIP_NOT_DONE")
{
    VIP_CQ_HANDLE cq;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN recv;
    OK(VipCreateCQ(n->nic, 16, &cq));
    for (int i = 0; i < 100; i++)
        GIVES(VipCQDone(cq, &vi, &recv), VIP_NOT_DONE);
}

ROW_NIC(EARLY, cq_wait_times_out, "VipCQWait", "nothing comes in time: VIP_TIMEOUT")
{
    VIP_CQ_HANDLE cq;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN recv;
    OK(VipCreateCQ(n->nic, 16, &cq));
    GIVES(VipCQWait(cq, 0, &vi, &recv), VIP_TIMEOUT);
    GIVES(VipCQWait(cq, 1, &vi, &recv), VIP_TIMEOUT);
    GIVES(VipCQWait(cq, 60, &vi, &recv), VIP_TIMEOUT);
}

ROW_TWO(EARLY, cq_of_both_queues_and_many_vis, "VipCQDone",
        "one queue for both queues of 8 VIs: every completion once, in order for a work queue")
{
    VIP_CQ_HANDLE cq;
    VIP_VI_HANDLE va[8], vb[8], vi;
    VIP_BOOLEAN is_recv;
    VIP_DESCRIPTOR *done;
    unsigned got[8] = {0}, rounds = 10;
    OK(VipCreateCQ(p->b.nic, 1024, &cq));
    for (unsigned i = 0; i < 8; i++) {
        va[i] = vi_create(&p->a, RR, NULL, NULL);
        vb[i] = vi_create(&p->b, RR, cq, cq);
        vi_connect(&p->a, va[i], &p->b, vb[i]);
    }
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned i = 0; i < 8; i++)
            OK(VipPostRecv(vb[i], one_segment(&p->b, round * 8 + i, 0, 64), p->b.handle));
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned i = 0; i < 8; i++) {
            VIP_DESCRIPTOR *d = one_segment(&p->a, round * 8 + i, 0, 8);
            d->CS.Control |= VIP_CONTROL_IMMEDIATE;
            d->CS.ImmediateData = round;
            OK(VipPostSend(va[i], d, p->a.handle));
        }
    for (unsigned k = 0; k < 8 * rounds; k++) {
        OK(VipCQWait(cq, LONG, &vi, &is_recv));
        CHECK(is_recv);
        unsigned i = 0;
        while (i < 8 && vb[i] != vi)
            i++;
        CHECK(i < 8);
        OK(VipRecvDone(vi, &done));
        SAME(done->CS.ImmediateData, got[i]++);
    }
    GIVES(VipCQDone(cq, &vi, &is_recv), VIP_NOT_DONE);
}

ROW_TWO(EARLY, cq_entries_of_flushed_descriptors, "VipCQDone",
        "flushed descriptors have entries too")
{
    queues_t q = connect_queues(p, RR);
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN is_recv;
    VIP_DESCRIPTOR *done;
    for (unsigned i = 0; i < 5; i++)
        OK(VipPostRecv(q.vb, one_segment(&p->b, i, 0, 64), p->b.handle));
    OK(VipDisconnect(q.vb));
    for (unsigned i = 0; i < 5; i++) {
        OK(VipCQDone(q.recv, &vi, &is_recv));
        CHECK(vi == q.vb && is_recv);
        GIVES(VipRecvDone(vi, &done), VIP_DESCRIPTOR_ERROR);
        CHECK(done != NULL);
    }
    GIVES(VipCQDone(q.recv, &vi, &is_recv), VIP_NOT_DONE);
}

typedef struct {
    VIP_CQ_HANDLE cq;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN is_recv;
    VIP_RETURN code;
} waiter_t;

static void cq_waiter(void *argument)
{
    waiter_t *w = argument;
    w->code = VipCQWait(w->cq, VIP_INFINITE, &w->vi, &w->is_recv);
}

ROW_TWO(EARLY, cq_wait_is_woken, "VipCQWait", "a waiting thread is woken by a message")
{
    queues_t q = connect_queues(p, RR);
    waiter_t w = {.cq = q.recv};
    OK(VipPostRecv(q.vb, one_segment(&p->b, 0, 0, 64), p->b.handle));
    thread_t *thread = thread_start(cq_waiter, &w);
    sleep_ms(30);
    OK(VipPostSend(q.va, one_segment(&p->a, 0, 0, 8), p->a.handle));
    thread_join(thread);
    SAME(w.code, VIP_SUCCESS);
    CHECK(w.vi == q.vb && w.is_recv);
}

ROW_TWO(EARLY, cq_wait_is_woken_by_a_disconnect, "VipCQWait",
        "a waiting thread is woken by the other side's disconnect")
{
    queues_t q = connect_queues(p, RR);
    waiter_t w = {.cq = q.recv};
    VIP_DESCRIPTOR *done;
    OK(VipPostRecv(q.vb, one_segment(&p->b, 0, 0, 64), p->b.handle));
    thread_t *thread = thread_start(cq_waiter, &w);
    sleep_ms(30);
    OK(VipDisconnect(q.va));
    thread_join(thread);
    SAME(w.code, VIP_SUCCESS);
    GIVES(VipRecvDone(w.vi, &done), VIP_DESCRIPTOR_ERROR);
}

ROW_NIC(FUNCTIONAL, resize_cq_bad_sizes, "VipResizeCQ",
        "0 entries, or too many: VIP_INVALID_PARAMETER")
{
    VIP_CQ_HANDLE cq;
    OK(VipCreateCQ(n->nic, 16, &cq));
    GIVES(VipResizeCQ(cq, 0), VIP_INVALID_PARAMETER);
    GIVES(VipResizeCQ(cq, n->attributes.MaxCQEntries + 1), VIP_INVALID_PARAMETER);
    GIVES(VipResizeCQ(cq, ~(VIP_ULONG)0), VIP_INVALID_PARAMETER);
    OK(VipResizeCQ(cq, 1));
    OK(VipResizeCQ(cq, n->attributes.MaxCQEntries));
}

ROW_TWO(FUNCTIONAL, resize_cq_with_entries, "VipResizeCQ",
        "entries that are there, and later ones, are all found, in order")
{
    queues_t q = connect_queues(p, RR);
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN is_recv;
    VIP_DESCRIPTOR *done;
    for (unsigned i = 0; i < 60; i++)
        OK(VipPostRecv(q.vb, one_segment(&p->b, i, 0, 64), p->b.handle));
    for (unsigned i = 0; i < 60; i++) {
        if (i % 10 == 5)
            OK(VipResizeCQ(q.recv, 64 + 32 * i));
        OK(VipPostSend(q.va, one_segment(&p->a, i, 0, 8), p->a.handle));
    }
    for (unsigned i = 0; i < 60; i++) {
        if (i == 30)
            OK(VipResizeCQ(q.recv, 1024));
        OK(VipCQWait(q.recv, LONG, &vi, &is_recv));
        OK(VipRecvDone(vi, &done));
        CHECK(done == (VIP_DESCRIPTOR *)(void *)(p->b.memory + 64 * i));
    }
    GIVES(VipCQDone(q.recv, &vi, &is_recv), VIP_NOT_DONE);
}
