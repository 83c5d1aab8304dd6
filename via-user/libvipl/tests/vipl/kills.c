/*
 * Clients on shared memory that are killed at any instant: the server learns of each, has nothing left
 * of it, and its other client notices nothing.
 *
 * kills ROUNDS        the server, which starts its clients
 * kills steady        a client that bounces messages to and fro until its input ends
 * kills victim MODE   a client that sends without end: small messages, middle ones, long ones, long ones
 *                     by copies straight into the server's buffers, RDMA writes
 */
#include "../../../examples/c/common.h"

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MODES 5
#define RECEIVES 4u
/* Descriptors, buffers of receives, a buffer of sends. */
#define BYTES (200u << 10)
#define DATA 8192u
#define OUT (DATA + RECEIVES * BYTES)
#define MEMORY (OUT + BYTES)
/* Rounds in which memory and descriptors grow to what they stay. */
#define WARM_UP 10
/* Longest time for anything, in milliseconds: beyond it something hangs. */
#define HANGS 20000

static void end_with_parent(void) { prctl(PR_SET_PDEATHSIG, SIGKILL); }

static void quiet(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    (void)context;
    (void)error;
}

/* A NIC on a node, whose errors are found by the state of its VIs. */
static void open_quiet(nic_t *nic, const char *device, int rdma)
{
    open_nic(nic, device, MEMORY, rdma);
    MUST(VipErrorCallback(nic->nic, NULL, quiet));
}

static VIP_DESCRIPTOR *receive(nic_t *nic, unsigned number)
{
    return prepare(nic, 64 * number, DATA + number * BYTES, BYTES);
}

static VIP_DESCRIPTOR *out(nic_t *nic, unsigned length)
{
    return prepare(nic, 64 * RECEIVES, OUT, length);
}

static VIP_DESCRIPTOR *from(VIP_RETURN (*done)(VIP_VI_HANDLE, VIP_DESCRIPTOR **), VIP_VI_HANDLE vi)
{
    VIP_DESCRIPTOR *descriptor = NULL;
    return done(vi, &descriptor) == VIP_SUCCESS ? descriptor : NULL;
}

static int is_connected(VIP_VI_HANDLE vi)
{
    VIP_VI_STATE state;
    VIP_VI_ATTRIBUTES attributes;
    VIP_BOOLEAN send, recv;
    MUST(VipQueryVi(vi, &state, &attributes, &send, &recv));
    return state == VIP_STATE_CONNECTED;
}

static void connect_to_server(nic_t *nic, VIP_VI_HANDLE vi, const char *service)
{
    address_t host;
    find_host(nic, "server", &host);
    ask(nic, vi, &host, service);
}

/* Where a victim writes by RDMA. */
typedef struct {
    unsigned long long address;
    unsigned handle;
} place_t;

static void victim(int mode)
{
    static const unsigned lengths[MODES] = {4, 10000, BYTES, BYTES, 30000};
    VIP_VI_EXTENSIONS extensions;
    VIP_DESCRIPTOR *done, *d;
    place_t theirs;
    nic_t nic;
    end_with_parent();
    open_quiet(&nic, "shm:", 1);
    VIP_VI_HANDLE vi = create_vi(&nic, VIP_SERVICE_RELIABLE_DELIVERY, 1, NULL, NULL);
    memset(&extensions, 0, sizeof extensions);
    extensions.Transfer = mode == 3 ? VIP_TRANSFER_DMA : VIP_TRANSFER_DYNAMIC;
    extensions.DeferSend = VIP_TRUE;
    MUST(VipSetViExtensions(vi, &extensions));
    for (unsigned i = 0; i < RECEIVES; i++)
        MUST(VipPostRecv(vi, receive(&nic, i), nic.handle));
    connect_to_server(&nic, vi, "victim");
    MUST(VipRecvWait(vi, HANGS, &done));
    memcpy(&theirs, nic.memory + DATA, sizeof theirs);
    for (;;) {
        d = out(&nic, lengths[mode]);
        if (mode == 4) {
            d->CS.SegCount = 2;
            d->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
            d->DS[1] = d->DS[0];
            memset(&d->DS[0], 0, sizeof d->DS[0]);
            d->DS[0].Remote.Data.Address = (VIP_PVOID)(size_t)theirs.address;
            d->DS[0].Remote.Handle = theirs.handle;
        }
        if (VipPostSend(vi, d, nic.handle) != VIP_SUCCESS || VipSendWait(vi, HANGS, &done) != VIP_SUCCESS)
            pause();
    }
}

