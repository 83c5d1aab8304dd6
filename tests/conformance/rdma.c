/* RDMA writes and reads. */
#define _GNU_SOURCE
#include "frame.h"

#define WRITE VIP_CONTROL_OP_RDMAWRITE
#define READ VIP_CONTROL_OP_RDMAREAD
#define RR VIP_SERVICE_RELIABLE_RECEPTION

static void fill(const side_t *n, unsigned at, unsigned length, unsigned seed)
{
    for (unsigned i = 0; i < length; i++)
        n->memory[DATA_OFFSET + at + i] = (unsigned char)(seed + i * 11 + (i >> 8));
}

static int filled(const side_t *n, unsigned at, unsigned length, unsigned seed)
{
    for (unsigned i = 0; i < length; i++)
        if (n->memory[DATA_OFFSET + at + i] != (unsigned char)(seed + i * 11 + (i >> 8)))
            return 0;
    return 1;
}

#define LENGTH_ROWS(length)                                                                        \
    ROW_RELIABLE(EARLY, rdma_write_##length##_bytes, "VipPostSend", "RDMA write: " #length)        \
    {                                                                                              \
        VIP_DESCRIPTOR *done;                                                                      \
        (void)level;                                                                               \
        fill(&p->a, 0, length, 1);                                                                 \
        OK(VipPostSend(p->va, rdma(&p->a, 0, WRITE, &p->b, 64, 0, length), p->a.handle));          \
        OK(VipSendWait(p->va, LONG, &done));                                                       \
        SAME(done->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE);                         \
        SAME(done->CS.Length, length);                                                             \
        /* A later message says that the write has landed. */                                     \
        OK(VipPostRecv(p->vb, one_segment(&p->b, 9, 300000, 8), p->b.handle));                     \
        OK(VipPostSend(p->va, one_segment(&p->a, 9, 300000, 8), p->a.handle));                     \
        OK(VipRecvWait(p->vb, LONG, &done));                                                       \
        CHECK(filled(&p->b, 64, length, 1));                                                       \
        SAME(p->b.memory[DATA_OFFSET + 64 + length], 0);                                           \
        SAME(p->b.memory[DATA_OFFSET + 63], 0);                                                    \
    }                                                                                              \
    ROW_RELIABLE(EARLY, rdma_read_##length##_bytes, "VipPostSend", "RDMA read: " #length)          \
    {                                                                                              \
        VIP_DESCRIPTOR *done;                                                                      \
        (void)level;                                                                               \
        fill(&p->b, 64, length, 2);                                                                \
        OK(VipPostSend(p->va, rdma(&p->a, 0, READ, &p->b, 64, 128, length), p->a.handle));         \
        OK(VipSendWait(p->va, LONG, &done));                                                       \
        SAME(done->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ);                          \
        SAME(done->CS.Length, length);                                                             \
        CHECK(filled(&p->a, 128, length, 2));                                                      \
        SAME(p->a.memory[DATA_OFFSET + 128 + length], 0);                                          \
    }
LENGTH_ROWS(1)
LENGTH_ROWS(4096)
LENGTH_ROWS(65472)

ROW_LEVELS(EARLY, rdma_write_with_immediate, "VipRecvWait",
           "an RDMA write with immediate data takes one receive, which reports it")
{
    VIP_DESCRIPTOR *done, *write;
    (void)level;
    fill(&p->a, 0, 100, 3);
    OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 4096, 64), p->b.handle));
    write = rdma(&p->a, 0, WRITE | VIP_CONTROL_IMMEDIATE, &p->b, 0, 0, 100);
    write->CS.ImmediateData = 0x80000001;
    OK(VipPostSend(p->va, write, p->a.handle));
    OK(VipRecvWait(p->vb, LONG, &done));
    SAME(done->CS.Status,
         VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE);
    SAME(done->CS.ImmediateData, 0x80000001);
    CHECK(filled(&p->b, 0, 100, 3));
    OK(VipSendWait(p->va, LONG, &done));
}

ROW_RELIABLE(EARLY, rdma_write_is_not_seen, "VipRecvDone",
             "an RDMA write without immediate data takes no receive")
{
    VIP_DESCRIPTOR *done;
    (void)level;
    OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 4096, 64), p->b.handle));
    OK(VipPostSend(p->va, rdma(&p->a, 0, WRITE, &p->b, 0, 0, 100), p->a.handle));
    OK(VipSendWait(p->va, LONG, &done));
    sleep_ms(5);
    GIVES(VipRecvDone(p->vb, &done), VIP_NOT_DONE);
}

/* What the other VI allows is known here, so nothing reaches the other side. */
#define NO_ERROR ((VIP_ERROR_CODE)15)

#define REFUSED(row, text, operation, change, error)                                               \
    ROW_TWO(EARLY, row, "VipSendWait", text)                                                       \
    {                                                                                              \
        VIP_VI_ATTRIBUTES attributes = vi_attributes(&p->b, RR);                                   \
        VIP_MEM_ATTRIBUTES rights;                                                                 \
        VIP_VI_HANDLE va = vi_create(&p->a, RR, NULL, NULL), vb;                                   \
        VIP_DESCRIPTOR *done, *d;                                                                  \
        unsigned length = 64, remote = 0;                                                          \
        memset(&rights, 0, sizeof rights);                                                         \
        rights.Ptag = p->b.tag;                                                                    \
        rights.EnableRdmaWrite = rights.EnableRdmaRead = VIP_TRUE;                                 \
        change;                                                                                    \
        OK(VipSetMemAttributes(p->b.nic, p->b.memory, p->b.handle, &rights));                      \
        OK(VipCreateVi(p->b.nic, &attributes, NULL, NULL, &vb));                                   \
        vi_connect(&p->a, va, &p->b, vb);                                                          \
        memset(p->b.memory + DATA_OFFSET, 0x77, 128);                                              \
        d = rdma(&p->a, 0, operation, &p->b, remote, 0, length);                                   \
        OK(VipPostSend(va, d, p->a.handle));                                                       \
        GIVES(VipSendWait(va, LONG, &done), VIP_DESCRIPTOR_ERROR);                                 \
        CHECK(done == d && (done->CS.Status & VIP_STATUS_RDMA_PROT_ERROR));                        \
        vi_await(va, VIP_STATE_ERROR);                                                             \
        for (unsigned i = 0; i < 128; i++)                                                         \
            SAME(p->b.memory[DATA_OFFSET + i], 0x77);                                              \
        if (error != NO_ERROR)                                                                     \
            errors_await(&p->eb, error);                                                           \
    }
