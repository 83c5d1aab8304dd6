/* Children of a program that uses a NIC: nothing of the parent's is disturbed. */
#define _GNU_SOURCE
#include "frame.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define WRITE VIP_CONTROL_OP_RDMAWRITE
#define BYTES 9000

extern char **environ;

static void await_child(pid_t child)
{
    int status;
    CHECK(child > 0);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    SAME(WEXITSTATUS(status), 0);
}

/* A child that does nothing but execute another program. */
static pid_t execute(void)
{
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    return child;
}

static void fill(const side_t *n, unsigned at, unsigned seed)
{
    for (unsigned i = 0; i < BYTES; i++)
        n->memory[DATA_OFFSET + at + i] = (unsigned char)(seed + i * 13 + (i >> 8));
}

static int filled(const side_t *n, unsigned at, unsigned seed)
{
    for (unsigned i = 0; i < BYTES; i++)
        if (n->memory[DATA_OFFSET + at + i] != (unsigned char)(seed + i * 13 + (i >> 8)))
            return 0;
    return 1;
}

/* A message there and one back, into a receive that was posted before; another is posted for the
 * next time. */
static void post(pair_t *p)
{
    OK(VipPostRecv(p->va, one_segment(&p->a, 1, 100000, BYTES), p->a.handle));
    OK(VipPostRecv(p->vb, one_segment(&p->b, 1, 100000, BYTES), p->b.handle));
}

static void exchange(pair_t *p, unsigned round)
{
    VIP_DESCRIPTOR *done;
    fill(&p->a, 0, round);
    OK(VipPostSend(p->va, one_segment(&p->a, 0, 0, BYTES), p->a.handle));
    OK(VipRecvWait(p->vb, LONG, &done));
    CHECK(filled(&p->b, 100000, round));
    OK(VipSendWait(p->va, LONG, &done));
    fill(&p->b, 0, round + 1);
    OK(VipPostSend(p->vb, one_segment(&p->b, 0, 0, BYTES), p->b.handle));
    OK(VipRecvWait(p->va, LONG, &done));
    CHECK(filled(&p->a, 100000, round + 1));
    OK(VipSendWait(p->vb, LONG, &done));
    post(p);
}

ROW_LEVELS(FUNCTIONAL, fork_and_execute, "VipRegisterMem",
           "children that only execute: memory, posted receives and connection of the parent stay")
{
    (void)level;
    post(p);
    exchange(p, 1);
    for (unsigned round = 0; round < 3; round++) {
        pid_t child = execute();
        exchange(p, round);
        await_child(child);
        exchange(p, round + 100);
    }
}

/* A child with its copy of the parent's memory, and a pipe each way. */
typedef struct {
    pid_t id;
    int to_child, from_child;
} child_t;

static int is_old(const side_t *n) { return filled(n, 100000, 2) && filled(n, 0, 1); }

/* The child finds in its memory what was there at the fork, writes all over it, and much later
 * still finds what it wrote: it has copies. */
static void child_main(const side_t *n, int in, int out)
{
    char byte = 1;
    int good = is_old(n);
    memset(n->memory, 0x5c, MEMORY_BYTES);
    good = good && write(out, &byte, 1) == 1 && read(in, &byte, 1) == 1;
    for (unsigned i = 0; i < MEMORY_BYTES; i++)
        good = good && n->memory[i] == 0x5c;
    _exit(good ? 0 : 1);
}

static child_t fork_writer(const side_t *n)
{
    int there[2], back[2];
    char byte;
    CHECK(pipe2(there, O_CLOEXEC) == 0 && pipe2(back, O_CLOEXEC) == 0);
    pid_t id = fork();
    if (id == 0) {
        close(there[1]);
        close(back[0]);
        child_main(n, there[0], back[1]);
    }
    close(there[0]);
    close(back[1]);
    /* From here on the child has written. */
    (void)!read(back[0], &byte, 1);
    return (child_t){id, there[1], back[0]};
}

static void end_writer(child_t child)
{
    CHECK(write(child.to_child, "x", 1) == 1);
    await_child(child.id);
    close(child.to_child);
    close(child.from_child);
}

ROW_RELIABLE(FUNCTIONAL, fork_and_write, "VipRegisterMem",
             "a child that writes all over its memory: it has copies, the parent's is as it was")
{
    (void)level;
    post(p);
    exchange(p, 1);
    child_t child = fork_writer(&p->a);
    CHECK(is_old(&p->a));
    for (unsigned round = 0; round < 5; round++)
        exchange(p, round);
    end_writer(child);
    exchange(p, 7);
}

