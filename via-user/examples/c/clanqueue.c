/*
 * clanqueue: CLAN's model in one program: map, store, tripwire, event wait, DMA, message, revoke.
 *
 *   clanqueue                  both sides in this process, as two nodes
 *   clanqueue DEVICE           the server, such as shm:?node=server
 *   clanqueue DEVICE NODE      a client of the server on node NODE, such as shm: server
 *
 * The client sends numbers through a distributed message queue into the server's memory, and then a
 * block by DMA. The server adds up, answers in the client's memory, and revokes the right to write.
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "messagequeue.h"

#define NUMBERS 1000u
#define BLOCK_BYTES 65536u
#define WAIT_MS 10000u
/* Offsets: the block behind the queue in the server's region, the answer in the client's. */
enum { BLOCK = 4096, INBOX = BLOCK + BLOCK_BYTES, ANSWER = 64, OUTBOX = 4096 };
/* Tags of events. */
enum { TAG_NONE = 0, TAG_QUEUE = 1, TAG_DMA = 2, TAG_ANSWER = 3 };

/* Messages beside the shared memory, in double words. */
enum { HELLO = 1, WELCOME = 2 };
typedef struct {
    uint64_t kind;
    clan_cookie_t cookie; /* of the sender's region */
} note_t;

/* Ends the program unless a function succeeded. */
#define MUST(call)                                                                                 \
    do {                                                                                           \
        int must_code = (call);                                                                    \
        if (must_code != CLAN_OK) {                                                                \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, clan_code_name(must_code),      \
                    clan_error_text());                                                            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* A port with one event queue, which takes everything, and one region. */
typedef struct {
    clan_port_t port;
    clan_queue_t events;
    clan_region_t region;
    uint64_t *memory;
} side_t;

static void open_side(side_t *side, const char *device, size_t bytes)
{
    void *memory;
    MUST(clan_open(device, &side->port));
    MUST(clan_create_queue(side->port, &side->events));
    MUST(clan_set_message_queue(side->events));
    MUST(clan_allocate(side->port, bytes, &memory, &side->region));
    side->memory = memory;
}

static void send_note(side_t *side, const clan_peer_t *to, uint64_t kind, clan_cookie_t cookie)
{
    note_t words = {kind, cookie};
    MUST(clan_send_message(side->port, to, &words, sizeof words));
}

/* Waits for an event of a kind, with a tag. The loss of the other node ends the program, unless it is
 * waited for. */
static void expect(side_t *side, int kind, uint64_t tag, clan_event_t *event)
{
    do {
        MUST(clan_wait(side->events, WAIT_MS, event));
        if (event->kind == CLAN_EVENT_NODE_LOST && kind != CLAN_EVENT_NODE_LOST) {
            fprintf(stderr, "node %.*s is lost\n", event->peer.host_length, (char *)event->peer.host);
            exit(1);
        }
    } while (event->kind != kind || event->tag != tag);
}

static void server(const char *device, const char *node)
{
    side_t side;
    clan_event_t event;
    note_t hello;
    clan_cookie_t cookie;
    clan_remote_t theirs;
    clan_tripwire_t tripwire;
    uint64_t body[QUEUE_BODY], sum = 0, block = 0;
    unsigned count = 0;
    (void)node;
    open_side(&side, device, INBOX);
    /* The client asks, with the right to answer in its memory. */
    expect(&side, CLAN_EVENT_MESSAGE, TAG_NONE, &event);
    clan_peer_t client = event.peer;
    memcpy(&hello, event.message, sizeof hello);
    MUST(clan_attach(side.port, &client, hello.cookie, &theirs));
    /* Set before the client may write: every write fires it. */
    MUST(clan_set_tripwire(side.region, QUEUE_WRITTEN, CLAN_WRITE, TAG_QUEUE, side.events, &tripwire));
    MUST(clan_open_region(side.region, &client, CLAN_READ | CLAN_WRITE, &cookie));
    send_note(&side, &client, WELCOME, cookie);
    receiver_t receiver = {theirs, side.memory, 0, 0};
    while (count <= NUMBERS) {
        if (!queue_take(&receiver, body)) {
            /* An event may be older than the message; so look, wait, and look again. */
            expect(&side, CLAN_EVENT_TRIPWIRE, TAG_QUEUE, &event);
            continue;
        }
        if (count++ < NUMBERS)
            sum += body[0];
        MUST(queue_return(&receiver));
    }
    /* The last message came behind the block. */
    for (unsigned i = 0; i < BLOCK_BYTES / 8; i++)
        block += side.memory[BLOCK / 8 + i];
    printf("the server received %u numbers, sum %llu, and a block, sum %llu\n", NUMBERS,
           (unsigned long long)sum, (unsigned long long)block);
    MUST(clan_revoke(side.port, cookie));
    MUST(clan_store(theirs, ANSWER, &sum, 1));
    expect(&side, CLAN_EVENT_NODE_LOST, TAG_NONE, &event);
    MUST(clan_close(side.port));
}

static void client(const char *device, const char *node)
{
    side_t side;
    clan_event_t event;
    note_t welcome;
    clan_peer_t peer;
    clan_cookie_t cookie;
    clan_remote_t theirs;
    clan_dma_t dma;
    clan_tripwire_t tripwire;
    uint64_t *block = calloc(1, BLOCK_BYTES), body[QUEUE_BODY] = {0};
    open_side(&side, device, OUTBOX);
    struct timespec nap = {0, 10000000};
    while (clan_find(side.port, node, 0, &peer) == CLAN_NOT_REACHABLE)
        nanosleep(&nap, NULL);
    /* As the server does: first the tripwires, then the right to write. */
    MUST(clan_set_tripwire(side.region, QUEUE_READ, CLAN_WRITE, TAG_QUEUE, side.events, &tripwire));
    MUST(clan_set_tripwire(side.region, ANSWER, CLAN_WRITE, TAG_ANSWER, side.events, &tripwire));
    MUST(clan_open_region(side.region, &peer, CLAN_WRITE, &cookie));
    /* Asks again until it is answered: a message to who takes none yet is lost. */
    do
        send_note(&side, &peer, HELLO, cookie);
    while (clan_wait(side.events, 200, &event) != CLAN_OK || event.kind != CLAN_EVENT_MESSAGE);
    memcpy(&welcome, event.message, sizeof welcome);
    MUST(clan_attach(side.port, &peer, welcome.cookie, &theirs));
    sender_t sender = {theirs, side.memory + QUEUE_READ / 8, 0};
    for (unsigned i = 1; i <= NUMBERS; i++) {
        while (queue_is_full(&sender))
            expect(&side, CLAN_EVENT_TRIPWIRE, TAG_QUEUE, &event);
        body[0] = i;
        MUST(queue_send(&sender, body));
    }
    /* A block by DMA; the message about it is sent when it has arrived. */
    for (unsigned i = 0; i < BLOCK_BYTES / 8; i++)
        block[i] = i;
    MUST(clan_create_dma(side.events, &dma));
    MUST(clan_dma_write(dma, theirs, BLOCK, block, BLOCK_BYTES, 1, TAG_DMA));
    expect(&side, CLAN_EVENT_DMA, TAG_DMA, &event);
    MUST(event.result);
    while (queue_is_full(&sender))
        expect(&side, CLAN_EVENT_TRIPWIRE, TAG_QUEUE, &event);
    MUST(queue_send(&sender, body));
    expect(&side, CLAN_EVENT_TRIPWIRE, TAG_ANSWER, &event);
    printf("the client reads the answer %llu\n", (unsigned long long)load(side.memory + ANSWER / 8));
    int code = queue_send(&sender, body);
    if (code != CLAN_REFUSED)
        exit(1);
    printf("then it is refused: %s (%s)\n", clan_code_name(code), clan_error_text());
    MUST(clan_close(side.port));
    free(block);
}

typedef struct {
    void (*run)(const char *, const char *);
    char device[32], node[16];
} role_t;

static void *role_main(void *argument)
{
    role_t *role = argument;
    role->run(role->device, role->node);
    return NULL;
}

int main(int count, char **words)
{
    if (count == 2) {
        server(words[1], NULL);
    } else if (count == 3) {
        client(words[1], words[2]);
    } else if (count == 1) {
        role_t roles[2] = {{.run = server}, {.run = client}};
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) {
            snprintf(roles[i].node, sizeof roles[i].node, "server-%u", (unsigned)getpid() % 1000000);
            snprintf(roles[i].device, sizeof roles[i].device, "shm:?node=%s-%u",
                     i == 0 ? "server" : "client", (unsigned)getpid() % 1000000);
            pthread_create(&threads[i], NULL, role_main, &roles[i]);
        }
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
    } else {
        fprintf(stderr, "usage: %s [DEVICE [NODE-OF-SERVER]]\n", words[0]);
        return 2;
    }
    return 0;
}
