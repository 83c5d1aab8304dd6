/*
 * Rows with each end in a process of its own.
 *
 * The rows are written as one thread that drives both ends. Where the suite runs with two
 * processes, node 1 belongs to the other process: it alone opens that NIC, registers memory with
 * it, posts and polls. Calls that name a handle of node 1 are carried to it and back over a
 * socket; the linker puts the functions of wrap.c in the place of those of VIPL for that (--wrap).
 * Handles of the other process carry a mark, so that none is taken for one of this process.
 * Handlers are called here, on a thread that stands for the library's.
 *
 * Memory of node 1 is mapped shared before the processes part, at one address in both: so a row
 * reads descriptors and data where they are, and nothing of them is carried.
 */
#ifndef CARRY_H
#define CARRY_H

#include "frame.h"

/* Functions that can be carried: those that take a handle of a NIC, but for management and names,
 * which tell of the own node only. */
typedef enum {
    OPEN_NIC,
    CLOSE_NIC,
    QUERY_NIC,
    ERROR_CALLBACK,
    CREATE_PTAG,
    DESTROY_PTAG,
    REGISTER_MEM,
    DEREGISTER_MEM,
    QUERY_MEM,
    SET_MEM_ATTRIBUTES,
    CREATE_VI,
    DESTROY_VI,
    QUERY_VI,
    SET_VI_ATTRIBUTES,
    SET_VI_EXTENSIONS,
    QUERY_VI_EXTENSIONS,
    POST_SEND,
    SEND_DONE,
    SEND_WAIT,
    SEND_NOTIFY,
    POST_RECV,
    RECV_DONE,
    RECV_WAIT,
    RECV_NOTIFY,
    CONNECT_WAIT,
    CONNECT_ACCEPT,
    CONNECT_REJECT,
    CONNECT_REQUEST,
    DISCONNECT,
    PEER_REQUEST,
    PEER_DONE,
    PEER_WAIT,
    CREATE_CQ,
    DESTROY_CQ,
    RESIZE_CQ,
    CQ_DONE,
    CQ_WAIT,
    CQ_NOTIFY
} function_t;

typedef union {
    VIP_ERROR_HANDLER error;
    VIP_VI_CALLBACK vi;
    VIP_CQ_CALLBACK cq;
} handler_t;

/* A handler and what it is to be called with. */
typedef struct {
    handler_t handler;
    VIP_PVOID context;
} notice_t;

/* A call and its answer. What a function has no use for is 0. */
typedef struct {
    function_t function;
    VIP_RETURN code;
    /* Handles that are given: the first says whose the call is. */
    VIP_PVOID handle, second, third;
    /* The handle that is got. */
    VIP_PVOID made;
    /* Pointers to results that are not NULL, by their order: bits. */
    unsigned wanted;
    /* Memory, and a descriptor, at the same address in both processes. */
    VIP_PVOID address;
    VIP_DESCRIPTOR *descriptor;
    VIP_ULONG number;
    VIP_MEM_HANDLE memory;
    notice_t notice;
    VIP_NIC_ATTRIBUTES nic;
    VIP_UINT8 host[32];
    VIP_VI_ATTRIBUTES vi;
    VIP_VI_EXTENSIONS extensions;
    VIP_MEM_ATTRIBUTES mem;
    VIP_VI_STATE state;
    VIP_BOOLEAN flags[2];
    address_t local, remote;
    char name[512];
} call_t;

/* A call of a handler, on its way to the row. */
typedef struct {
    enum { NOTICE_ERROR, NOTICE_VI, NOTICE_CQ } kind;
    notice_t notice;
    VIP_NIC_HANDLE nic;
    VIP_VI_HANDLE vi;
    VIP_DESCRIPTOR *descriptor;
    VIP_BOOLEAN is_recv;
    VIP_ERROR_DESCRIPTOR error;
} event_t;

/* Calls of a row that may be under way at once. */
#define CHANNELS 16

/* Serves calls on the sockets and sends events, until the row is over. */
void other_run(const int *channels, int events) __attribute__((noreturn));

/* Whether there is another process. */
int has_other(void);
/* Whether a handle is of the other process. */
int is_far(VIP_PVOID handle);
/* A handle as it is in the other process, and back. One of this process is none over there. */
VIP_PVOID across(VIP_PVOID handle);
/* Has the other process do a call; gives its code. */
VIP_RETURN carry(call_t *call);
/* Whether a NIC is to be opened by the other process. */
int opens_far(const VIP_CHAR *name);
/* Whether memory is seen by both processes. */
int is_common(VIP_PVOID memory);

/* What order.c records: NICs, receives that were posted, and sends that are about to be. */
void order_opened(VIP_NIC_HANDLE nic, const VIP_CHAR *name);
void order_closed(VIP_NIC_HANDLE nic);
void order_received(VIP_VI_HANDLE vi);
void order_sends(VIP_VI_HANDLE vi);

/* Copies an address with what follows its structure; no more than there is room for. */
void copy_address(VIP_NET_ADDRESS *to, const VIP_NET_ADDRESS *from);

#endif