ROW_CONNECTED(FUNCTIONAL, fork_and_rdma, "VipRegisterMem",
              "RDMA of both sides reaches the memory of the parent, not that of its child")
{
    VIP_DESCRIPTOR *done;
    post(p);
    exchange(p, 1);
    child_t child = fork_writer(&p->a);
    fill(&p->b, 0, 40);
    OK(VipPostSend(p->vb, rdma(&p->b, 0, WRITE, &p->a, 200000, 0, BYTES), p->b.handle));
    OK(VipSendWait(p->vb, LONG, &done));
    CHECK(filled(&p->a, 200000, 40));
    OK(VipPostSend(p->vb, rdma(&p->b, 0, VIP_CONTROL_OP_RDMAREAD, &p->a, 200000, 300000, BYTES),
                   p->b.handle));
    OK(VipSendWait(p->vb, LONG, &done));
    CHECK(filled(&p->b, 300000, 40));
    end_writer(child);
}

/* Forks again and again, beside a row's traffic. */
static void fork_often(void *argument)
{
    (void)argument;
    for (int i = 0; i < 8; i++)
        await_child(execute());
}

ROW_LEVELS(FUNCTIONAL, fork_in_mid_traffic, "VipPostSend",
           "forks of one thread while another one sends and receives")
{
    (void)level;
    post(p);
    thread_t *thread = thread_start(fork_often, NULL);
    for (unsigned round = 0; round < 30; round++)
        exchange(p, round);
    thread_join(thread);
    exchange(p, 77);
}

ROW_CONNECTED(FUNCTIONAL, spawn_in_mid_traffic, "VipPostSend",
              "a child of posix_spawn, which shares the memory until it executes")
{
    char *words[] = {(char *)(size_t) "true", NULL};
    post(p);
    for (unsigned round = 0; round < 5; round++) {
        pid_t child;
        exchange(p, round);
        CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, words, environ) == 0);
        exchange(p, round + 50);
        await_child(child);
    }
}

ROW_CONNECTED(FUNCTIONAL, fork_then_close, "VipCloseNic",
              "the parent closes its NIC and opens it again while a child lives")
{
    post(p);
    exchange(p, 1);
    child_t child = fork_writer(&p->a);
    side_close(&p->a);
    vi_await(p->vb, VIP_STATE_ERROR);
    side_open(&p->a, 0);
    p->va = vi_create(&p->a, VIP_SERVICE_RELIABLE_RECEPTION, NULL, NULL);
    OK(VipDisconnect(p->vb));
    vi_connect(&p->a, p->va, &p->b, p->vb);
    post(p);
    exchange(p, 9);
    end_writer(child);
}

/* What a child does with its parent's NIC: each call ends, none is a success that it cannot be. */
static void use_parents_card(const pair_t *p)
{
    VIP_DESCRIPTOR *done;
    VIP_VI_HANDLE vi;
    VIP_VI_ATTRIBUTES attributes = vi_attributes(&p->a, VIP_SERVICE_RELIABLE_DELIVERY);
    int good = VipCreateVi(p->a.nic, &attributes, NULL, NULL, &vi) != VIP_SUCCESS;
    VIP_RETURN code = VipPostSend(p->va, one_segment(&p->a, 0, 0, BYTES), p->a.handle);
    if (code == VIP_SUCCESS)
        good = good && VipSendWait(p->va, LONG, &done) != VIP_SUCCESS;
    good = good && VipRecvDone(p->va, &done) != VIP_SUCCESS;
    VipCloseNic(p->a.nic);
    _exit(good ? 0 : 1);
}

ROW_CONNECTED(FUNCTIONAL, fork_child_has_no_card, "VipCreateVi",
              "a child that uses its parent's NIC learns that it has none; the parent's stays")
{
    post(p);
    exchange(p, 1);
    pid_t child = fork();
    if (child == 0)
        use_parents_card(p);
    await_child(child);
    exchange(p, 2);
}

/* A child that opens a NIC of its own, is connected with the parent's, posts a receive, and then only
 * polls until the parent disconnects. */
