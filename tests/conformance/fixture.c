/* What most rows need: see frame.h. */
#define _GNU_SOURCE
#include "frame.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct thread {
    pthread_t id;
    void (*run)(void *);
    void *argument;
};

void sleep_us(unsigned us)
{
    struct timespec time = {us / 1000000, (long)(us % 1000000) * 1000};
    nanosleep(&time, NULL);
}

void sleep_ms(unsigned ms) { sleep_us(1000 * ms); }

static void *thread_main(void *argument)
{
    thread_t *thread = argument;
    thread->run(thread->argument);
    return NULL;
}

thread_t *thread_start(void (*run)(void *), void *argument)
{
    thread_t *thread = malloc(sizeof *thread);
    CHECK(thread != NULL);
    thread->run = run;
    thread->argument = argument;
    CHECK(pthread_create(&thread->id, NULL, thread_main, thread) == 0);
    return thread;
}

void thread_join(thread_t *thread)
{
    pthread_join(thread->id, NULL);
    free(thread);
}

void side_open(side_t *side, int node)
{
    VIP_MEM_ATTRIBUTES attributes;
    memset(side, 0, sizeof *side);
    memset(&attributes, 0, sizeof attributes);
    side->node = node;
    OK(VipOpenNic(device_url(node), &side->nic));
    OK(VipQueryNic(side->nic, &side->attributes));
    OK(VipCreatePtag(side->nic, &side->tag));
    side->memory = memory_take(node);
    memset(side->memory, 0, MEMORY_BYTES);
    attributes.Ptag = side->tag;
    attributes.EnableRdmaWrite = VIP_TRUE;
    attributes.EnableRdmaRead = VIP_TRUE;
    OK(VipRegisterMem(side->nic, side->memory, MEMORY_BYTES, &attributes, &side->handle));
}

void side_close(side_t *side)
{
    OK(VipCloseNic(side->nic));
    memory_give(side->memory);
}

VIP_VI_ATTRIBUTES vi_attributes(const side_t *side, VIP_RELIABILITY_LEVEL level)
{
    VIP_VI_ATTRIBUTES attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.ReliabilityLevel = level;
    attributes.MaxTransferSize = side->attributes.MaxTransferSize;
    attributes.Ptag = side->tag;
    attributes.EnableRdmaWrite = VIP_TRUE;
    attributes.EnableRdmaRead = level != VIP_SERVICE_UNRELIABLE;
    return attributes;
}

VIP_VI_HANDLE vi_create(const side_t *side, VIP_RELIABILITY_LEVEL level, VIP_CQ_HANDLE send,
                        VIP_CQ_HANDLE recv)
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(side, level);
    VIP_VI_HANDLE vi = NULL;
    OK(VipCreateVi(side->nic, &attributes, send, recv, &vi));
    CHECK(vi != NULL);
    return vi;
}

VIP_VI_STATE vi_state(VIP_VI_HANDLE vi)
{
    VIP_VI_STATE state;
    VIP_VI_ATTRIBUTES attributes;
    VIP_BOOLEAN send, recv;
    OK(VipQueryVi(vi, &state, &attributes, &send, &recv));
    return state;
}

void vi_await(VIP_VI_HANDLE vi, VIP_VI_STATE state)
{
    for (int i = 0; i < LONG && vi_state(vi) != state; i++)
        sleep_ms(1);
    SAME(vi_state(vi), state);
}

VIP_DESCRIPTOR *descriptor(const side_t *side, unsigned index)
{
    VIP_DESCRIPTOR *d = (VIP_DESCRIPTOR *)(void *)(side->memory + (size_t)index * 64);
    memset(d, 0, sizeof *d);
    return d;
}

void set_segment(VIP_DESCRIPTOR *d, unsigned place, const void *data, VIP_MEM_HANDLE handle,
                 unsigned length)
{
    /* Longer descriptors go on behind the two segments that the type has. */
    VIP_DESCRIPTOR_SEGMENT *segments = d->DS, *segment = segments + place;
    segment->Local.Data.AddressBits = (VIP_UINT64)(size_t)data;
    segment->Local.Handle = handle;
    segment->Local.Length = length;
}

