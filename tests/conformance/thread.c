/* Several threads of a program: ThreadSafe is true. */
#define _GNU_SOURCE
#include "frame.h"

#include <semaphore.h>

#define MESSAGES 200
#define DEPTH 32

/*
 * A stream of messages from a to b, with threads that post and threads that take back. b notifies a of
 * each receive that it has posted by an empty message, a credit: rung on the same NIC, it cannot
 * overtake the receive, as a semaphore in the place of it could.
 */
typedef struct {
    pair_t *p;
    VIP_VI_HANDLE va, vb;
    /* The first descriptor of this stream on either side. */
    unsigned first;
    /* Receives of b that a knows of and that b can post; places in a's send queue. */
    sem_t credits, receives, sends;
} stream_t;

#define STREAMS 3
/* On a: sends, receives of credits. On b: receives, credits. */
static unsigned index_of(const stream_t *s, unsigned i) { return s->first + i % DEPTH; }
static unsigned credit_of(const stream_t *s, unsigned i)
{
    return STREAMS * DEPTH + index_of(s, i);
}

static VIP_DESCRIPTOR *place(const side_t *n, unsigned index)
{
    return (VIP_DESCRIPTOR *)(void *)(n->memory + 64 * index);
}

static unsigned data(const stream_t *s, unsigned i) { return index_of(s, i) * 128; }

static void stream_open(stream_t *s, pair_t *p, VIP_RELIABILITY_LEVEL level, VIP_CQ_HANDLE cq,
                        unsigned number)
{
    side_t *n = &p->a;
    order_by_hand();
    *s = (stream_t){.p = p, .first = number * DEPTH};
    CHECK(sem_init(&s->credits, 0, 0) == 0 && sem_init(&s->receives, 0, DEPTH) == 0 &&
          sem_init(&s->sends, 0, DEPTH) == 0);
    s->va = vi_create(n, level, NULL, NULL);
    s->vb = vi_create(&p->b, level, NULL, cq);
    for (unsigned i = 0; i < DEPTH; i++)
        OK(VipPostRecv(s->va, one_segment(n, credit_of(s, i), 0, 0), n->handle));
    vi_connect(n, s->va, &p->b, s->vb);
}

static void post_receives(void *argument)
{
    stream_t *s = argument;
    side_t *n = &s->p->b;
    VIP_DESCRIPTOR *done;
    for (unsigned i = 0; i < MESSAGES; i++) {
        sem_wait(&s->receives);
        OK(VipPostRecv(s->vb, one_segment(n, index_of(s, i), data(s, i), 128), n->handle));
        OK(VipPostSend(s->vb, one_segment(n, credit_of(s, i), 0, 0), n->handle));
        OK(VipSendWait(s->vb, LONG, &done));
        CHECK(done == place(n, credit_of(s, i)));
    }
}

static void take_credits(void *argument)
{
    stream_t *s = argument;
    side_t *n = &s->p->a;
    VIP_DESCRIPTOR *done;
    for (unsigned i = 0; i < MESSAGES; i++) {
        OK(VipRecvWait(s->va, LONG, &done));
        CHECK(done == place(n, credit_of(s, i)));
        OK(VipPostRecv(s->va, one_segment(n, credit_of(s, i), 0, 0), n->handle));
        sem_post(&s->credits);
    }
}

static void post_sends(void *argument)
{
    stream_t *s = argument;
    side_t *n = &s->p->a;
    for (unsigned i = 0; i < MESSAGES; i++) {
        sem_wait(&s->credits);
        sem_wait(&s->sends);
        VIP_DESCRIPTOR *d = one_segment(n, index_of(s, i), data(s, i), 1 + i % 128);
        memset(n->memory + DATA_OFFSET + data(s, i), (int)(i + s->first), 1 + i % 128);
        d->CS.Control |= VIP_CONTROL_IMMEDIATE;
        d->CS.ImmediateData = i;
        OK(VipPostSend(s->va, d, n->handle));
    }
}

/* Until it is done; nothing posted yet counts as not done. */
static VIP_DESCRIPTOR *poll_one(VIP_VI_HANDLE vi,
                                VIP_RETURN (*poll)(VIP_VI_HANDLE, VIP_DESCRIPTOR **))
{
    VIP_DESCRIPTOR *done;
    for (unsigned i = 0; i < 20 * LONG; i++) {
        VIP_RETURN code = poll(vi, &done);
        if (code == VIP_SUCCESS)
            return done;
        if (code != VIP_NOT_DONE && !(code == VIP_DESCRIPTOR_ERROR && done == NULL))
            GIVES(code, VIP_SUCCESS);
        sleep_us(50);
    }
    fail(__FILE__, __LINE__, "nothing was done");
}

static void take_sends(void *argument)
{
    stream_t *s = argument;
    for (unsigned i = 0; i < MESSAGES; i++) {
        VIP_DESCRIPTOR *done = poll_one(s->va, VipSendDone);
        CHECK(done == place(&s->p->a, index_of(s, i)));
        SAME(done->CS.Length, 1 + i % 128);
        sem_post(&s->sends);
    }
}

static void take_receive(stream_t *s, VIP_DESCRIPTOR *done, unsigned i)
{
    CHECK(done == place(&s->p->b, index_of(s, i)));
    SAME(done->CS.ImmediateData, i);
    SAME(done->CS.Length, 1 + i % 128);
    unsigned char *bytes = s->p->b.memory + DATA_OFFSET + data(s, i);
    for (unsigned k = 0; k < 1 + i % 128; k++)
        SAME(bytes[k], (unsigned char)(i + s->first));
    sem_post(&s->receives);
}