static void steady(void)
{
    VIP_DESCRIPTOR *done;
    nic_t nic;
    char line[16];
    unsigned long long number = 0;
    end_with_parent();
    open_quiet(&nic, "shm:", 0);
    VIP_VI_HANDLE vi = create_vi(&nic, VIP_SERVICE_RELIABLE_RECEPTION, 0, NULL, NULL);
    for (unsigned i = 0; i < RECEIVES; i++)
        MUST(VipPostRecv(vi, receive(&nic, i), nic.handle));
    connect_to_server(&nic, vi, "steady");
    /* A line for each hundred messages, and no more before it was taken. */
    while (fgets(line, sizeof line, stdin) != NULL) {
        for (int i = 0; i < 100; i++, number++) {
            unsigned at = number % RECEIVES;
            memcpy(nic.memory + OUT, &number, sizeof number);
            MUST(VipPostSend(vi, out(&nic, 5000), nic.handle));
            MUST(VipSendWait(vi, HANGS, &done));
            MUST(VipRecvWait(vi, HANGS, &done));
            if (memcmp(nic.memory + DATA + at * BYTES, &number, sizeof number) != 0)
                exit(3);
            MUST(VipPostRecv(vi, receive(&nic, at), nic.handle));
        }
        puts("bounced");
        fflush(stdout);
    }
    MUST(VipDisconnect(vi));
    exit(0);
}

/* The server's side of the steady client. */
static void *bounce(void *argument)
{
    nic_t nic;
    VIP_DESCRIPTOR *done;
    (void)argument;
    open_quiet(&nic, "shm:?node=server", 0);
    VIP_VI_HANDLE vi = create_vi(&nic, VIP_SERVICE_RELIABLE_RECEPTION, 0, NULL, NULL);
    for (unsigned i = 0; i < RECEIVES; i++)
        MUST(VipPostRecv(vi, receive(&nic, i), nic.handle));
    serve(&nic, vi, "steady");
    for (unsigned i = 0; VipRecvWait(vi, VIP_INFINITE, &done) == VIP_SUCCESS; i = (i + 1) % RECEIVES) {
        memcpy(nic.memory + OUT, nic.memory + DATA + i * BYTES, done->CS.Length);
        MUST(VipPostRecv(vi, receive(&nic, i), nic.handle));
        if (VipPostSend(vi, out(&nic, 5000), nic.handle) != VIP_SUCCESS ||
            VipSendWait(vi, HANGS, &done) != VIP_SUCCESS)
            break;
    }
    return NULL;
}

typedef struct {
    pid_t process;
    FILE *to, *from;
} client_t;

static client_t start(const char *program, const char *kind, const char *mode)
{
    int in[2], answers[2];
    client_t client;
    if (pipe(in) != 0 || pipe(answers) != 0)
        exit(4);
    client.process = fork();
    if (client.process == 0) {
        dup2(in[0], 0);
        dup2(answers[1], 1);
        close(in[0]), close(in[1]), close(answers[0]), close(answers[1]);
        execl(program, program, kind, mode, (char *)NULL);
        _exit(5);
    }
    close(in[0]), close(answers[1]);
    client.to = fdopen(in[1], "w");
    client.from = fdopen(answers[0], "r");
    return client;
}

static int finish(client_t *client)
{
    int status;
    fclose(client->to);
    fclose(client->from);
    waitpid(client->process, &status, 0);
    return status;
}

