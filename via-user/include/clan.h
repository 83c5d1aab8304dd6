/*
 * clan.h: the network model of CLAN: non-coherent memory that is shared between nodes, with tripwires.
 *
 * Link with -lvipl. docs/clan.md explains the model; here is what each function does.
 *
 * Every function but the last two returns CLAN_OK or the reason why it did nothing (clan_result_t);
 * clan_error_text gives the reason in words. A result is written only on CLAN_OK. Time-outs
 * are in milliseconds.
 *
 * Any thread may call any function. Two threads that access a region of another node at the same time
 * attach it twice: calls with one clan_remote_t wait for each other.
 *
 * In a child after fork, every handle of the parent is answered with CLAN_FORKED. The child may open a
 * port of its own.
 *
 * It compiles as C89 with GNU extensions, C99, C11 and C++.
 */
#ifndef CLAN_H
#define CLAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Results */

typedef enum {
    CLAN_OK = 0,
    CLAN_INVALID = 1,       /* an argument: NULL, a handle that is none (any more), out of range */
    CLAN_REFUSED = 2,       /* the cookie is void, or does not allow the access; outside the region */
    CLAN_LOST = 3,          /* the node, or the memory behind the region, exists no more */
    CLAN_NOT_REACHABLE = 4, /* there is no such node, or it does not answer within 2 seconds */
    CLAN_TIMEOUT = 5,       /* the time is over */
    CLAN_NO_EVENT = 6,      /* the queue is empty */
    CLAN_EXHAUSTED = 7,     /* all objects of a kind are in use, or there is no memory */
    CLAN_FORKED = 8,        /* the handle is that of the parent of this process */
    CLAN_DEVICE = 9         /* the network, or the system below it, failed */
} clan_result_t;

/* A time-out without end. */
#define CLAN_INFINITE 0xFFFFFFFFu

/* Handles. None is ever NULL, and none is used again: one that is stale, of another kind or made up is
 * answered with CLAN_INVALID. They are never dereferenced. */

typedef struct clan_port *clan_port_t;         /* a domain of a node */
typedef struct clan_region *clan_region_t;     /* own memory that others may be let into */
typedef struct clan_remote *clan_remote_t;     /* a region of another domain */
typedef struct clan_queue *clan_queue_t;       /* an event queue */
typedef struct clan_dma *clan_dma_t;           /* a DMA queue */
typedef struct clan_tripwire *clan_tripwire_t; /* a tripwire */

/* The right of one other domain to access a region, as programs send it to each other. */
#ifdef __GNUC__
__extension__ typedef uint64_t clan_cookie_t;
#else
typedef uint64_t clan_cookie_t;
#endif

/* Accesses. CLAN_ONCE is for tripwires alone. */
#define CLAN_READ 1u
#define CLAN_WRITE 2u
#define CLAN_ONCE 4u

/* A domain of a node. Programs get it from clan_find, clan_query or an event, and may send it to each
 * other. Domains of a node are numbered from 0. */
typedef struct {
    uint16_t domain;
    uint16_t host_length; /* bytes of host that count */
    uint8_t host[32];     /* address of the node; the bytes that do not count are 0 */
} clan_peer_t;

/* Ports, nodes */

typedef struct {
    char name[32];      /* of the own node */
    clan_peer_t own;    /* this domain, as others name it */
    uint32_t regions;   /* limit for the node */
    uint32_t tripwires; /* limit for the node */
    uint32_t queues;    /* limit for the node */
    int maps_all;       /* 1: stores to memory of clan_register cost no more than to that of clan_allocate */
} clan_attributes_t;

/*
 * Opens a domain of a node: "shm:?node=NAME", or "shm:" for the first free one of node0, node1 and so
 * on. An empty name stands for the environment's VIADUCT_DEVICE, else for "shm:". The first open of a
 * name makes this process that node, in domain 0; the next ones get domains 1, 2, ... of it.
 * CLAN_INVALID: no such name. CLAN_DEVICE: the node exists already; the system lacks something.
 */