VIP_DESCRIPTOR *one_segment(const side_t *side, unsigned index, unsigned data, unsigned length)
{
    VIP_DESCRIPTOR *d = descriptor(side, index);
    d->CS.SegCount = 1;
    d->CS.Length = length;
    set_segment(d, 0, side->memory + DATA_OFFSET + data, side->handle, length);
    return d;
}

VIP_DESCRIPTOR *rdma(const side_t *side, unsigned index, VIP_UINT16 operation, const side_t *other,
                     unsigned remote, unsigned data, unsigned length)
{
    VIP_DESCRIPTOR *d = descriptor(side, index);
    d->CS.SegCount = 2;
    d->CS.Control = operation;
    d->CS.Length = length;
    set_segment(d, 0, other->memory + DATA_OFFSET + remote, other->handle, 0);
    set_segment(d, 1, side->memory + DATA_OFFSET + data, side->handle, length);
    return d;
}

void make_address(address_t *address, const side_t *host, const void *discriminator,
                  unsigned length)
{
    unsigned host_length = host->attributes.NicAddressLen;
    memset(address, 0, sizeof *address);
    address->net.HostAddressLen = (VIP_UINT16)host_length;
    address->net.DiscriminatorLen = (VIP_UINT16)length;
    memcpy(address->room + 4, host->attributes.LocalNicAddress, host_length);
    memcpy(address->room + 4 + host_length, discriminator, length);
}

void name_address(address_t *address, const side_t *host, const char *service)
{
    make_address(address, host, service, (unsigned)strlen(service));
}

static pthread_mutex_t errors_lock = PTHREAD_MUTEX_INITIALIZER;

static void errors_note(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    errors_t *errors = context;
    pthread_mutex_lock(&errors_lock);
    if ((unsigned)error->ErrorCode < 16)
        errors->counts[error->ErrorCode]++;
    errors->last = *error;
    pthread_mutex_unlock(&errors_lock);
}

void errors_catch(const side_t *side, errors_t *errors)
{
    memset(errors, 0, sizeof *errors);
    OK(VipErrorCallback(side->nic, errors, errors_note));
}

unsigned errors_count(errors_t *errors, VIP_ERROR_CODE code)
{
    pthread_mutex_lock(&errors_lock);
    unsigned count = errors->counts[code];
    pthread_mutex_unlock(&errors_lock);
    return count;
}

void errors_await(errors_t *errors, VIP_ERROR_CODE code)
{
    for (int i = 0; i < LONG && errors_count(errors, code) == 0; i++)
        sleep_ms(1);
    if (errors_count(errors, code) == 0)
        fail(__FILE__, __LINE__, "asynchronous error %d did not come", (int)code);
}

typedef struct {
    const side_t *side;
    VIP_VI_HANDLE vi;
} accept_t;

static void accept_one(void *argument)
{
    accept_t *one = argument;
    address_t local, from;
    VIP_VI_ATTRIBUTES theirs;
    VIP_CONN_HANDLE connection;
    name_address(&local, one->side, "row");
    OK(VipConnectWait(one->side->nic, &local.net, LONG, &from.net, &theirs, &connection));
    OK(VipConnectAccept(connection, one->vi));
}

void vi_connect(const side_t *a, VIP_VI_HANDLE va, const side_t *b, VIP_VI_HANDLE vb)
{
    accept_t one = {b, vb};
    thread_t *thread = thread_start(accept_one, &one);
    address_t local, remote;
    VIP_VI_ATTRIBUTES theirs;
    VIP_RETURN code;
    name_address(&local, a, "");
    name_address(&remote, b, "row");
    do
        code = VipConnectRequest(va, &local.net, &remote.net, LONG, &theirs);
    while (code == VIP_NO_MATCH);
    OK(code);
    thread_join(thread);
}

void pair_open(pair_t *pair)
{
    memset(pair, 0, sizeof *pair);
    side_open(&pair->a, 0);
    side_open(&pair->b, 1);
    errors_catch(&pair->a, &pair->ea);
    errors_catch(&pair->b, &pair->eb);
}

void pair_connect(pair_t *pair, VIP_RELIABILITY_LEVEL level)
{
    pair_open(pair);
    pair->va = vi_create(&pair->a, level, NULL, NULL);
    pair->vb = vi_create(&pair->b, level, NULL, NULL);
    vi_connect(&pair->a, pair->va, &pair->b, pair->vb);
}

void pair_close(pair_t *pair)
{
    side_close(&pair->a);
    side_close(&pair->b);
}