static void open_and_poll(address_t *server)
{
    side_t own;
    address_t local;
    VIP_DESCRIPTOR *done;
    VIP_VI_ATTRIBUTES theirs;
    VIP_RETURN code = VIP_NOT_DONE;
    side_open(&own, 0);
    VIP_VI_HANDLE vi = vi_create(&own, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    OK(VipPostRecv(vi, one_segment(&own, 0, 0, 64), own.handle));
    name_address(&local, &own, "child");
    OK(VipConnectRequest(vi, &local.net, &server->net, LONG, &theirs));
    for (int i = 0; i < LONG && code == VIP_NOT_DONE; i++) {
        sleep_ms(1);
        code = VipRecvDone(vi, &done);
    }
    SAME(code, VIP_DESCRIPTOR_ERROR);
    OK(VipDisconnect(vi));
    side_close(&own);
    _exit(0);
}

/* Two NICs of a simulation of its own in a child, and how often it was notified of errors. */
static side_t ending[2];
static VIP_VI_HANDLE ending_vi;
static volatile int errors_at_end;

static void ending_open(side_t *side, const char *url)
{
    OK(VipOpenNic(url, &side->nic));
    OK(VipQueryNic(side->nic, &side->attributes));
    OK(VipCreatePtag(side->nic, &side->tag));
}

static void ending_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    (void)context;
    (void)error;
    errors_at_end++;
}

/* Behind everything that was registered with atexit. */
__attribute__((destructor)) static void ending_last(void)
{
    if (ending_vi == NULL)
        return;
    VIP_RETURN code = VipDisconnect(ending_vi);
    sleep_ms(100);
    _exit(code == VIP_SUCCESS && errors_at_end == 0 ? 0 : 1);
}

ROW(FUNCTIONAL, errors_are_not_reported_at_the_end, "VipErrorCallback",
    "the handler is not called any more once the program is in exit")
{
    pid_t child = fork();
    if (child == 0) {
        ending_open(&ending[0], "sim:model?simulation=ending&node=0");
        ending_open(&ending[1], "sim:model?simulation=ending&node=1");
        VIP_VI_HANDLE va = vi_create(&ending[0], VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
        VIP_VI_HANDLE vb = vi_create(&ending[1], VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
        OK(VipErrorCallback(ending[0].nic, NULL, ending_error));
        vi_connect(&ending[0], va, &ending[1], vb);
        ending_vi = vb;
        exit(2);
    }
    await_child(child);
}

ROW_TWO(FUNCTIONAL, fork_child_opens_a_nic, "VipOpenNic",
        "a child opens the NIC that its parent has closed; VIP_ERROR_RESOURCE if it is simulated there")
{
    const char *url = device_url(0);
    int simulated = strncmp(url, "sim:", 4) == 0;
    VIP_VI_HANDLE vb = vi_create(&p->b, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_VI_ATTRIBUTES theirs;
    VIP_CONN_HANDLE connection;
    VIP_NIC_HANDLE nic;
    address_t server, from;
    name_address(&server, &p->b, "parent");
    side_close(&p->a);
    pid_t child = fork();
    if (child == 0 && simulated)
        _exit(VipOpenNic(url, &nic) == VIP_ERROR_RESOURCE ? 0 : 1);
    if (child == 0)
        open_and_poll(&server);
    if (!simulated) {
        OK(VipConnectWait(p->b.nic, &server.net, LONG, &from.net, &theirs, &connection));
        OK(VipConnectAccept(connection, vb));
        OK(VipDisconnect(vb));
    }
    await_child(child);
    side_open(&p->a, 0);
}

static volatile int opening;

static void open_often(void *argument)
{
    VIP_NIC_HANDLE nic;
    (void)argument;
    while (opening) {
        OK(VipOpenNic("sim:model?simulation=opening", &nic));
        OK(VipCloseNic(nic));
    }
}

ROW_TWO(FUNCTIONAL, fork_while_a_nic_is_opened, "VipOpenNic",
        "children of one thread, while another one opens and closes a NIC, are answered")
{
    (void)p;
    opening = 1;
    thread_t *thread = thread_start(open_often, NULL);
    for (unsigned i = 0; i < 20; i++) {
        VIP_NIC_HANDLE nic;
        sleep_us(300 * (i % 7));
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            VipOpenNic(device_url(0), &nic);
            _exit(0);
        }
        await_child(child);
    }
    opening = 0;
    thread_join(thread);
}
