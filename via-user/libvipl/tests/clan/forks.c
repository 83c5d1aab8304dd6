/*
 * Children that are forked while other threads open and close ports, write, and wait: each opens a port of
 * its own, exchanges a message with its parent, and finds no lock of a thread that it does not have.
 */
#include "check.h"

#define CHILDREN 60

static volatile int stop;

static void *open_and_close(void *unused)
{
    clan_port_t port;
    (void)unused;
    while (!stop) {
        MUST(clan_open("shm:?node=busy", &port));
        MUST(clan_close(port));
    }
    return NULL;
}

/* Large copies, so that the lock of the handle is held most of the time. */
static void *write_all_the_time(void *remote)
{
    static char bytes[1 << 20];
    while (!stop)
        MUST(clan_write(remote, 0, bytes, sizeof bytes));
    return NULL;
}

int main(void)
{
    clan_port_t port, own;
    clan_attributes_t about;
    clan_queue_t queue;
    clan_region_t region;
    clan_cookie_t cookie;
    clan_remote_t remote;
    clan_event_t event;
    clan_peer_t parent;
    pthread_t threads[2];
    void *memory;
    uint64_t word = 1;
    int status;
    MUST(clan_open("shm:?node=parent", &port));
    MUST(clan_query(port, &about));
    MUST(clan_create_queue(port, &queue));
    MUST(clan_set_message_queue(queue));
    MUST(clan_allocate(port, 1 << 20, &memory, &region));
    MUST(clan_open_region(region, &about.own, CLAN_WRITE, &cookie));
    MUST(clan_attach(port, &about.own, cookie, &remote));
    pthread_create(&threads[0], NULL, open_and_close, NULL);
    pthread_create(&threads[1], NULL, write_all_the_time, remote);
    for (int i = 0; i < CHILDREN; i++) {
        struct timespec nap = {0, 100000 * (i % 7)};
        nanosleep(&nap, NULL);
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            GIVES(CLAN_FORKED, "its parent's", clan_store(remote, 0, &word, 1));
            GIVES(CLAN_FORKED, "its parent's", clan_detach(remote));
            MUST(clan_open("shm:?node=child", &own));
            MUST(clan_find(own, "parent", 0, &parent));
            MUST(clan_send_message(own, &parent, &i, sizeof i));
            MUST(clan_close(own));
            exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(status == 0);
        int number = -1;
        do
            MUST(clan_wait(queue, 20000, &event));
        while (event.kind != CLAN_EVENT_MESSAGE);
        memcpy(&number, event.message, sizeof number);
        CHECK(number == i);
    }
    stop = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    MUST(clan_close(port));
    printf("done\n");
    return 0;
}
