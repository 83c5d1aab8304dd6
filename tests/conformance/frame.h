/*
 * The frame of the conformance suite: rows, checks, and what most rows need.
 *
 * A row is a C function with a level, the VIPL function that it is about, and a sentence. Each runs
 * in a process of its own, so a crash or a hang is a failed row and no more.
 */
#ifndef FRAME_H
#define FRAME_H

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <vipl.h>

typedef enum { EARLY, FUNCTIONAL, FULL } level_t;

void row_add(level_t level, const char *name, const char *function, const char *what,
             void (*run)(void));
/* Ends the row as failed. */
void fail(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));
/* URL of the NIC of a node, 0 or 1. */
const char *device_url(int node);

/* Names of the rows of the subset for the RTL (rtl.c), and NULL. */
extern const char *const rtl_rows[];

/* Each end in a process of its own (carry.h): starts that of node 1. */
void carry_start(void);
/* Ends that process, which must be well. Says whether node 1 was opened and used there. */
int carry_finish(void);
/* For rows whose ends tell each other by messages what they have posted: see order.c. */
void order_by_hand(void);
/* MEMORY_BYTES of memory of a node, in whole pages, where that node's process can register it. */
void *memory_take(int node);
void memory_give(void *memory);

#define ROW(level, name, function, what)                                                           \
    static void name(void);                                                                        \
    __attribute__((constructor)) static void name##_row(void)                                      \
    {                                                                                              \
        row_add(level, #name, function, what, name);                                               \
    }                                                                                              \
    static void name(void)

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail(__FILE__, __LINE__, "%s is false", #condition);                                   \
    } while (0)

#define SAME(value, expected)                                                                      \
    do {                                                                                           \
        unsigned long long same_v = (unsigned long long)(value);                                   \
        unsigned long long same_e = (unsigned long long)(expected);                                \
        if (same_v != same_e)                                                                      \
            fail(__FILE__, __LINE__, "%s is %#llx, not %#llx", #value, same_v, same_e);            \
    } while (0)

#define GIVES(call, code)                                                                          \
    do {                                                                                           \
        VIP_RETURN gives_code = (call);                                                            \
        if (gives_code != (code))                                                                  \
            fail(__FILE__, __LINE__, "%s gave %s, not %s", #call,                                  \
                 VipReturnName(gives_code), VipReturnName(code));                                  \
    } while (0)

#define OK(call) GIVES(call, VIP_SUCCESS)

/* Long enough for everything that is to happen, in milliseconds. */
#define LONG 10000

/* A NIC with a tag and registered memory. */
#define MEMORY_BYTES (1u << 20)
typedef struct {
    VIP_NIC_HANDLE nic;
    VIP_NIC_ATTRIBUTES attributes;
    VIP_PROTECTION_HANDLE tag;
    unsigned char *memory;
    VIP_MEM_HANDLE handle;
    int node;
} side_t;

void side_open(side_t *side, int node);
/* Closes the NIC, with whatever is left on it. */
void side_close(side_t *side);

VIP_VI_ATTRIBUTES vi_attributes(const side_t *side, VIP_RELIABILITY_LEVEL level);
VIP_VI_HANDLE vi_create(const side_t *side, VIP_RELIABILITY_LEVEL level, VIP_CQ_HANDLE send,
                        VIP_CQ_HANDLE recv);
VIP_VI_STATE vi_state(VIP_VI_HANDLE vi);
/* Waits until the VI is in this state. */
void vi_await(VIP_VI_HANDLE vi, VIP_VI_STATE state);

/* Descriptor `index` of the memory (64 bytes each, 1,024 of them), empty. */
VIP_DESCRIPTOR *descriptor(const side_t *side, unsigned index);
/* Where data may lie, behind the descriptors. */
#define DATA_OFFSET (1024u * 64u)
/* The descriptor with one segment of data. */
VIP_DESCRIPTOR *one_segment(const side_t *side, unsigned index, unsigned data, unsigned length);
/* The descriptor for an RDMA of one segment. */
VIP_DESCRIPTOR *rdma(const side_t *side, unsigned index, VIP_UINT16 operation, const side_t *other,
                     unsigned remote, unsigned data, unsigned length);
void set_segment(VIP_DESCRIPTOR *d, unsigned place, const void *data, VIP_MEM_HANDLE handle,
                 unsigned length);

/* An address with room for everything. */
typedef union {
    VIP_NET_ADDRESS net;
    unsigned char room[4 + 16 + 256];
} address_t;
void make_address(address_t *address, const side_t *host, const void *discriminator,
                  unsigned length);
void name_address(address_t *address, const side_t *host, const char *service);

/* Asynchronous errors of a NIC, counted by their code. */
typedef struct {
    unsigned counts[16];
    VIP_ERROR_DESCRIPTOR last;
} errors_t;
void errors_catch(const side_t *side, errors_t *errors);
/* Waits for an error of this code. */
void errors_await(errors_t *errors, VIP_ERROR_CODE code);
unsigned errors_count(errors_t *errors, VIP_ERROR_CODE code);

/* Two NICs; VIs of both are connected by vi_connect. */
typedef struct {
    side_t a, b;
    VIP_VI_HANDLE va, vb;
    errors_t ea, eb;
} pair_t;

void pair_open(pair_t *pair);
/* The same with a connected VI on each, which allow RDMA. */
void pair_connect(pair_t *pair, VIP_RELIABILITY_LEVEL level);
void pair_close(pair_t *pair);
/* Connects two idle VIs. */
void vi_connect(const side_t *a, VIP_VI_HANDLE va, const side_t *b, VIP_VI_HANDLE vb);

/* Runs `run` beside the row. */
typedef struct thread thread_t;
thread_t *thread_start(void (*run)(void *), void *argument);
void thread_join(thread_t *thread);
void sleep_ms(unsigned ms);
void sleep_us(unsigned us);

/* A row with a NIC `n`. */
#define ROW_NIC(level, name, function, what)                                                       \
    static void name##_body(side_t *n);                                                            \
    ROW(level, name, function, what)                                                               \
    {                                                                                              \
        side_t row_side;                                                                           \
        side_open(&row_side, 0);                                                                   \
        name##_body(&row_side);                                                                    \
        side_close(&row_side);                                                                     \
    }                                                                                              \
    static void name##_body(side_t *n)

/* A row with two NICs, `p->a` and `p->b`. */
#define ROW_TWO(level, name, function, what)                                                       \
    static void name##_body(pair_t *p);                                                            \
    ROW(level, name, function, what)                                                               \
    {                                                                                              \
        static pair_t row_pair;                                                                    \
        pair_open(&row_pair);                                                                      \
        name##_body(&row_pair);                                                                    \
        pair_close(&row_pair);                                                                     \
    }                                                                                              \
    static void name##_body(pair_t *p)

#define LEVEL_ROW(row_level, name, suffix, reliability, function, what)                            \
    ROW(row_level, name##_##suffix, function, what " (" #suffix ")")                               \
    {                                                                                              \
        static pair_t row_pair;                                                                    \
        pair_connect(&row_pair, reliability);                                                      \
        name##_body(&row_pair, reliability);                                                       \
        pair_close(&row_pair);                                                                     \
    }

/* Three rows, one for each reliability level, with connected VIs `p->va` and `p->vb`. */
#define ROW_LEVELS(row_level, name, function, what)                                                \
    static void name##_body(pair_t *p, VIP_RELIABILITY_LEVEL level);                               \
    LEVEL_ROW(row_level, name, unreliable, VIP_SERVICE_UNRELIABLE, function, what)                 \
    LEVEL_ROW(row_level, name, delivery, VIP_SERVICE_RELIABLE_DELIVERY, function, what)            \
    LEVEL_ROW(row_level, name, reception, VIP_SERVICE_RELIABLE_RECEPTION, function, what)          \
    static void name##_body(pair_t *p, VIP_RELIABILITY_LEVEL level)

/* Two rows, for the reliable levels. */
#define ROW_RELIABLE(row_level, name, function, what)                                              \
    static void name##_body(pair_t *p, VIP_RELIABILITY_LEVEL level);                               \
    LEVEL_ROW(row_level, name, delivery, VIP_SERVICE_RELIABLE_DELIVERY, function, what)            \
    LEVEL_ROW(row_level, name, reception, VIP_SERVICE_RELIABLE_RECEPTION, function, what)          \
    static void name##_body(pair_t *p, VIP_RELIABILITY_LEVEL level)

/* A row with VIs connected for reliable reception. */
#define ROW_CONNECTED(row_level, name, function, what)                                             \
    static void name##_body(pair_t *p);                                                            \
    ROW(row_level, name, function, what)                                                           \
    {                                                                                              \
        static pair_t row_pair;                                                                    \
        pair_connect(&row_pair, VIP_SERVICE_RELIABLE_RECEPTION);                                   \
        name##_body(&row_pair);                                                                    \
        pair_close(&row_pair);                                                                     \
    }                                                                                              \
    static void name##_body(pair_t *p)

#endif
