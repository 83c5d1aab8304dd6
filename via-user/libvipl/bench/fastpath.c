/*
 * The fast path, for a counter of instructions: `viaduct bench vipl` runs it under callgrind.
 *
 *   fastpath MODE COUNT
 *
 * Two NICs of a world in this process, whose doorbells are mapped memory that leads nowhere; completions
 * are written here. Modes: token, push (a post each), empty, waiting (a Done each that finds nothing
 * posted, or nothing done), hit (a post and a Done each), quiet (all of them; prints how many system
 * calls and allocations there were).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../examples/c/common.h"

#define MEMORY (1 << 17)
#define DATA (1 << 16)
/* Descriptors in use; a queue has room for twice as many. */
#define SLOTS 512
/* Where the filter of system calls lets the answer out. */
#define OUT 77

static volatile unsigned system_calls;
static unsigned allocations;
static __thread int counting;

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t bytes)
{
    allocations += counting;
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    allocations += counting;
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    allocations += counting;
    return __libc_realloc(old, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    allocations += counting;
    *out = __libc_memalign(alignment, bytes);
    return *out == NULL ? ENOMEM : 0;
}

static void on_system_call(int signal)
{
    (void)signal;
    system_calls++;
}

/* From here on system calls of this thread are counted and not made. */
static void count_system_calls(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUT, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    signal(SIGSYS, on_system_call);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("seccomp");
        exit(1);
    }
}

static nic_t a, b;
static VIP_VI_HANDLE vi, peer;

static void *server(void *nothing)
{
    serve(&b, peer, "cost");
    return nothing;
}

static void connect_both(void)
{
    address_t host;
    pthread_t thread;
    open_nic(&a, "sim:model?doorbells=nowhere&node=0", MEMORY, 0);
    open_nic(&b, "sim:model?doorbells=nowhere&node=1", MEMORY, 0);
    vi = create_vi(&a, VIP_SERVICE_RELIABLE_DELIVERY, 0, NULL, NULL);
    peer = create_vi(&b, VIP_SERVICE_RELIABLE_DELIVERY, 0, NULL, NULL);
    pthread_create(&thread, NULL, server, NULL);
    find_host(&a, "1", &host);
    ask(&a, vi, &host, "cost");
    pthread_join(thread, NULL);
}

static VIP_DESCRIPTOR *slot(unsigned i, unsigned bytes)
{
    return prepare(&a, 64 * (i % SLOTS), DATA, bytes);
}

static void post(VIP_DESCRIPTOR *descriptor)
{
    MUST(VipPostSend(vi, descriptor, a.handle));
}

static void finish(VIP_DESCRIPTOR *descriptor)
{
    VIP_DESCRIPTOR *done;
    descriptor->CS.Status = VIP_STATUS_DONE;
    MUST(VipSendDone(vi, &done));
}

static void find_nothing(unsigned count, VIP_RETURN expected)
{
    VIP_DESCRIPTOR *done;
    for (unsigned i = 0; i < count; i++)
        if (VipSendDone(vi, &done) != expected) {
            fprintf(stderr, "a Done that finds nothing did not give %d\n", expected);
            exit(1);
        }
}

static void find_no_entry(VIP_CQ_HANDLE queue, unsigned count)
{
    VIP_VI_HANDLE of;
    VIP_BOOLEAN receives;
    for (unsigned i = 0; i < count; i++)
        if (VipCQDone(queue, &of, &receives) != VIP_NOT_DONE) {
            fprintf(stderr, "a completion queue with an entry that nobody made\n");
            exit(1);
        }
}

/* One more is always posted, so that the queue is never idle: tokens. */
static void tokens(unsigned count, int done)
{
    post(slot(0, 64));
    for (unsigned i = 1; i <= count; i++) {
        post(slot(i, 64));
        if (done)
            finish((VIP_DESCRIPTOR *)(void *)(a.memory + 64 * ((i - 1) % SLOTS)));
    }
}

static void pushes(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        VIP_DESCRIPTOR *descriptor = slot(i, 8);
        post(descriptor);
        finish(descriptor);
    }
}

int main(int argc, char **argv)
{
    const char *mode = argc == 3 ? argv[1] : "";
    unsigned count = argc == 3 ? (unsigned)atoi(argv[2]) : 0;
    char text[80];
    connect_both();
    if (strcmp(mode, "token") == 0) {
        tokens(count, 0);
    } else if (strcmp(mode, "push") == 0) {
        pushes(count);
    } else if (strcmp(mode, "empty") == 0) {
        find_nothing(count, VIP_DESCRIPTOR_ERROR);
    } else if (strcmp(mode, "waiting") == 0) {
        post(slot(0, 64));
        find_nothing(count, VIP_NOT_DONE);
    } else if (strcmp(mode, "hit") == 0) {
        tokens(count, 1);
    } else if (strcmp(mode, "quiet") == 0) {
        /* The first ones may meet memory for the first time. */
        pushes(1);
        VIP_CQ_HANDLE queue;
        MUST(VipCreateCQ(a.nic, SLOTS, &queue));
        find_no_entry(queue, 1);
        if (dup2(STDOUT_FILENO, OUT) != OUT)
            return 1;
        count_system_calls();
        counting = 1;
        find_nothing(count, VIP_DESCRIPTOR_ERROR);
        pushes(count);
        tokens(count, 1);
        find_nothing(count, VIP_NOT_DONE);
        find_no_entry(queue, count);
        counting = 0;
        int length = snprintf(text, sizeof text, "%u %u\n", system_calls, allocations);
        if (write(OUT, text, (size_t)length) != length)
            return 1;
    } else {
        fprintf(stderr, "fastpath token|push|empty|waiting|hit|quiet COUNT\n");
        return 2;
    }
    /* What is posted stays so: nothing to take down. */
    _exit(0);
}
