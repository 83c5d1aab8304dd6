/* The row's side of calls that another process does: see carry.h. */
#define _GNU_SOURCE
#include "carry.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sides of node 1 that a row may have at once. */
#define SLOTS 8
/* The first byte of handles of the other process: that of the library's own is 0, part of a
 * generation that never gets so high. */
#define MARK 0x5a
#define FLIP ((size_t)MARK << 56)

static int active;
static pid_t other;
static int channels[CHANNELS], event_socket;
static unsigned busy, carried, opened;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static unsigned char *arena;
static unsigned slots;

int has_other(void) { return active; }

int is_far(VIP_PVOID handle) { return active && (size_t)handle >> 56 == MARK; }

VIP_PVOID across(VIP_PVOID handle)
{
    return handle == NULL ? NULL : (VIP_PVOID)((size_t)handle ^ FLIP);
}

int opens_far(const VIP_CHAR *name) { return active && name && strcmp(name, device_url(1)) == 0; }

int is_common(VIP_PVOID memory) { return (size_t)memory - (size_t)arena < SLOTS * MEMORY_BYTES; }

void copy_address(VIP_NET_ADDRESS *to, const VIP_NET_ADDRESS *from)
{
    size_t length = 4 + (size_t)from->HostAddressLen + from->DiscriminatorLen;
    memcpy(to, from, length < sizeof(address_t) ? length : sizeof(address_t));
}

/* Calls handlers. */
static void *event_main(void *argument)
{
    event_t e;
    (void)argument;
    while (recv(event_socket, &e, sizeof e, 0) == sizeof e) {
        e.nic = across(e.nic);
        e.vi = across(e.vi);
        e.error.NicHandle = across(e.error.NicHandle);
        e.error.ViHandle = across(e.error.ViHandle);
        e.error.CQHandle = across(e.error.CQHandle);
        if (e.kind == NOTICE_ERROR)
            e.notice.handler.error(e.notice.context, &e.error);
        else if (e.kind == NOTICE_VI)
            e.notice.handler.vi(e.notice.context, e.nic, e.vi, e.descriptor);
        else
            e.notice.handler.cq(e.notice.context, e.nic, e.vi, e.is_recv);
    }
    return NULL;
}

void carry_start(void)
{
    int theirs[CHANNELS], pairs[CHANNELS + 1][2];
    pthread_t thread;
    for (int i = 0; i <= CHANNELS; i++)
        CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pairs[i]) == 0);
    arena = mmap(NULL, SLOTS * MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    CHECK(arena != MAP_FAILED);
    other = fork();
    CHECK(other >= 0);
    for (int i = 0; i <= CHANNELS; i++)
        close(pairs[i][other == 0 ? 0 : 1]);
    if (other == 0) {
        order_by_hand();
        for (int i = 0; i < CHANNELS; i++)
            theirs[i] = pairs[i][1];
        other_run(theirs, pairs[CHANNELS][1]);
    }
    for (int i = 0; i < CHANNELS; i++)
        channels[i] = pairs[i][0];
    event_socket = pairs[CHANNELS][0];
    active = 1;
    CHECK(pthread_create(&thread, NULL, event_main, NULL) == 0);
}

int carry_finish(void)
{
    int status;
    shutdown(event_socket, SHUT_WR);
    CHECK(waitpid(other, &status, 0) == other);
    if (WIFSIGNALED(status))
        fail(__FILE__, __LINE__, "the other process died of signal %d", WTERMSIG(status));
    CHECK(WEXITSTATUS(status) == 0);
    return opened && carried > opened;
}

void *memory_take(int node)
{
    void *memory;
    if (!active || node == 0) {
        CHECK(posix_memalign(&memory, 4096, MEMORY_BYTES) == 0);
        return memory;
    }
    for (unsigned i = 0; i < SLOTS; i++)
        if (!(slots & 1u << i)) {
            slots |= 1u << i;
            return arena + i * MEMORY_BYTES;
        }
    fail(__FILE__, __LINE__, "more than %d sides of node 1", SLOTS);
}

void memory_give(void *memory)
{
    if (active && is_common(memory))
        slots &= ~(1u << ((unsigned char *)memory - arena) / MEMORY_BYTES);
    else
        free(memory);
}

VIP_RETURN carry(call_t *call)
{
    unsigned i = 0;
    ssize_t got;
    pthread_mutex_lock(&lock);
    while (busy == (1u << CHANNELS) - 1)
        pthread_cond_wait(&freed, &lock);
    while (busy & 1u << i)
        i++;
    busy |= 1u << i;
    carried++;
    opened += call->function == OPEN_NIC;
    pthread_mutex_unlock(&lock);
    call->handle = across(call->handle);
    call->second = across(call->second);
    call->third = across(call->third);
    call->vi.Ptag = across(call->vi.Ptag);
    call->mem.Ptag = across(call->mem.Ptag);
    if (send(channels[i], call, sizeof *call, MSG_NOSIGNAL) != sizeof *call)
        fail(__FILE__, __LINE__, "the other process has ended");
    do
        got = recv(channels[i], call, sizeof *call, 0);
    while (got < 0 && errno == EINTR);
    if (got != sizeof *call)
        fail(__FILE__, __LINE__, "the other process died in a call");
    call->vi.Ptag = across(call->vi.Ptag);
    call->mem.Ptag = across(call->mem.Ptag);
    pthread_mutex_lock(&lock);
    busy &= ~(1u << i);
    pthread_cond_signal(&freed);
    pthread_mutex_unlock(&lock);
    return call->code;
}

