/* A client of clanqueue that asks the server named by its argument, is let in, and dies. */
#include "check.h"

int main(int count, char **words)
{
    clan_port_t port;
    clan_queue_t queue;
    clan_region_t region;
    clan_peer_t server;
    clan_event_t event;
    void *memory;
    uint64_t hello[2] = {1, 0};
    struct timespec nap = {0, 10000000};
    CHECK(count == 2);
    alarm(60);
    MUST(clan_open("shm:?node=leaver", &port));
    MUST(clan_create_queue(port, &queue));
    MUST(clan_set_message_queue(queue));
    MUST(clan_allocate(port, 4096, &memory, &region));
    while (clan_find(port, words[1], 0, &server) == CLAN_NOT_REACHABLE)
        nanosleep(&nap, NULL);
    MUST(clan_open_region(region, &server, CLAN_WRITE, &hello[1]));
    do
        MUST(clan_send_message(port, &server, hello, sizeof hello));
    while (clan_wait(queue, 200, &event) != CLAN_OK);
    CHECK(event.kind == CLAN_EVENT_MESSAGE);
    _exit(0);
}