REFUSED(rdma_write_vi_not_enabled, "a write to a VI that allows none: VIP_STATUS_RDMA_PROT_ERROR",
        WRITE, attributes.EnableRdmaWrite = VIP_FALSE, NO_ERROR)
REFUSED(rdma_write_memory_not_enabled,
        "a write to memory that allows none: VIP_STATUS_RDMA_PROT_ERROR", WRITE,
        rights.EnableRdmaWrite = VIP_FALSE, VIP_ERROR_RDMAW_PROT)
REFUSED(rdma_write_outside, "a write beyond the region: VIP_STATUS_RDMA_PROT_ERROR", WRITE,
        remote = MEMORY_BYTES - DATA_OFFSET - 32, VIP_ERROR_RDMAW_PROT)
REFUSED(rdma_write_other_tag, "a write to memory of another tag: VIP_STATUS_RDMA_PROT_ERROR", WRITE,
        OK(VipCreatePtag(p->b.nic, &rights.Ptag)), VIP_ERROR_RDMAW_PROT)
REFUSED(rdma_read_vi_not_enabled, "a read from a VI that allows none: VIP_STATUS_RDMA_PROT_ERROR",
        READ, attributes.EnableRdmaRead = VIP_FALSE, NO_ERROR)
REFUSED(rdma_read_memory_not_enabled,
        "a read from memory that allows none: VIP_STATUS_RDMA_PROT_ERROR", READ,
        rights.EnableRdmaRead = VIP_FALSE, VIP_ERROR_RDMAR_PROT)
REFUSED(rdma_read_outside, "a read beyond the region: VIP_STATUS_RDMA_PROT_ERROR", READ,
        remote = MEMORY_BYTES - DATA_OFFSET - 32, VIP_ERROR_RDMAR_PROT)
REFUSED(rdma_read_other_tag, "a read from memory of another tag: VIP_STATUS_RDMA_PROT_ERROR", READ,
        OK(VipCreatePtag(p->b.nic, &rights.Ptag)), VIP_ERROR_RDMAR_PROT)

ROW_CONNECTED(EARLY, queue_fence, "VipPostSend",
              "VIP_CONTROL_QFENCE: a send waits for the read before it")
{
    VIP_DESCRIPTOR *done, *send;
    fill(&p->b, 0, 60000, 4);
    for (unsigned round = 0; round < 10; round++) {
        memset(p->a.memory + DATA_OFFSET, 0, 60000);
        OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 100000, 60000), p->b.handle));
        OK(VipPostSend(p->va, rdma(&p->a, 0, READ, &p->b, 0, 0, 60000), p->a.handle));
        send = one_segment(&p->a, 1, 0, 60000);
        send->CS.Control |= VIP_CONTROL_QFENCE;
        OK(VipPostSend(p->va, send, p->a.handle));
        OK(VipRecvWait(p->vb, LONG, &done));
        CHECK(filled(&p->b, 100000, 60000, 4));
        OK(VipSendWait(p->va, LONG, &done));
        OK(VipSendWait(p->va, LONG, &done));
    }
}

ROW_CONNECTED(EARLY, rdma_reads_of_both_sides, "VipPostSend", "both sides read each other at once")
{
    VIP_DESCRIPTOR *done;
    fill(&p->a, 0, 30000, 5);
    fill(&p->b, 0, 30000, 6);
    OK(VipPostSend(p->va, rdma(&p->a, 0, READ, &p->b, 0, 100000, 30000), p->a.handle));
    OK(VipPostSend(p->vb, rdma(&p->b, 0, READ, &p->a, 0, 100000, 30000), p->b.handle));
    OK(VipSendWait(p->va, LONG, &done));
    OK(VipSendWait(p->vb, LONG, &done));
    CHECK(filled(&p->a, 100000, 30000, 6) && filled(&p->b, 100000, 30000, 5));
}

ROW_LEVELS(EARLY, sends_come_after_writes, "VipRecvWait",
           "data of a write is in memory before the message that follows it")
{
    VIP_DESCRIPTOR *done;
    (void)level;
    for (unsigned round = 0; round < 20; round++) {
        fill(&p->a, 0, 5000, round);
        OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 100000, 64), p->b.handle));
        OK(VipPostSend(p->va, rdma(&p->a, 0, WRITE, &p->b, 0, 0, 5000), p->a.handle));
        OK(VipPostSend(p->va, one_segment(&p->a, 1, 100000, 8), p->a.handle));
        OK(VipRecvWait(p->vb, LONG, &done));
        CHECK(filled(&p->b, 0, 5000, round));
        OK(VipSendWait(p->va, LONG, &done));
        OK(VipSendWait(p->va, LONG, &done));
    }
}
