/*
 * A peer that is killed, and one that is stopped, while this process waits for it, writes to it and has
 * opened memory to it: events and errors in bounded time, and everything else goes on.
 *
 * This program is its own peer: `killed NAME` is a node that gives its region to node `watcher`, writes
 * into that of the watcher without end, and never closes anything.
 */
#include "check.h"

#include <sys/prctl.h>

#define BYTES 65536u

/* The message of each to the other. */
typedef struct {
    clan_cookie_t cookie;
} note_t;

static void peer(const char *name)
{
    char device[32];
    clan_port_t port;
    clan_queue_t queue;
    clan_region_t region;
    clan_peer_t watcher;
    clan_event_t event;
    clan_remote_t remote;
    void *memory;
    note_t mine, theirs;
    snprintf(device, sizeof device, "shm:?node=%s", name);
    MUST(clan_open(device, &port));
    MUST(clan_create_queue(port, &queue));
    MUST(clan_set_message_queue(queue));
    MUST(clan_allocate(port, BYTES, &memory, &region));
    MUST(clan_find(port, "watcher", 0, &watcher));
    MUST(clan_open_region(region, &watcher, CLAN_READ | CLAN_WRITE, &mine.cookie));
    MUST(clan_send_message(port, &watcher, &mine, sizeof mine));
    MUST(clan_wait(queue, 20000, &event));
    CHECK(event.kind == CLAN_EVENT_MESSAGE);
    memcpy(&theirs, event.message, sizeof theirs);
    MUST(clan_attach(port, &watcher, theirs.cookie, &remote));
    /* Without end: it is killed, or its right revoked. */
    for (uint64_t word = 1;; word++)
        if (clan_store(remote, 0, &word, 1) != CLAN_OK)
            pause();
}

/* A peer that runs, and is let into a region of `port`. */
typedef struct {
    pid_t process;
    clan_peer_t peer;
    clan_remote_t remote;
    clan_region_t region;
    clan_cookie_t cookie;
    uint64_t *memory;
} running_t;

static void start(running_t *running, const char *program, const char *name, clan_port_t port,
                  clan_queue_t queue)
{
    clan_event_t event;
    void *memory;
    note_t mine, theirs;
    running->process = fork();
    if (running->process == 0) {
        execl(program, program, name, (char *)NULL);
        _exit(1);
    }
    MUST(clan_wait(queue, 20000, &event));
    CHECK(event.kind == CLAN_EVENT_MESSAGE);
    running->peer = event.peer;
    memcpy(&theirs, event.message, sizeof theirs);
    MUST(clan_attach(port, &running->peer, theirs.cookie, &running->remote));
    MUST(clan_allocate(port, BYTES, &memory, &running->region));
    MUST(clan_open_region(running->region, &running->peer, CLAN_WRITE, &running->cookie));
    running->memory = memory;
    mine.cookie = running->cookie;
    MUST(clan_send_message(port, &running->peer, &mine, sizeof mine));
    struct timespec nap = {0, 1000000};
    while (__atomic_load_n(running->memory, __ATOMIC_ACQUIRE) == 0)
        nanosleep(&nap, NULL);
}

static void *kill_soon(void *running)
{
    struct timespec nap = {0, 50000000};
    nanosleep(&nap, NULL);
    kill(((running_t *)running)->process, SIGKILL);
    return NULL;
}

int main(int count, char **words)
{
    clan_port_t port;
    clan_queue_t queue;
    clan_event_t event;
    running_t one, other;
    pthread_t killer;
    uint64_t word = 7;
    int status;
    alarm(100);
    if (count == 2) {
        /* It goes with the watcher, whatever becomes of that. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        peer(words[1]);
        return 1;
    }
    MUST(clan_open("shm:?node=watcher", &port));
    MUST(clan_create_queue(port, &queue));
    MUST(clan_set_message_queue(queue));
    start(&one, words[0], "one", port, queue);
    start(&other, words[0], "other", port, queue);
    /* Killed while this thread waits without end. */
    pthread_create(&killer, NULL, kill_soon, &one);
    double begin = now_ms();
    MUST(clan_wait(queue, CLAN_INFINITE, &event));
    CHECK(now_ms() - begin < 10000);
    CHECK(event.kind == CLAN_EVENT_NODE_LOST && event.result == CLAN_LOST);
    CHECK(strcmp((char *)event.peer.host, "one") == 0);
    pthread_join(killer, NULL);
    CHECK(waitpid(one.process, &status, 0) == one.process && WIFSIGNALED(status));
    GIVES(CLAN_LOST, "8 bytes at offset 0x10 of a region of node 'one'",
          clan_store(one.remote, 16, &word, 1));
    GIVES(CLAN_NOT_REACHABLE, "there is no node 'one'",
          clan_send_message(port, &one.peer, &word, sizeof word));
    MUST(clan_detach(one.remote));
    /* It had a right to write, and is not waited for. */
    begin = now_ms();
    MUST(clan_deregister(one.region));
    CHECK(now_ms() - begin < 1500);
    /* The other one has noticed nothing. */
    MUST(clan_store(other.remote, 16, &word, 1));
    /* One that is stopped does not confirm, and keeps nobody for long. */
    kill(other.process, SIGSTOP);
    CHECK(waitpid(other.process, &status, WUNTRACED) == other.process && WIFSTOPPED(status));
    MUST(clan_store(other.remote, 24, &word, 1));
    begin = now_ms();
    GIVES(CLAN_TIMEOUT, "node 'other' does not confirm", clan_revoke(port, other.cookie));
    GIVES(CLAN_TIMEOUT, "node 'other' does not confirm", clan_deregister(other.region));
    CHECK(now_ms() - begin < 20000);
    kill(other.process, SIGCONT);
    MUST(clan_revoke(port, other.cookie));
    word = __atomic_load_n(other.memory, __ATOMIC_ACQUIRE);
    struct timespec nap = {0, 20000000};
    nanosleep(&nap, NULL);
    CHECK(__atomic_load_n(other.memory, __ATOMIC_ACQUIRE) == word);
    MUST(clan_deregister(other.region));
    kill(other.process, SIGKILL);
    MUST(clan_wait(queue, 20000, &event));
    CHECK(event.kind == CLAN_EVENT_NODE_LOST);
    CHECK(waitpid(other.process, &status, 0) == other.process);
    MUST(clan_close(port));
    printf("done\n");
    return 0;
}
