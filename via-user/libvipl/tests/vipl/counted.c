/*
 * What posting a send, and registering and deregistering 1 MiB cost: a parent steps through the program,
 * and says how many instructions a post has, and how many system calls each makes.
 *
 * counted URL URL    on the first device, to the second one
 *
 * It prints `post instructions N`, and lines `FUNCTION system calls N, of them while waiting N`.
 *
 * Each is the least of several: a look whether the card is there may come between, and the library
 * learns a descriptor when it is posted first. Doorbells that lead nowhere complete nothing.
 */
#define _GNU_SOURCE
#include "../../../examples/c/common.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1u << 20)
/* Of a message: too long for a push. */
#define BYTES 1024u
#define DATA 1024u
#define MEMORY (DATA + BYTES)
#define TIMES 5
/* Where counting begins and ends. */
#define MARK() __asm__ volatile("int3" ::: "memory")

static nic_t own, other;
static VIP_VI_HANDLE vi, peer;

static void *server(void *nothing)
{
    serve(&other, peer, "counted");
    return nothing;
}

static void counted(char **urls)
{
    address_t host;
    pthread_t thread;
    VIP_MEM_HANDLE handle;
    VIP_MEM_ATTRIBUTES attributes = {0};
    open_nic(&own, urls[0], MEMORY, 0);
    open_nic(&other, urls[1], MEMORY, 0);
    vi = create_vi(&own, VIP_SERVICE_RELIABLE_DELIVERY, 0, NULL, NULL);
    peer = create_vi(&other, VIP_SERVICE_RELIABLE_DELIVERY, 0, NULL, NULL);
    for (unsigned i = 0; i < TIMES; i++)
        MUST(VipPostRecv(peer, prepare(&other, 64 * i, DATA, BYTES), other.handle));
    make_address(&host, other.attributes.LocalNicAddress, other.attributes.NicAddressLen, "");
    pthread_create(&thread, NULL, server, NULL);
    ask(&own, vi, &host, "counted");
    pthread_join(thread, NULL);
    unsigned char *memory = calloc(1, MIB);
    attributes.Ptag = own.tag;
    for (unsigned i = 0; i < TIMES; i++) {
        VIP_DESCRIPTOR *send = prepare(&own, 0, DATA, BYTES), *done;
        MARK();
        MUST(VipPostSend(vi, send, own.handle));
        MARK();
        if (strstr(urls[0], "nowhere") != NULL)
            send->CS.Status = VIP_STATUS_DONE;
        MUST(VipSendWait(vi, VIP_INFINITE, &done));
    }
    for (unsigned i = 0; i < TIMES; i++) {
        MARK();
        MUST(VipRegisterMem(own.nic, memory, MIB, &attributes, &handle));
        MARK();
        MARK();
        MUST(VipDeregisterMem(own.nic, memory, handle));
        MARK();
    }
    exit(0);
}

typedef struct {
    unsigned long instructions, calls, waiting;
} count_t;

/*
 * Goes on from a mark to the next one, by `how`: PTRACE_SINGLESTEP, or PTRACE_SYSCALL, which stops at system
 * calls alone and is far faster. Ends with the program.
 */
static count_t step(pid_t child, int how)
{
    count_t count = {0, 0, 0};
    int status, is_inside = 0;
    siginfo_t info;
    struct user_regs_struct registers;
    waitpid(child, &status, __WALL);
    while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP) {
        if (ptrace(how, child, NULL, NULL) != 0 || waitpid(child, &status, __WALL) < 0)
            break;
        if (ptrace(PTRACE_GETSIGINFO, child, NULL, &info) == 0 && info.si_code == SI_KERNEL) {
            ptrace(PTRACE_CONT, child, NULL, NULL);
            return count;
        }
        ptrace(PTRACE_GETREGS, child, NULL, &registers);
        unsigned long number = registers.orig_rax;
        if (how == PTRACE_SYSCALL) {
            is_inside = !is_inside;
        } else {
            count.instructions++;
            is_inside = (ptrace(PTRACE_PEEKTEXT, child, (void *)registers.rip, NULL) & 0xffff) == 0x050f;
            number = registers.rax;
        }
        if (is_inside) {
            count.calls++;
            count.waiting += number == SYS_sched_yield || number == SYS_clock_nanosleep;
        }
    }
    fprintf(stderr, "the program ended with %#x\n", status);
    exit(1);
}

static void keep_least(count_t *least, count_t count, int is_first)
{
    unsigned long work = count.calls - count.waiting, before = least->calls - least->waiting;
    int is_less = work < before || (work == before && count.instructions < least->instructions);
    if (is_first || is_less)
        *least = count;
}

int main(int argc, char **words)
{
    static const char *const names[] = {"post", "register", "deregister"};
    count_t least[3] = {{0, 0, 0}};
    if (argc != 3)
        return 2;
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        counted(words + 1);
    }
    /* Where no doorbell leads, only posts are compared. */
    unsigned whats = strstr(words[1], "nowhere") != NULL ? 1 : 3;
    for (unsigned i = 0; i < TIMES; i++)
        keep_least(&least[0], step(child, PTRACE_SINGLESTEP), i == 0);
    for (unsigned i = 0; whats > 1 && i < 2 * TIMES; i++)
        keep_least(&least[1 + i % 2], step(child, PTRACE_SYSCALL), i < 2);
    kill(child, SIGKILL);
    printf("post instructions %lu\n", least[0].instructions);
    for (unsigned what = 0; what < whats; what++)
        printf("%s system calls %lu, of them while waiting %lu\n", names[what], least[what].calls,
               least[what].waiting);
    return 0;
}