int clan_open(const char *device, clan_port_t *port);

/* Closes a domain, with everything that belongs to it: memory of clan_allocate is unmapped, waiting
 * threads return with CLAN_INVALID. The node ends with its last domain. It waits up to 2 seconds for
 * peers that are stopped; to know that none has access any more, deregister the regions first. */
int clan_close(clan_port_t port);

/* Name, address and limits. */
int clan_query(clan_port_t port, clan_attributes_t *attributes);

/* A domain of the node with this name. CLAN_NOT_REACHABLE: there is none now. */
int clan_find(clan_port_t port, const char *name, uint16_t domain, clan_peer_t *peer);

/* The name of a node, with its terminator; 32 bytes are enough. CLAN_INVALID: more than `room`. */
int clan_name(clan_port_t port, const clan_peer_t *peer, char *name, size_t room);

/* The nodes that answer now, without the own one, each with domain 0. `count` is how many `peers` has
 * room for, and then how many there are, which may be more. */
int clan_discover(clan_port_t port, clan_peer_t *peers, size_t *count);

/*
 * Sends 1 to 48 bytes to a domain; zeros follow up to 48. Messages of one domain to another arrive in
 * order, as events. They are lost if that domain takes none (clan_set_message_queue) or has 4096 that
 * it did not take, so repeat a request until it is answered. For setting up, not for data.
 * CLAN_NOT_REACHABLE: no such node.
 */
int clan_send_message(clan_port_t port, const clan_peer_t *to, const void *message, size_t length);

/* Own regions, and cookies */

/*
 * Allocates `bytes` of zeroed memory, from a page on, and makes it a region. Others reach it by
 * processor stores. It is freed with the region. CLAN_EXHAUSTED: no memory, no descriptor, no region.
 */
int clan_allocate(clan_port_t port, size_t bytes, void **address, clan_region_t *region);

/*
 * Makes memory of the program a region: any bytes that can be read and written. They must stay until
 * clan_deregister has succeeded. Whoever accesses a page that is not mapped gets CLAN_LOST.
 */
int clan_register(clan_port_t port, void *address, size_t bytes, clan_region_t *region);

/*
 * Revokes all cookies of a region, clears its tripwires and ends it. After CLAN_OK nobody reads or writes
 * the memory any more. CLAN_TIMEOUT: a node does not confirm this, because its process is stopped; the
 * text names it. The cookies are void then, but the region stays, and this may be called again.
 */
int clan_deregister(clan_region_t region);

/* Opens a region to one other domain, for CLAN_READ, CLAN_WRITE or both. The cookie is of no use to
 * anybody else. */
int clan_open_region(clan_region_t region, const clan_peer_t *to, unsigned rights,
                     clan_cookie_t *cookie);

/* Revokes a cookie of this domain. After CLAN_OK no access by it is under way, and every later one is
 * refused. CLAN_TIMEOUT: as for clan_deregister. A cookie that is void already is CLAN_OK. */
int clan_revoke(clan_port_t port, clan_cookie_t cookie);

/* Regions of others */

/*
 * Makes a region accessible for which `owner` gave this domain a cookie.
 * CLAN_REFUSED: the cookie is void, or another domain's. CLAN_NOT_REACHABLE: no such node.
 */
int clan_attach(clan_port_t port, const clan_peer_t *owner, clan_cookie_t cookie,
                clan_remote_t *remote);

/* Ends the access; waits for calls that use it. */
int clan_detach(clan_remote_t remote);

/* Bytes of the region, and whether stores to it are processor stores (1), or a system call each (0). */
int clan_query_remote(clan_remote_t remote, uint64_t *length, int *is_mapped);

/*
 * Stores 1 to 8 double words, from `offset` on, a multiple of 8. In memory of clan_allocate each is
 * written as a whole, and they become visible in the order of their addresses.
 * The accesses have these errors in common: CLAN_REFUSED, CLAN_LOST.
 */
