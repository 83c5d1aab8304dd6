/*
 * A distributed message queue (CLAN paper, figure 4): a ring of slots in the receiver's memory, into
 * which the sender stores. Both ends are in this file. The layout is that of
 * host-driver/port/src/clan/message_queue.rs, so that programs in C and in Rust understand each other.
 *
 *   sender                                receiver's region
 *   written  --- store: body, number -->  slots: 7 double words of body, 1 of number
 *            --- store: written ------->  write pointer, for a tripwire
 *   sender's region
 *   read     <-- store: read -----------  read, now and then
 */
#ifndef EXAMPLE_MESSAGEQUEUE_H
#define EXAMPLE_MESSAGEQUEUE_H

#include <clan.h>

#define QUEUE_SLOTS 8u
#define QUEUE_BODY 7u
/* Offsets: of slots and write pointer in the receiver's region, of the read pointer in the sender's. */
enum { QUEUE_WRITTEN = 64 * QUEUE_SLOTS, QUEUE_READ = 0 };

/* What the other side stores is read with acquire: what it stored before is visible then. */
static inline uint64_t load(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

typedef struct {
    clan_remote_t to;     /* the receiver's region */
    const uint64_t *read; /* own memory, which the receiver stores into */
    uint64_t written;     /* messages sent */
} sender_t;

typedef struct {
    clan_remote_t to;      /* the sender's region */
    const uint64_t *slots; /* own memory, which the sender stores into */
    uint64_t read;         /* messages taken */
    uint64_t returned;     /* what the sender knows of that */
} receiver_t;

static inline int queue_is_full(const sender_t *sender)
{
    uint64_t used = sender->written - load(sender->read);
    /* More than that cannot be: the receiver is broken, and not believed. */
    return used >= QUEUE_SLOTS;
}

/* Sends a message. The queue is not full. The number comes last, so a slot that has it is whole. */
static inline int queue_send(sender_t *sender, const uint64_t body[QUEUE_BODY])
{
    uint64_t slot[QUEUE_BODY + 1], number = sender->written + 1;
    for (unsigned i = 0; i < QUEUE_BODY; i++)
        slot[i] = body[i];
    slot[QUEUE_BODY] = number;
    int code = clan_store(sender->to, 64 * (sender->written % QUEUE_SLOTS), slot, QUEUE_BODY + 1);
    if (code == CLAN_OK)
        code = clan_store(sender->to, QUEUE_WRITTEN, &number, 1);
    if (code == CLAN_OK)
        sender->written = number;
    return code;
}

/* Takes a message, if there is one. */
static inline int queue_take(receiver_t *receiver, uint64_t body[QUEUE_BODY])
{
    const uint64_t *slot = receiver->slots + 8 * (receiver->read % QUEUE_SLOTS);
    if (load(slot + QUEUE_BODY) != receiver->read + 1)
        return 0;
    for (unsigned i = 0; i < QUEUE_BODY; i++)
        body[i] = load(slot + i);
    receiver->read++;
    return 1;
}

/* Reports to the sender which slots are free, if that is worth a store. */
static inline int queue_return(receiver_t *receiver)
{
    if (receiver->read - receiver->returned < QUEUE_SLOTS / 4)
        return CLAN_OK;
    receiver->returned = receiver->read;
    return clan_store(receiver->to, QUEUE_READ, &receiver->returned, 1);
}

#endif
