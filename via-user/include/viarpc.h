/*
 * Remote calls over VIA, for programs in C (docs/rpc.md): requests and answers of any bytes, between a
 * server at a named endpoint and its clients. Link with -lviarpc.
 *
 *     viarpc_client *client;
 *     if (viarpc_connect("node0", "calculator", 1000000, &client) != VIARPC_OK)
 *         fprintf(stderr, "%s\n", viarpc_error());
 *     memcpy(viarpc_request(client, 8, NULL), "question", 8);
 *     code = viarpc_call(client, 8, 1000000, &answer, &length);
 *
 * The device is the default one (VIADUCT_DEVICE, VIADUCT_SPIN_US: docs/c-programs.md). A handle is used by
 * one thread at a time; different handles by any number of threads. In a child after fork its parent's
 * handles are VIARPC_INVALID; it makes its own. Time-outs are in microseconds; a negative one has no end.
 */
#ifndef VIARPC_H
#define VIARPC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct viarpc_client viarpc_client;
typedef struct viarpc_server viarpc_server;

enum viarpc_code {
    VIARPC_OK = 0,
    VIARPC_INVALID = 1,      /* an argument that cannot be, or a handle of the parent process */
    VIARPC_NO_DEVICE = 2,    /* the default device cannot be opened */
    VIARPC_NO_HOST = 3,      /* no such host */
    VIARPC_REFUSED = 4,      /* no server waits at the endpoint */
    VIARPC_REJECTED = 5,     /* the server has as many clients as it may have */
    VIARPC_DISAGREEMENT = 6, /* the other side has another revision, or another protocol */
    VIARPC_TIMED_OUT = 7,    /* no answer, or no request, in time; the handle can still be used */
    VIARPC_TOO_LONG = 8,     /* longer than both sides take (16 MiB); nothing was sent */
    VIARPC_UNANSWERED = 9,   /* the server has dropped the request */
    VIARPC_LOST = 10,        /* the other side has ended the connection, or is dead */
    VIARPC_VIOLATION = 11,   /* the other side breaks the protocol */
    VIARPC_RESOURCE = 12,    /* the NIC or the system has no more memory, VIs or threads */
    VIARPC_UNREACHABLE = 13  /* the host is not there */
};

/* What this thread's last failure was, as text. Good until its next failure. */
const char *viarpc_error(void);

/*
 * Connects to an endpoint of a host: a node's name, or one of the hosts file. `localhost` is where a
 * program of this user on this machine serves the endpoint. A server negotiates in viarpc_next.
 */
int viarpc_connect(const char *host, const char *endpoint, int64_t timeout_us, viarpc_client **client);

/*
 * A buffer for a request of `length` bytes, in registered memory, from which it is sent: marshal in place.
 * `room`, unless it is NULL, is set to the bytes that it really has. NULL if there is no memory or the
 * connection is lost. What was marshalled before and not sent is dropped.
 */
void *viarpc_request(viarpc_client *client, size_t length, size_t *room);

/*
 * Sends the first `length` bytes of the buffer, and waits for the answer, which is good until the next
 * call. With a time-out of 0 the request is sent, and VIARPC_TIMED_OUT returned at once.
 */
int viarpc_call(viarpc_client *client, size_t length, int64_t timeout_us, const void **answer,
                size_t *answer_length);

/* Ends the connection. */
void viarpc_disconnect(viarpc_client *client);

/*
 * A server at an endpoint of this node. Where this process has one already, this is another handle of it:
 * one for each thread that serves.
 */
int viarpc_bind(const char *endpoint, viarpc_server **server);

/*
 * Waits for a request of any client, which is good until the next one. A request that has not been
 * answered by then is dropped: its call fails with VIARPC_UNANSWERED.
 */
int viarpc_next(viarpc_server *server, int64_t timeout_us, const void **request, size_t *length);

/* A buffer for the answer, as viarpc_request. */
void *viarpc_answer(viarpc_server *server, size_t length, size_t *room);

/*
 * Answers the request with the first `length` bytes of the buffer; never waits for the client. After
 * VIARPC_TOO_LONG a shorter answer can be made.
 */
int viarpc_reply(viarpc_server *server, size_t length);

/* Ends the handle. With its last handle the server ends, and the connections of its clients. */
void viarpc_unbind(viarpc_server *server);

#ifdef __cplusplus
}
#endif

#endif