int clan_store(clan_remote_t remote, uint64_t offset, const uint64_t *words, size_t count);

/* Copies `bytes`, 1 or more, into the region, at any offset. The source may be used again at once. The
 * bytes become visible in any order, but before everything that is written later. */
int clan_write(clan_remote_t remote, uint64_t offset, const void *source, size_t bytes);

/* Copies `bytes`, 1 or more, out of the region. CLAN_LOST: also if the time is over. */
int clan_read(clan_remote_t remote, uint64_t offset, void *target, size_t bytes,
              uint32_t timeout_ms);

/* Events */

#define CLAN_EVENT_TRIPWIRE 1
#define CLAN_EVENT_DMA 2
#define CLAN_EVENT_MESSAGE 3
#define CLAN_EVENT_NODE_LOST 4

typedef struct {
    int kind;            /* CLAN_EVENT_... */
    int result;          /* DMA: CLAN_OK, CLAN_REFUSED or CLAN_LOST; node lost: CLAN_LOST */
    uint64_t tag;        /* tripwire: of clan_set_tripwire; DMA: of clan_dma_write */
    clan_peer_t peer;    /* message: who sent it; node lost: the node, with domain 0 */
    uint8_t message[48]; /* message: its bytes, and zeros */
} clan_event_t;

int clan_create_queue(clan_port_t port, clan_queue_t *queue);

/* Destroys an event queue and the tripwires that lead to it. Who waits for it gets CLAN_INVALID. */
int clan_destroy_queue(clan_queue_t queue);

/* Has messages to this domain, and lost nodes, go to this queue from now on. Before the first call both
 * go nowhere. */
int clan_set_message_queue(clan_queue_t queue);

/* Takes the next event. CLAN_NO_EVENT: there is none; the text stays as it is. */
int clan_poll(clan_queue_t queue, clan_event_t *event);

/* Takes the next event; waits for it, first polling and then asleep. CLAN_TIMEOUT: none in time. */
int clan_wait(clan_queue_t queue, uint32_t timeout_ms, clan_event_t *event);

/* Tripwires */

/*
 * Has an event with `tag` report that others accessed the double word at `offset`, a multiple of 8, of a
 * region. `on` is CLAN_READ, CLAN_WRITE or both; with CLAN_ONCE only the first access counts. Accesses
 * before this returns may go unnoticed, so look at the word once more; none behind it does. Several
 * accesses before the event is taken are one event. Own accesses that do not go through a clan_remote_t
 * never fire.
 */
int clan_set_tripwire(clan_region_t region, uint64_t offset, unsigned on, uint64_t tag,
                      clan_queue_t queue, clan_tripwire_t *tripwire);

/* Clears a tripwire, also one that has fired once. Its events that were not taken are dropped. */
int clan_clear_tripwire(clan_tripwire_t tripwire);

/* DMA */

/* Creates a DMA queue whose events go to `queue`. */
int clan_create_dma(clan_queue_t queue, clan_dma_t *dma);

/* Destroys a DMA queue. Requests that were submitted are carried out. */
int clan_destroy_dma(clan_dma_t dma);

/*
 * Submits a request to copy `bytes`, 1 or more, into a region of another domain. Requests of a queue are
 * carried out in order. If `notify` is not 0, an event with `tag` reports that this one is done, and all
 * earlier ones; if it is 0, an event with tag 0 reports a failure only. The source must not change, and
 * the region stay attached, until then. CLAN_EXHAUSTED: take events first.
 */
int clan_dma_write(clan_dma_t dma, clan_remote_t remote, uint64_t offset, const void *source,
                   size_t bytes, int notify, uint64_t tag);

/* What went wrong */

/* The name of a result, such as "CLAN_REFUSED". */
const char *clan_code_name(int result);

/* What was wrong in this thread's last call that failed, with the name of the function, the value and
 * the node; "" if none failed. The text stays until the thread's next failure. */
const char *clan_error_text(void);

#ifdef __cplusplus
}
#endif

#endif
