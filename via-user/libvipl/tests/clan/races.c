/*
 * Threads that create, use and destroy the same objects, by handles that they take from each other: every
 * call ends, with success or with an error, whatever the others have destroyed meanwhile.
 *
 *   races [SEED]
 */
#include "check.h"

#define THREADS 4
#define CALLS 30000
#define SLOTS 6

/* Handles, and one of each kind that stays. */
static void *ports[SLOTS], *regions[SLOTS], *remotes[SLOTS], *queues[SLOTS], *dmas[SLOTS],
    *tripwires[SLOTS];
static uint64_t cookies[SLOTS];
static clan_peer_t peers[SLOTS];
static unsigned long good;
static size_t seed = 1;

static uint32_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void *get(void **slots, uint64_t *state)
{
    return __atomic_load_n(&slots[next(state) % SLOTS], __ATOMIC_RELAXED);
}

static void put(void **slots, void *handle, uint64_t *state)
{
    __atomic_store_n(&slots[next(state) % SLOTS], handle, __ATOMIC_RELAXED);
}

static int call(uint64_t *state)
{
    static const uint64_t words[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    clan_port_t port;
    clan_attributes_t about;
    clan_region_t region;
    clan_remote_t remote;
    clan_queue_t queue;
    clan_dma_t dma;
    clan_tripwire_t tripwire;
    clan_cookie_t cookie;
    clan_event_t event;
    uint64_t target[64], length;
    static char own[4096];
    void *memory;
    int code, is_mapped;
    unsigned slot = next(state) % SLOTS;
    switch (next(state) % 24) {
    case 0:
        /* Rarely, since everything else needs them. */
        if (next(state) % 16 != 0)
            return CLAN_OK;
        code = clan_close(get(ports, state));
        if (clan_open(next(state) % 2 == 0 ? "shm:?node=x" : "shm:?node=y", &port) == CLAN_OK) {
            if (clan_query(port, &about) == CLAN_OK)
                peers[slot] = about.own;
            put(ports, port, state);
        }
        return code;
    case 1:
    case 2:
        code = clan_allocate(get(ports, state), 4096, &memory, &region);
        if (code == CLAN_OK)
            put(regions, region, state);
        return code;
    case 3:
        code = clan_register(get(ports, state), own, sizeof own, &region);
        if (code == CLAN_OK)
            put(regions, region, state);
        return code;
    case 4:
        return clan_deregister(get(regions, state));
    case 5:
    case 6:
        code = clan_open_region(get(regions, state), &peers[slot], 3, &cookie);
        if (code == CLAN_OK)
            cookies[slot] = cookie;
        return code;
    case 7:
        return clan_revoke(get(ports, state), cookies[slot]);
    case 8:
    case 9:
    case 10:
        code = clan_attach(get(ports, state), &peers[next(state) % SLOTS], cookies[slot], &remote);
        if (code == CLAN_OK)
            put(remotes, remote, state);
        return code;
    case 11:
        return clan_detach(get(remotes, state));
    case 12:
        return clan_store(get(remotes, state), 8 * (next(state) % 16), words, 1 + next(state) % 8);
    case 13:
        return clan_write(get(remotes, state), next(state) % 64, words, sizeof words);
    case 14:
        return clan_read(get(remotes, state), next(state) % 64, target, sizeof target, 1);
    case 15:
        return clan_query_remote(get(remotes, state), &length, &is_mapped);
    case 16:
        code = clan_create_queue(get(ports, state), &queue);
        if (code == CLAN_OK)
            put(queues, queue, state);
        return code;
    case 17:
        return clan_destroy_queue(get(queues, state));
    case 18:
        return clan_set_message_queue(get(queues, state));
    case 19:
        return next(state) % 2 == 0 ? clan_poll(get(queues, state), &event)
                                    : clan_wait(get(queues, state), next(state) % 2, &event);
    case 20:
        code = clan_set_tripwire(get(regions, state), 8 * (next(state) % 16), 1 + next(state) % 7,
                                 1, get(queues, state), &tripwire);
        if (code == CLAN_OK)
            put(tripwires, tripwire, state);
        return code;
    case 21:
        return clan_clear_tripwire(get(tripwires, state));
    case 22:
        code = clan_create_dma(get(queues, state), &dma);
        if (code == CLAN_OK)
            put(dmas, dma, state);
        return code;
    default:
        if (next(state) % 8 == 0)
            return clan_destroy_dma(get(dmas, state));
        if (next(state) % 8 == 0)
            return clan_send_message(get(ports, state), &peers[slot], words, 48);
        return clan_dma_write(get(dmas, state), get(remotes, state), next(state) % 64, words, 64,
                              next(state) % 2 == 0, 1);
    }
}

static void *calls(void *own_seed)
{
    uint64_t state = (uint64_t)(size_t)own_seed;
    for (int i = 0; i < CALLS; i++) {
        int code = call(&state);
        if (code < CLAN_OK || code > CLAN_EXHAUSTED) {
            fprintf(stderr, "seed %zu: %s: %s\n", seed, clan_code_name(code), clan_error_text());
            exit(1);
        }
        if (code == CLAN_OK)
            __atomic_fetch_add(&good, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

int main(int count, char **words)
{
    pthread_t threads[THREADS];
    clan_port_t port;
    clan_attributes_t about;
    if (count == 2)
        seed = (size_t)atol(words[1]);
    for (int i = 0; i < SLOTS; i++) {
        MUST(clan_open(i % 2 == 0 ? "shm:?node=x" : "shm:?node=y", &port));
        MUST(clan_query(port, &about));
        ports[i] = port;
        peers[i] = about.own;
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, calls, (void *)(THREADS * seed + i));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (good < THREADS * CALLS / 10) {
        fprintf(stderr, "seed %zu: only %lu calls did something\n", seed, good);
        return 1;
    }
    printf("done\n");
    return 0;
}