static unsigned count(const char *folder)
{
    unsigned found = 0;
    DIR *entries = opendir(folder);
    while (readdir(entries) != NULL)
        found++;
    closedir(entries);
    return found;
}

/* Microseconds until the kill of a victim is noticed. */
static double round_of(nic_t *nic, const char *program, int mode, unsigned long long random)
{
    char text[8];
    VIP_VI_HANDLE vi = create_vi(nic, VIP_SERVICE_RELIABLE_DELIVERY, 1, NULL, NULL);
    place_t own = {(size_t)(nic->memory + DATA), nic->handle};
    VIP_DESCRIPTOR *done;
    client_t client;
    unsigned next = 0;
    for (unsigned i = 0; i < RECEIVES; i++)
        MUST(VipPostRecv(vi, receive(nic, i), nic->handle));
    snprintf(text, sizeof text, "%d", mode);
    client = start(program, "victim", text);
    serve(nic, vi, "victim");
    memcpy(nic->memory + OUT, &own, sizeof own);
    MUST(VipPostSend(vi, out(nic, sizeof own), nic->handle));
    MUST(VipSendWait(vi, HANGS, &done));
    double kill_at = now_us() + (double)(random % 5000), killed = 0;
    for (;;) {
        if (from(VipRecvDone, vi) != NULL) {
            MUST(VipPostRecv(vi, receive(nic, next), nic->handle));
            next = (next + 1) % RECEIVES;
        }
        if (killed == 0 && now_us() > kill_at) {
            kill(client.process, SIGKILL);
            killed = now_us();
        }
        if (!is_connected(vi))
            break;
        if (killed != 0 && now_us() - killed > HANGS * 1e3) {
            fprintf(stderr, "mode %d: a kill is not noticed\n", mode);
            exit(6);
        }
    }
    double noticed = now_us();
    if (killed == 0) {
        fprintf(stderr, "mode %d: the connection ended by itself\n", mode);
        exit(7);
    }
    MUST(VipDisconnect(vi));
    while (from(VipRecvDone, vi) != NULL || VipRecvDone(vi, &done) == VIP_DESCRIPTOR_ERROR)
        if (done == NULL)
            break;
    MUST(VipDestroyVi(vi));
    finish(&client);
    return noticed - killed;
}

int main(int argc, char **words)
{
    nic_t nic;
    client_t client;
    pthread_t thread;
    char line[16];
    double worst = 0;
    unsigned files = 0, threads = 0;
    unsigned long long random = 88172645463325252ull;
    if (argc == 3 && strcmp(words[1], "victim") == 0)
        victim(atoi(words[2]));
    if (argc == 2 && strcmp(words[1], "steady") == 0)
        steady();
    int rounds = argc == 2 ? atoi(words[1]) : 0;
    signal(SIGPIPE, SIG_IGN);
    open_quiet(&nic, "shm:?node=server", 1);
    pthread_create(&thread, NULL, bounce, NULL);
    client = start(words[0], "steady", NULL);
    for (int round = 0; round < rounds; round++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        double time = round_of(&nic, words[0], round % MODES, random);
        worst = time > worst ? time : worst;
        fputs("go\n", client.to);
        fflush(client.to);
        if (fgets(line, sizeof line, client.from) == NULL) {
            fprintf(stderr, "round %d: the steady client has ended\n", round);
            return 8;
        }
        if (round == WARM_UP) {
            files = count("/proc/self/fd");
            threads = count("/proc/self/task");
        }
    }
    if (rounds > WARM_UP && (count("/proc/self/fd") != files || count("/proc/self/task") != threads)) {
        fprintf(stderr, "%u descriptors and %u threads, %u and %u before\n", count("/proc/self/fd"),
                count("/proc/self/task"), files, threads);
        return 9;
    }
    int status = finish(&client);
    pthread_join(thread, NULL);
    printf("%d rounds, a kill was noticed within %.1f ms\n", rounds, worst / 1e3);
    return status != 0;
}