static void take_receives(void *argument)
{
    stream_t *s = argument;
    for (unsigned i = 0; i < MESSAGES; i++)
        take_receive(s, poll_one(s->vb, VipRecvDone), i);
}

static void wait_for_receives(void *argument)
{
    stream_t *s = argument;
    VIP_DESCRIPTOR *done;
    VIP_RETURN code;
    for (unsigned i = 0; i < MESSAGES; i++) {
        while ((code = VipRecvWait(s->vb, LONG, &done)) == VIP_DESCRIPTOR_ERROR && done == NULL)
            sleep_us(50);
        OK(code);
        take_receive(s, done, i);
    }
}

/* Starts the threads of a stream, but for the one that takes its messages. */
static unsigned start(stream_t *s, thread_t **threads)
{
    threads[0] = thread_start(post_receives, s);
    threads[1] = thread_start(take_credits, s);
    threads[2] = thread_start(take_sends, s);
    threads[3] = thread_start(post_sends, s);
    return 4;
}

/* Runs streams, each with a thread of its own that takes its messages. */
static void run(pair_t *p, VIP_RELIABILITY_LEVEL level, unsigned count, void (*take)(void *))
{
    stream_t streams[STREAMS];
    thread_t *threads[5 * STREAMS];
    unsigned started = 0;
    for (unsigned i = 0; i < count; i++)
        stream_open(&streams[i], p, level, NULL, i);
    for (unsigned i = 0; i < count; i++) {
        started += start(&streams[i], threads + started);
        threads[started++] = thread_start(take, &streams[i]);
    }
    while (started > 0)
        thread_join(threads[--started]);
}

ROW_LEVELS(FUNCTIONAL, threads_at_one_vi, "VipSendDone",
           "on both queues one thread posts and another takes back: each descriptor once, in order")
{
    run(p, level, 1, take_receives);
}

ROW_LEVELS(FUNCTIONAL, threads_that_wait_at_one_vi, "VipRecvWait",
           "one thread posts, another waits: each descriptor once, in order")
{
    run(p, level, 1, wait_for_receives);
}

ROW_LEVELS(FUNCTIONAL, threads_at_three_vis, "VipPostSend",
           "three VIs at once, each with threads of its own")
{
    run(p, level, STREAMS, take_receives);
}

/* Two threads take entries of one completion queue; each is for one of two VIs. */
typedef struct {
    stream_t *streams;
    VIP_CQ_HANDLE cq;
    unsigned got[2];
} taker_t;

/* Entries that somebody has taken or is about to take. */
static unsigned entries;

static void take_entries(void *argument)
{
    taker_t *t = argument;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN is_recv;
    VIP_DESCRIPTOR *done;
    while (__atomic_fetch_add(&entries, 1, __ATOMIC_RELAXED) < 2 * MESSAGES) {
        OK(VipCQWait(t->cq, LONG, &vi, &is_recv));
        CHECK(is_recv);
        unsigned i = vi == t->streams[1].vb;
        CHECK(vi == t->streams[i].vb);
        OK(VipRecvDone(vi, &done));
        t->got[i]++;
        sem_post(&t->streams[i].receives);
    }
}

ROW_TWO(FUNCTIONAL, threads_at_one_cq, "VipCQWait",
        "two threads take the entries of two VIs: each once, with a descriptor at once")
{
    stream_t streams[2];
    taker_t takers[2];
    VIP_CQ_HANDLE cq;
    thread_t *threads[10];
    unsigned started = 0;
    OK(VipCreateCQ(p->b.nic, 4 * DEPTH, &cq));
    for (unsigned i = 0; i < 2; i++)
        stream_open(&streams[i], p, VIP_SERVICE_RELIABLE_DELIVERY, cq, i);
    for (unsigned i = 0; i < 2; i++) {
        takers[i] = (taker_t){streams, cq, {0, 0}};
        threads[started++] = thread_start(take_entries, &takers[i]);
        started += start(&streams[i], threads + started);
    }
    while (started > 0)
        thread_join(threads[--started]);
    for (unsigned i = 0; i < 2; i++)
        SAME(takers[0].got[i] + takers[1].got[i], MESSAGES);
}

/* Opens, registers, connects nothing, closes; again and again. */
static void open_often(void *argument)
{
    side_t *n = argument;
    for (int i = 0; i < 10; i++) {
        VIP_CQ_HANDLE cq;
        VIP_DESCRIPTOR *done;
        side_open(n, 0);
        OK(VipCreateCQ(n->nic, 16, &cq));
        VIP_VI_HANDLE vi = vi_create(n, VIP_SERVICE_RELIABLE_DELIVERY, cq, cq);
        OK(VipPostSend(vi, one_segment(n, 0, 0, 8), n->handle));
        GIVES(VipSendDone(vi, &done), VIP_DESCRIPTOR_ERROR);
        CHECK(done != NULL);
        side_close(n);
    }
}

ROW(FUNCTIONAL, threads_that_open_and_close, "VipOpenNic",
    "four threads open the same device, use it and close it, ten times each")
{
    side_t sides[4];
    thread_t *threads[4];
    for (int i = 0; i < 4; i++)
        threads[i] = thread_start(open_often, &sides[i]);
    for (int i = 0; i < 4; i++)
        thread_join(threads[i]);
}
