/*
 * Every function of clan.h with arguments that are NULL, stale, of another kind, of another port or out of
 * range: each is an error whose text names it, and nothing else happens. Then: after destroying, in
 * threads that wait, after closing, and in a child after fork.
 */
#define _DEFAULT_SOURCE
#include "check.h"

#include <sys/mman.h>
#include <sys/resource.h>

#define ANY(type, number) ((type)(size_t)(number))
#define BYTES 4096u

static const uint64_t WORDS[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

typedef struct {
    clan_port_t port;
    clan_attributes_t about;
    clan_queue_t queue;
    clan_region_t region;
    uint64_t *memory;
} node_t;

static node_t a, b;
static clan_cookie_t cookie;
static clan_remote_t remote;
static clan_dma_t dma;
static clan_tripwire_t tripwire;

static void open_node(node_t *node, const char *device)
{
    void *memory;
    MUST(clan_open(device, &node->port));
    MUST(clan_query(node->port, &node->about));
    MUST(clan_create_queue(node->port, &node->queue));
    MUST(clan_allocate(node->port, BYTES, &memory, &node->region));
    node->memory = memory;
}

static void layout(void)
{
    CHECK(sizeof(clan_peer_t) == 36 && sizeof(clan_attributes_t) == 84);
    CHECK(offsetof(clan_attributes_t, own) == 32 && offsetof(clan_attributes_t, regions) == 68);
    CHECK(offsetof(clan_attributes_t, maps_all) == 80);
    CHECK(sizeof(clan_event_t) == 104 && offsetof(clan_event_t, tag) == 8);
    CHECK(offsetof(clan_event_t, peer) == 16 && offsetof(clan_event_t, message) == 52);
    CHECK(CLAN_DEVICE == 9 && strcmp(clan_code_name(CLAN_DEVICE), "CLAN_DEVICE") == 0);
    CHECK(strcmp(clan_code_name(10), "(no clan_result_t)") == 0);
    CHECK(strcmp(clan_code_name(-1), "(no clan_result_t)") == 0);
    CHECK(strcmp(clan_error_text(), "") == 0);
}

static void names(void)
{
    clan_port_t port = ANY(clan_port_t, 7);
    GIVES(CLAN_INVALID, "port is NULL", clan_open("shm:", NULL));
    GIVES(CLAN_INVALID, "device is NULL", clan_open(NULL, &port));
    GIVES(CLAN_INVALID, "eth0", clan_open("eth0", &port));
    GIVES(CLAN_INVALID, "shm:?nod=a", clan_open("shm:?nod=a", &port));
    GIVES(CLAN_INVALID, "`sim:model` is no node of a CLAN network", clan_open("sim:model", &port));
    GIVES(CLAN_DEVICE, "'a/b' cannot be the name of a node", clan_open("shm:?node=a/b", &port));
    CHECK(port == ANY(clan_port_t, 7));
    /* Without a name, and by default: the first that is free. */
    clan_attributes_t about;
    MUST(clan_open("", &port));
    MUST(clan_query(port, &about));
    CHECK(strcmp(about.name, "node0") == 0 && about.own.domain == 0);
    MUST(clan_close(port));
}

/* A pointer that is no handle of the kind, by each name that it may have. */
static void handles(void)
{
    clan_peer_t peer = b.about.own;
    clan_event_t event;
    clan_attributes_t about;
    clan_region_t region = NULL;
    clan_queue_t queue = NULL;
    clan_remote_t other = NULL;
    clan_dma_t other_dma = NULL;
    clan_tripwire_t wire = NULL;
    clan_cookie_t bits = 0;
    void *memory = NULL;
    uint64_t length = 0;
    size_t count = 1;
    int is_mapped = 0;
    char name[32];
    /* NULL, small, made up, of another kind. */
    const size_t bad[4] = {0, 1, ~(size_t)0, (size_t)a.queue};
    for (int i = 0; i < 4; i++) {
        const char *what = bad[i] == 0 ? "is NULL" : "no such handle";
        clan_port_t port = ANY(clan_port_t, bad[i]);
        GIVES(CLAN_INVALID, what, clan_close(port));
        GIVES(CLAN_INVALID, what, clan_query(port, &about));
        GIVES(CLAN_INVALID, what, clan_find(port, "a", 0, &peer));
        GIVES(CLAN_INVALID, what, clan_name(port, &peer, name, sizeof name));
        GIVES(CLAN_INVALID, what, clan_discover(port, &peer, &count));
        GIVES(CLAN_INVALID, what, clan_send_message(port, &peer, "x", 1));
        GIVES(CLAN_INVALID, what, clan_allocate(port, BYTES, &memory, &region));
        GIVES(CLAN_INVALID, what, clan_register(port, name, sizeof name, &region));
        GIVES(CLAN_INVALID, what, clan_revoke(port, cookie));
        GIVES(CLAN_INVALID, what, clan_attach(port, &peer, cookie, &other));
        GIVES(CLAN_INVALID, what, clan_create_queue(port, &queue));
    }
    const size_t others[4] = {0, 1, ~(size_t)0, (size_t)a.port};
    for (int i = 0; i < 4; i++) {
        const char *what = others[i] == 0 ? "is NULL" : "no such handle";
        clan_region_t no_region = ANY(clan_region_t, others[i]);
        clan_queue_t no_queue = ANY(clan_queue_t, others[i]);
        clan_remote_t no_remote = ANY(clan_remote_t, others[i]);
        clan_dma_t no_dma = ANY(clan_dma_t, others[i]);
        clan_tripwire_t no_wire = ANY(clan_tripwire_t, others[i]);
        GIVES(CLAN_INVALID, what, clan_deregister(no_region));
        GIVES(CLAN_INVALID, what, clan_open_region(no_region, &peer, CLAN_READ, &bits));
        GIVES(CLAN_INVALID, what, clan_set_tripwire(no_region, 0, CLAN_READ, 1, a.queue, &wire));
        GIVES(CLAN_INVALID, what, clan_set_tripwire(a.region, 0, CLAN_READ, 1, no_queue, &wire));
        GIVES(CLAN_INVALID, what, clan_clear_tripwire(no_wire));
        GIVES(CLAN_INVALID, what, clan_destroy_queue(no_queue));
        GIVES(CLAN_INVALID, what, clan_set_message_queue(no_queue));
        GIVES(CLAN_INVALID, what, clan_poll(no_queue, &event));
        GIVES(CLAN_INVALID, what, clan_wait(no_queue, 0, &event));
        GIVES(CLAN_INVALID, what, clan_create_dma(no_queue, &other_dma));
        GIVES(CLAN_INVALID, what, clan_destroy_dma(no_dma));
        GIVES(CLAN_INVALID, what, clan_dma_write(no_dma, remote, 0, WORDS, 8, 0, 0));
        GIVES(CLAN_INVALID, what, clan_dma_write(dma, no_remote, 0, WORDS, 8, 0, 0));
        GIVES(CLAN_INVALID, what, clan_detach(no_remote));
        GIVES(CLAN_INVALID, what, clan_query_remote(no_remote, &length, &is_mapped));
        GIVES(CLAN_INVALID, what, clan_store(no_remote, 0, WORDS, 1));
        GIVES(CLAN_INVALID, what, clan_write(no_remote, 0, WORDS, 8));
        GIVES(CLAN_INVALID, what, clan_read(no_remote, 0, name, 8, 0));
    }
    CHECK(region == NULL && queue == NULL && other == NULL && other_dma == NULL && wire == NULL);
    CHECK(bits == 0 && memory == NULL);
}

static void null_pointers(void)
{
    clan_peer_t peer = b.about.own;
    clan_region_t region;
    void *memory;
    uint64_t length;
    size_t count = 1;
    int is_mapped;
    char name[32];
    GIVES(CLAN_INVALID, "attributes is NULL", clan_query(a.port, NULL));
    GIVES(CLAN_INVALID, "name is NULL", clan_find(a.port, NULL, 0, &peer));
    GIVES(CLAN_INVALID, "peer is NULL", clan_find(a.port, "b", 0, NULL));
    GIVES(CLAN_INVALID, "peer is NULL", clan_name(a.port, NULL, name, sizeof name));
    GIVES(CLAN_INVALID, "name is NULL", clan_name(a.port, &peer, NULL, 32));
    GIVES(CLAN_INVALID, "count is NULL", clan_discover(a.port, &peer, NULL));
    GIVES(CLAN_INVALID, "peers is NULL", clan_discover(a.port, NULL, &count));
    GIVES(CLAN_INVALID, "to is NULL", clan_send_message(a.port, NULL, "x", 1));
    GIVES(CLAN_INVALID, "message is NULL", clan_send_message(a.port, &peer, NULL, 1));
    GIVES(CLAN_INVALID, "address is NULL", clan_allocate(a.port, BYTES, NULL, &region));
    GIVES(CLAN_INVALID, "region is NULL", clan_allocate(a.port, BYTES, &memory, NULL));
    GIVES(CLAN_INVALID, "address is NULL", clan_register(a.port, NULL, 1, &region));
    GIVES(CLAN_INVALID, "region is NULL", clan_register(a.port, name, 1, NULL));
    GIVES(CLAN_INVALID, "to is NULL", clan_open_region(a.region, NULL, CLAN_READ, &cookie));
    GIVES(CLAN_INVALID, "cookie is NULL", clan_open_region(a.region, &peer, CLAN_READ, NULL));
    GIVES(CLAN_INVALID, "owner is NULL", clan_attach(b.port, NULL, cookie, &remote));
    GIVES(CLAN_INVALID, "remote is NULL", clan_attach(b.port, &a.about.own, cookie, NULL));
    GIVES(CLAN_INVALID, "length is NULL", clan_query_remote(remote, NULL, &is_mapped));
    GIVES(CLAN_INVALID, "is_mapped is NULL", clan_query_remote(remote, &length, NULL));
    GIVES(CLAN_INVALID, "words is NULL", clan_store(remote, 0, NULL, 1));
    GIVES(CLAN_INVALID, "source is NULL", clan_write(remote, 0, NULL, 1));
    GIVES(CLAN_INVALID, "target is NULL", clan_read(remote, 0, NULL, 1, 0));
    GIVES(CLAN_INVALID, "queue is NULL", clan_create_queue(a.port, NULL));
    GIVES(CLAN_INVALID, "event is NULL", clan_poll(a.queue, NULL));
    GIVES(CLAN_INVALID, "event is NULL", clan_wait(a.queue, 0, NULL));
    GIVES(CLAN_INVALID, "tripwire is NULL",
          clan_set_tripwire(a.region, 0, CLAN_READ, 1, a.queue, NULL));
    GIVES(CLAN_INVALID, "dma is NULL", clan_create_dma(a.queue, NULL));
    GIVES(CLAN_INVALID, "source is NULL", clan_dma_write(dma, remote, 0, NULL, 1, 0, 0));
}

static void ranges(void)
{
    clan_peer_t peer = b.about.own, none = b.about.own, nobody;
    clan_cookie_t bits = 0, reads;
    clan_remote_t other = NULL, reader;
    clan_tripwire_t wire = NULL;
    clan_region_t region = NULL;
    clan_event_t event;
    void *memory;
    uint64_t words[8];
    size_t count = 0;
    int is_mapped;
    char name[32];
    GIVES(CLAN_NOT_REACHABLE, "there is no node 'c'", clan_find(a.port, "c", 0, &peer));
    GIVES(CLAN_NOT_REACHABLE, "there is no node ''", clan_find(a.port, "", 0, &peer));
    MUST(clan_find(a.port, "b", 0, &peer));
    CHECK(memcmp(&peer, &b.about.own, sizeof peer) == 0);
    GIVES(CLAN_INVALID, "room is 1, and the name needs 2", clan_name(a.port, &peer, name, 1));
    MUST(clan_name(a.port, &peer, name, 2));
    CHECK(strcmp(name, "b") == 0 && strcmp(b.about.name, "b") == 0);
    MUST(clan_discover(a.port, NULL, &count));
    CHECK(count == 1);
    none.host_length = 0;
    GIVES(CLAN_INVALID, "host_length", clan_send_message(a.port, &none, "x", 1));
    none.host_length = 33;
    GIVES(CLAN_INVALID, "host_length of the peer is 33",
          clan_open_region(a.region, &none, CLAN_READ, &bits));
    GIVES(CLAN_INVALID, "host_length", clan_attach(b.port, &none, cookie, &other));
    GIVES(CLAN_INVALID, "host_length", clan_name(a.port, &none, name, sizeof name));
    nobody = b.about.own;
    nobody.host[0] = 'x';
    GIVES(CLAN_NOT_REACHABLE, "there is no node 'x'", clan_send_message(a.port, &nobody, "x", 1));
    GIVES(CLAN_NOT_REACHABLE, "there is no node 'x'", clan_attach(b.port, &nobody, cookie, &other));
    GIVES(CLAN_INVALID, "length is 0", clan_send_message(a.port, &peer, "x", 0));
    GIVES(CLAN_INVALID, "length is 49", clan_send_message(a.port, &peer, "x", 49));
    GIVES(CLAN_INVALID, "bytes is 0", clan_allocate(a.port, 0, &memory, &region));
    GIVES(CLAN_EXHAUSTED, "cannot be allocated", clan_allocate(a.port, ~(size_t)0, &memory, &region));
    GIVES(CLAN_EXHAUSTED, "cannot be allocated",
          clan_allocate(a.port, (size_t)1 << 62, &memory, &region));
    GIVES(CLAN_INVALID, "0 bytes at", clan_register(a.port, name, 0, &region));
    GIVES(CLAN_INVALID, "are no memory", clan_register(a.port, name, ~(size_t)0, &region));
    GIVES(CLAN_INVALID, "0x0 is not CLAN_READ", clan_open_region(a.region, &peer, 0, &bits));
    GIVES(CLAN_INVALID, "0x5 is not", clan_open_region(a.region, &peer, 5, &bits));
    GIVES(CLAN_INVALID, "is no cookie", clan_attach(b.port, &a.about.own, 1 << 20, &other));
    GIVES(CLAN_INVALID, "is no cookie", clan_revoke(a.port, 1 << 20));
    GIVES(CLAN_REFUSED, "is void, or was given to another",
          clan_attach(b.port, &a.about.own, cookie ^ 1ull << 40, &other));
    GIVES(CLAN_REFUSED, "of node 'a'", clan_attach(a.port, &a.about.own, cookie, &other));
    GIVES(CLAN_INVALID, "count is 0", clan_store(remote, 0, WORDS, 0));
    GIVES(CLAN_INVALID, "count is 9", clan_store(remote, 0, WORDS, 9));
    GIVES(CLAN_INVALID, "offset 0x4 is no multiple of 8", clan_store(remote, 4, WORDS, 1));
    GIVES(CLAN_REFUSED, "8 bytes at offset 0x1000 lie outside the region of node 'a'",
          clan_store(remote, BYTES, WORDS, 1));
    GIVES(CLAN_REFUSED, "lie outside", clan_store(remote, ~(uint64_t)7, WORDS, 2));
    GIVES(CLAN_REFUSED, "2 bytes at offset 0xfff lie", clan_write(remote, BYTES - 1, WORDS, 2));
    GIVES(CLAN_INVALID, "0 bytes at", clan_write(remote, 0, WORDS, 0));
    GIVES(CLAN_REFUSED, "lie outside", clan_read(remote, ~(uint64_t)0, words, 8, 0));
    GIVES(CLAN_INVALID, "0 bytes at", clan_read(remote, 0, words, 0, 0));
    MUST(clan_open_region(a.region, &peer, CLAN_READ, &reads));
    MUST(clan_attach(b.port, &a.about.own, reads, &reader));
    GIVES(CLAN_REFUSED, "gives no right to write", clan_store(reader, 0, WORDS, 1));
    MUST(clan_read(reader, 0, words, sizeof words, 0));
    MUST(clan_revoke(a.port, reads));
    MUST(clan_revoke(a.port, reads));
    GIVES(CLAN_REFUSED, "was revoked", clan_read(reader, 0, words, sizeof words, 0));
    MUST(clan_query_remote(reader, &words[0], &is_mapped));
    CHECK(words[0] == BYTES && is_mapped == 1);
    MUST(clan_detach(reader));
    GIVES(CLAN_INVALID, "no such handle", clan_detach(reader));
    GIVES(CLAN_INVALID, "offset", clan_set_tripwire(a.region, 4, CLAN_READ, 1, a.queue, &wire));
    GIVES(CLAN_INVALID, "offset", clan_set_tripwire(a.region, BYTES, CLAN_READ, 1, a.queue, &wire));
    GIVES(CLAN_INVALID, "CLAN_ONCE", clan_set_tripwire(a.region, 0, CLAN_ONCE, 1, a.queue, &wire));
    GIVES(CLAN_INVALID, "0xb is not", clan_set_tripwire(a.region, 0, 11, 1, a.queue, &wire));
    GIVES(CLAN_INVALID, "of two ports", clan_set_tripwire(a.region, 0, 1, 1, b.queue, &wire));
    double start = now_ms();
    GIVES(CLAN_TIMEOUT, "no event in 30 ms", clan_wait(a.queue, 30, &event));
    CHECK(now_ms() - start >= 30);
    GIVES(CLAN_TIMEOUT, "no event in 0 ms", clan_wait(a.queue, 0, &event));
    CHECK(clan_poll(a.queue, &event) == CLAN_NO_EVENT);
    CHECK(other == NULL && wire == NULL && region == NULL && bits == 0);
}

static void dma_requests(void)
{
    clan_event_t event;
    clan_dma_t of_a;
    GIVES(CLAN_INVALID, "0 bytes at", clan_dma_write(dma, remote, 0, WORDS, 0, 0, 0));
    MUST(clan_create_dma(a.queue, &of_a));
    GIVES(CLAN_INVALID, "of two ports", clan_dma_write(of_a, remote, 0, WORDS, 8, 0, 0));
    MUST(clan_destroy_dma(of_a));
    GIVES(CLAN_INVALID, "no such handle", clan_dma_write(of_a, remote, 0, WORDS, 8, 0, 0));
    MUST(clan_dma_write(dma, remote, 256, WORDS, 24, 0, 5));
    CHECK(clan_poll(b.queue, &event) == CLAN_NO_EVENT && a.memory[34] == 3);
    MUST(clan_dma_write(dma, remote, BYTES, WORDS, 8, 1, 6));
    MUST(clan_wait(b.queue, 10000, &event));
    CHECK(event.kind == CLAN_EVENT_DMA && event.tag == 6 && event.result == CLAN_REFUSED);
    MUST(clan_dma_write(dma, remote, BYTES, WORDS, 8, 0, 7));
    MUST(clan_wait(b.queue, 10000, &event));
    CHECK(event.kind == CLAN_EVENT_DMA && event.tag == 0 && event.result == CLAN_REFUSED);
    for (int i = 0; i < 4096; i++)
        MUST(clan_dma_write(dma, remote, 0, WORDS, 8, 1, 8));
    GIVES(CLAN_EXHAUSTED, "event queue", clan_dma_write(dma, remote, 0, WORDS, 8, 1, 8));
    while (clan_poll(b.queue, &event) == CLAN_OK)
        CHECK(event.tag == 8 && event.result == CLAN_OK);
    MUST(clan_dma_write(dma, remote, 0, WORDS, 8, 1, 9));
    MUST(clan_poll(b.queue, &event));
}

/* What is destroyed takes its tripwires along, and nothing of what has its number afterwards. */
static void destroyed(void)
{
    clan_queue_t old, queue;
    clan_region_t region;
    clan_tripwire_t wires[3];
    clan_dma_t on_old;
    clan_cookie_t to_self;
    clan_remote_t self;
    clan_event_t event;
    void *memory;
    MUST(clan_create_queue(b.port, &old));
    MUST(clan_create_dma(old, &on_old));
    MUST(clan_set_tripwire(b.region, 0, CLAN_WRITE, 1, old, &wires[0]));
    MUST(clan_destroy_queue(old));
    GIVES(CLAN_INVALID, "no such handle", clan_destroy_queue(old));
    GIVES(CLAN_INVALID, "no such handle", clan_clear_tripwire(wires[0]));
    MUST(clan_create_queue(b.port, &queue));
    GIVES(CLAN_INVALID, "event queue", clan_dma_write(on_old, remote, 0, WORDS, 8, 1, 1));
    MUST(clan_allocate(b.port, BYTES, &memory, &region));
    MUST(clan_set_tripwire(region, 0, CLAN_WRITE | CLAN_ONCE, 2, queue, &wires[1]));
    MUST(clan_set_tripwire(b.region, 0, CLAN_WRITE, 3, queue, &wires[2]));
    MUST(clan_deregister(region));
    GIVES(CLAN_INVALID, "no such handle", clan_deregister(region));
    GIVES(CLAN_INVALID, "no such handle", clan_clear_tripwire(wires[1]));
    MUST(clan_open_region(b.region, &b.about.own, CLAN_WRITE, &to_self));
    MUST(clan_attach(b.port, &b.about.own, to_self, &self));
    MUST(clan_store(self, 0, WORDS, 1));
    MUST(clan_poll(queue, &event));
    CHECK(event.kind == CLAN_EVENT_TRIPWIRE && event.tag == 3);
    /* To another node the cookie is one that is void already. */
    MUST(clan_revoke(a.port, to_self));
    MUST(clan_store(self, 0, WORDS, 1));
    MUST(clan_detach(self));
    MUST(clan_clear_tripwire(wires[2]));
    GIVES(CLAN_INVALID, "no such handle", clan_clear_tripwire(wires[2]));
    MUST(clan_destroy_queue(queue));
    MUST(clan_destroy_dma(on_old));
}

/* Memory of the program as a region: at any address, of any length. */
static void own_memory(void)
{
    static unsigned char bytes[100];
    clan_region_t region;
    clan_cookie_t right;
    clan_remote_t other;
    uint64_t length;
    int is_mapped;
    MUST(clan_register(a.port, bytes + 1, 50, &region));
    MUST(clan_open_region(region, &b.about.own, CLAN_WRITE, &right));
    MUST(clan_attach(b.port, &a.about.own, right, &other));
    MUST(clan_query_remote(other, &length, &is_mapped));
    CHECK(length == 50 && is_mapped == 0);
    MUST(clan_write(other, 3, "hello", 5));
    CHECK(memcmp(bytes + 4, "hello", 5) == 0);
    MUST(clan_store(other, 8, WORDS, 2));
    CHECK(bytes[9] == 1 && bytes[17] == 2);
    MUST(clan_deregister(region));
    GIVES(CLAN_REFUSED, "was revoked", clan_write(other, 3, "HELLO", 5));
    CHECK(memcmp(bytes + 4, "hello", 5) == 0);
    MUST(clan_detach(other));
    /* A program that unmaps it too early harms nobody else. */
    void *page = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    MUST(clan_register(a.port, page, BYTES, &region));
    MUST(clan_open_region(region, &b.about.own, CLAN_READ | CLAN_WRITE, &right));
    MUST(clan_attach(b.port, &a.about.own, right, &other));
    MUST(clan_write(other, 0, "hello", 5));
    munmap(page, BYTES);
    GIVES(CLAN_LOST, "exists no more", clan_write(other, 0, "hello", 5));
    GIVES(CLAN_LOST, "exists no more", clan_store(other, 0, WORDS, 1));
    GIVES(CLAN_LOST, "exists no more", clan_read(other, 0, bytes, 5, 0));
    MUST(clan_deregister(region));
}

/* As many as there are of everything; one more is an error, and all of them can be released. */
static void limits(void)
{
    static clan_port_t ports[1025];
    static clan_region_t regions[4097];
    static clan_queue_t queues[257];
    static clan_tripwire_t wires[4097];
    static unsigned char bytes[8];
    clan_port_t port;
    clan_attributes_t about;
    clan_region_t region;
    clan_remote_t other;
    struct rlimit files, few;
    void *memory;
    unsigned count;
    MUST(clan_open("shm:?node=full", &port));
    MUST(clan_query(port, &about));
    CHECK(about.regions == 4096 && about.tripwires == 4096 && about.queues == 256);
    for (count = 0; clan_open("shm:?node=full", &ports[count]) == CLAN_OK; count++)
        CHECK(count < 1024);
    CHECK(count == 1023);
    GIVES(CLAN_EXHAUSTED, "no free domain", clan_open("shm:?node=full", &ports[count]));
    while (count-- > 0)
        MUST(clan_close(ports[count]));
    for (count = 0; clan_create_queue(port, &queues[count]) == CLAN_OK; count++)
        CHECK(count < 256);
    GIVES(CLAN_EXHAUSTED, "no free event queue", clan_create_queue(port, &queues[count]));
    CHECK(count == 256);
    MUST(clan_allocate(port, 8 * 4096, &memory, &region));
    for (count = 0; count < 4096; count++)
        MUST(clan_set_tripwire(region, 8 * count, CLAN_WRITE, count, queues[0], &wires[count]));
    GIVES(CLAN_EXHAUSTED, "no free tripwire",
          clan_set_tripwire(region, 0, CLAN_WRITE, 1, queues[0], &wires[4096]));
    MUST(clan_clear_tripwire(wires[5]));
    MUST(clan_set_tripwire(region, 0, CLAN_WRITE, 1, queues[0], &wires[5]));
    for (count = 1; clan_register(port, bytes, sizeof bytes, &regions[count]) == CLAN_OK; count++)
        CHECK(count < 4096);
    CHECK(count == 4096);
    GIVES(CLAN_EXHAUSTED, "no free region", clan_allocate(port, 1, &memory, &regions[count]));
    MUST(clan_deregister(regions[7]));
    MUST(clan_register(port, bytes, sizeof bytes, &regions[7]));
    MUST(clan_deregister(region));
    while (count-- > 1)
        MUST(clan_deregister(regions[count]));
    for (count = 0; count < 256; count++)
        MUST(clan_destroy_queue(queues[count]));
    /* No descriptors: errors, and nothing is lost. */
    CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
    few = files;
    few.rlim_cur = 3;
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    GIVES(CLAN_EXHAUSTED, "Too many open files", clan_allocate(port, 1, &memory, &region));
    CHECK(clan_attach(port, &a.about.own, cookie, &other) != CLAN_OK);
    CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
    GIVES(CLAN_REFUSED, "is void", clan_attach(port, &a.about.own, cookie, &other));
    MUST(clan_allocate(port, 1, &memory, &region));
    MUST(clan_close(port));
}

static void *wait_for_ever(void *queue)
{
    clan_event_t event;
    /* Or none any more, if this thread was that late. */
    GIVES(CLAN_INVALID, "queue", clan_wait(queue, CLAN_INFINITE, &event));
    return NULL;
}

/* A child has none of it, and a port of its own if it likes. */
static void in_a_child(void)
{
    clan_port_t port;
    clan_attributes_t about;
    clan_queue_t queue;
    clan_region_t region;
    clan_cookie_t right;
    clan_dma_t other_dma;
    clan_event_t event;
    clan_peer_t peer = b.about.own;
    uint64_t length;
    size_t count = 1;
    int is_mapped;
    void *memory;
    char name[32];
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        GIVES(CLAN_FORKED, "its parent's", clan_query(a.port, &about));
        GIVES(CLAN_FORKED, "its parent's", clan_find(a.port, "b", 0, &peer));
        GIVES(CLAN_FORKED, "its parent's", clan_name(a.port, &peer, name, sizeof name));
        GIVES(CLAN_FORKED, "its parent's", clan_discover(a.port, &peer, &count));
        GIVES(CLAN_FORKED, "its parent's", clan_send_message(a.port, &peer, "x", 1));
        GIVES(CLAN_FORKED, "its parent's", clan_allocate(a.port, BYTES, &memory, &region));
        GIVES(CLAN_FORKED, "its parent's", clan_register(a.port, name, 1, &region));
        GIVES(CLAN_FORKED, "its parent's", clan_deregister(a.region));
        GIVES(CLAN_FORKED, "its parent's", clan_open_region(a.region, &peer, CLAN_READ, &right));
        GIVES(CLAN_FORKED, "its parent's", clan_revoke(a.port, cookie));
        GIVES(CLAN_FORKED, "its parent's", clan_attach(b.port, &a.about.own, cookie, &remote));
        GIVES(CLAN_FORKED, "its parent's", clan_detach(remote));
        GIVES(CLAN_FORKED, "its parent's", clan_query_remote(remote, &length, &is_mapped));
        GIVES(CLAN_FORKED, "its parent's", clan_store(remote, 0, WORDS, 1));
        GIVES(CLAN_FORKED, "its parent's", clan_write(remote, 0, WORDS, 8));
        GIVES(CLAN_FORKED, "its parent's", clan_read(remote, 0, name, 8, 0));
        GIVES(CLAN_FORKED, "its parent's", clan_create_queue(a.port, &queue));
        GIVES(CLAN_FORKED, "its parent's", clan_destroy_queue(a.queue));
        GIVES(CLAN_FORKED, "its parent's", clan_set_message_queue(a.queue));
        GIVES(CLAN_FORKED, "its parent's", clan_poll(a.queue, &event));
        GIVES(CLAN_FORKED, "its parent's", clan_wait(a.queue, CLAN_INFINITE, &event));
        GIVES(CLAN_FORKED, "its parent's",
              clan_set_tripwire(a.region, 0, CLAN_READ, 1, a.queue, &tripwire));
        GIVES(CLAN_FORKED, "its parent's", clan_clear_tripwire(tripwire));
        GIVES(CLAN_FORKED, "its parent's", clan_create_dma(a.queue, &other_dma));
        GIVES(CLAN_FORKED, "its parent's", clan_destroy_dma(dma));
        GIVES(CLAN_FORKED, "its parent's", clan_dma_write(dma, remote, 0, WORDS, 8, 0, 0));
        GIVES(CLAN_FORKED, "its parent's", clan_close(a.port));
        GIVES(CLAN_DEVICE, "there is a node 'a' already", clan_open("shm:?node=a", &port));
        MUST(clan_open("shm:?node=child", &port));
        MUST(clan_query(port, &about));
        CHECK(strcmp(about.name, "child") == 0);
        MUST(clan_find(port, "a", 0, &peer));
        MUST(clan_send_message(port, &peer, "from the child", 15));
        /* Its parent waits for its end. */
        exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    MUST(clan_wait(a.queue, 10000, &event));
    CHECK(event.kind == CLAN_EVENT_MESSAGE && strcmp((char *)event.message, "from the child") == 0);
    CHECK(strcmp((char *)event.peer.host, "child") == 0 && event.peer.domain == 0);
    MUST(clan_wait(a.queue, 10000, &event));
    CHECK(event.kind == CLAN_EVENT_NODE_LOST && event.result == CLAN_LOST);
    CHECK(strcmp((char *)event.peer.host, "child") == 0);
    /* The parent has lost nothing. */
    MUST(clan_store(remote, 8, WORDS, 1));
    CHECK(a.memory[1] == 1);
}

static void *poll_all_the_time(void *queue)
{
    clan_event_t event;
    while (clan_wait(queue, CLAN_INFINITE, &event) != CLAN_INVALID)
        ;
    return NULL;
}

static void closed(void)
{
    clan_port_t second;
    clan_attributes_t about;
    clan_event_t event;
    pthread_t waiter;
    /* Another domain of the same node, which lives longer. */
    MUST(clan_open("shm:?node=a", &second));
    MUST(clan_query(second, &about));
    CHECK(about.own.domain == 1 && strcmp(about.name, "a") == 0);
    pthread_create(&waiter, NULL, wait_for_ever, a.queue);
    MUST(clan_close(a.port));
    pthread_join(waiter, NULL);
    GIVES(CLAN_INVALID, "no such handle", clan_close(a.port));
    GIVES(CLAN_INVALID, "no such handle", clan_query(a.port, &about));
    GIVES(CLAN_INVALID, "no such handle", clan_poll(a.queue, &event));
    GIVES(CLAN_INVALID, "no such handle", clan_deregister(a.region));
    GIVES(CLAN_INVALID, "no such handle", clan_clear_tripwire(tripwire));
    GIVES(CLAN_REFUSED, "was revoked", clan_store(remote, 0, WORDS, 1));
    MUST(clan_close(second));
    /* The node ends behind the call. */
    while (clan_attach(b.port, &a.about.own, cookie, &remote) == CLAN_REFUSED)
        ;
    GIVES(CLAN_NOT_REACHABLE, "there is no node 'a'",
          clan_attach(b.port, &a.about.own, cookie, &remote));
    MUST(clan_close(b.port));
    GIVES(CLAN_INVALID, "no such handle", clan_store(remote, 0, WORDS, 1));
    GIVES(CLAN_INVALID, "no such handle", clan_destroy_dma(dma));
    /* The names are free again. */
    MUST(clan_open("shm:?node=a", &second));
    MUST(clan_close(second));
}

int main(void)
{
    pthread_t waiter, reader;
    clan_queue_t queue;
    layout();
    names();
    open_node(&a, "shm:?node=a");
    open_node(&b, "shm:?node=b");
    GIVES(CLAN_DEVICE, "", clan_open("shm:?node=seventeen-letters", &b.port));
    MUST(clan_open_region(a.region, &b.about.own, CLAN_READ | CLAN_WRITE, &cookie));
    MUST(clan_attach(b.port, &a.about.own, cookie, &remote));
    MUST(clan_create_dma(b.queue, &dma));
    MUST(clan_set_tripwire(a.region, 2048, CLAN_WRITE, 1, a.queue, &tripwire));
    handles();
    null_pointers();
    ranges();
    dma_requests();
    destroyed();
    own_memory();
    limits();
    MUST(clan_create_queue(a.port, &queue));
    pthread_create(&waiter, NULL, wait_for_ever, queue);
    pthread_create(&reader, NULL, poll_all_the_time, b.queue);
    struct timespec nap = {0, 20000000};
    nanosleep(&nap, NULL);
    MUST(clan_destroy_queue(queue));
    pthread_join(waiter, NULL);
    MUST(clan_set_message_queue(a.queue));
    in_a_child();
    closed();
    pthread_join(reader, NULL);
    printf("done\n");
    return 0;
}
