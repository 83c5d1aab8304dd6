/*
 * VIA as a transport for programs of SunRPC with libtirpc, on libviarpc: tirpc_via.h.
 *
 *     client: clnt_call    XDR, messages of RFC 5531    viarpc_request, viarpc_call
 *     server: svcvia_run   libtirpc's dispatcher        viarpc_next, viarpc_answer, viarpc_reply
 *
 * Messages are those of RFC 5531 without the record marks of TCP: a message of via-rpc is a record. They
 * are marshalled in the registered memory from which they are sent.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tirpc_via.h"
#include "viarpc.h"

/* The net type, and the network of the handles. */
#define NETWORK "via"
/* Bytes for which a buffer is asked first: those of the smallest one of via-rpc. */
#define SMALL 4000
/* Most bytes of a call in front of its arguments: 7 words, credentials and a verifier. */
#define CALL_HEADER (7 * BYTES_PER_XDR_UNIT + 2 * (2 * BYTES_PER_XDR_UNIT + MAX_AUTH_BYTES))
/* How often credentials are refreshed for a call, as libtirpc does. */
#define REFRESHES 2
/* How long a connection may take: what libtirpc gives TCP. */
#define CONNECT_US 25000000
/* How long a server waits before it looks whether it is to end. */
#define LOOK_US 100000

struct via_client {
    viarpc_client *connection;
    /* Programs share a handle between threads, as libtirpc's. */
    pthread_mutex_t lock;
    struct rpc_err error;
    struct timeval wait;
    bool_t is_wait_set;
    bool_t is_lost;
    u_int32_t xid;
    rpcprog_t program;
    rpcvers_t version;
};

struct via_server {
    viarpc_server *server;
    /* The call that is served, from its arguments on. */
    XDR in;
    u_int32_t xid;
    int is_stopped;
    int has_failed;
    /* The other end of the socket whose number the transport has. */
    int other;
    /* What libtirpc made of the socket, to be ended by it. */
    const struct xp_ops *ops;
    const struct xp_ops2 *ops2;
    void *p1;
};

static void endpoint_of(rpcprog_t program, char *text, size_t length) {
    /* Without the version: whether it is served says the server, with those that are. */
    snprintf(text, length, "sunrpc:%lu", (unsigned long)program);
}

static int64_t microseconds(const struct timeval *time) {
    if (time->tv_sec > INT64_MAX / 1000000 - 1) return -1;
    return (int64_t)time->tv_sec * 1000000 + time->tv_usec;
}

const char *clntvia_error(void) {
    return viarpc_error();
}

/* Client */

/* What libtirpc's programs know a code by. */
static const struct {
    enum clnt_stat status;
    int number;
} ERRORS[] = {
    [VIARPC_OK] = {RPC_SUCCESS, 0},
    [VIARPC_INVALID] = {RPC_SYSTEMERROR, EINVAL},
    [VIARPC_NO_DEVICE] = {RPC_SYSTEMERROR, ENODEV},
    [VIARPC_NO_HOST] = {RPC_UNKNOWNHOST, 0},
    [VIARPC_REFUSED] = {RPC_PROGNOTREGISTERED, 0},
    [VIARPC_REJECTED] = {RPC_SYSTEMERROR, EUSERS},
    [VIARPC_DISAGREEMENT] = {RPC_SYSTEMERROR, EPROTONOSUPPORT},
    [VIARPC_TIMED_OUT] = {RPC_TIMEDOUT, 0},
    [VIARPC_TOO_LONG] = {RPC_CANTSEND, EMSGSIZE},
    [VIARPC_UNANSWERED] = {RPC_CANTRECV, ENOMSG},
    [VIARPC_LOST] = {RPC_CANTRECV, ECONNRESET},
    [VIARPC_VIOLATION] = {RPC_CANTRECV, EPROTO},
    [VIARPC_RESOURCE] = {RPC_SYSTEMERROR, ENOBUFS},
    [VIARPC_UNREACHABLE] = {RPC_SYSTEMERROR, EHOSTUNREACH},
};

static struct rpc_err error_of(int code) {
    struct rpc_err error;
    memset(&error, 0, sizeof error);
    error.re_status = ERRORS[code].status;
    error.re_errno = ERRORS[code].number;
    return error;
}

/* Marshals a call in a buffer of that many bytes; its length, 0 if they are too few. */
static size_t marshal(CLIENT *handle, struct rpc_msg *header, rpcproc_t procedure, xdrproc_t encode,
                      void *arguments, void *buffer, size_t room) {
    XDR out;
    u_int32_t number = procedure;
    xdrmem_create(&out, buffer, (u_int)room, XDR_ENCODE);
    if (!xdr_callhdr(&out, header) || !xdr_u_int32_t(&out, &number)) return 0;
    if (!AUTH_MARSHALL(handle->cl_auth, &out)) return 0;
    if (!AUTH_WRAP(handle->cl_auth, &out, encode, arguments)) return 0;
    return XDR_GETPOS(&out);
}

/* Sends a call and waits; the answer's place in `in`. */
static enum clnt_stat exchange(CLIENT *handle, rpcproc_t procedure, xdrproc_t encode, void *arguments,
                               const struct timeval *wait, XDR *in) {
    struct via_client *own = handle->cl_private;
    struct rpc_msg header;
    memset(&header, 0, sizeof header);
    header.rm_xid = ++own->xid;
    header.rm_direction = CALL;
    header.rm_call.cb_rpcvers = RPC_MSG_VERSION;
    header.rm_call.cb_prog = own->program;
    header.rm_call.cb_vers = own->version;
    size_t room = 0, length = 0;
    void *buffer = viarpc_request(own->connection, SMALL, &room);
    if (buffer != NULL)
        length = marshal(handle, &header, procedure, encode, arguments, buffer, room);
    if (buffer != NULL && length == 0) {
        /* Too long for it, or what cannot be marshalled at all, which has no size either. */
        size_t needed = encode == NULL ? 0 : xdr_sizeof(encode, arguments);
        buffer = needed == 0 ? NULL : viarpc_request(own->connection, needed + CALL_HEADER, &room);
        if (needed > 0 && buffer != NULL)
            length = marshal(handle, &header, procedure, encode, arguments, buffer, room);
        if (needed == 0 || (buffer != NULL && length == 0))
            return own->error.re_status = RPC_CANTENCODEARGS;
    }
    if (buffer == NULL) {
        own->error.re_errno = own->is_lost ? EPIPE : ENOBUFS;
        return own->error.re_status = RPC_CANTSEND;
    }
    const void *answer;
    size_t answer_length;
    int code =
        viarpc_call(own->connection, length, microseconds(wait), &answer, &answer_length);
    if (code != VIARPC_OK) {
        own->error = error_of(code);
        /* The one that finds it out has perhaps sent. */
        if (own->is_lost) own->error.re_status = RPC_CANTSEND;
        if (code == VIARPC_LOST || code == VIARPC_VIOLATION) own->is_lost = TRUE;
        return own->error.re_status;
    }
    xdrmem_create(in, (char *)answer, (u_int)answer_length, XDR_DECODE);
    return own->error.re_status = RPC_SUCCESS;
}

/* Reads an answer. TRUE: the call is to be made again, with new credentials. */
static bool_t unmarshal(CLIENT *handle, XDR *in, xdrproc_t decode, void *results, int *refreshes) {
    struct via_client *own = handle->cl_private;
    struct rpc_msg reply;
    memset(&reply, 0, sizeof reply);
    reply.acpted_rply.ar_verf = _null_auth;
    reply.acpted_rply.ar_results.proc = (xdrproc_t)(void (*)(void))xdr_void;
    if (!xdr_replymsg(in, &reply) || reply.rm_xid != own->xid) {
        own->error.re_status = RPC_CANTDECODERES;
        return FALSE;
    }
    _seterr_reply(&reply, &own->error);
    bool_t again = FALSE;
    if (own->error.re_status != RPC_SUCCESS) {
        again = own->error.re_status == RPC_AUTHERROR && (*refreshes)-- > 0 &&
                AUTH_REFRESH(handle->cl_auth, &reply);
    } else if (!AUTH_VALIDATE(handle->cl_auth, &reply.acpted_rply.ar_verf)) {
        own->error.re_status = RPC_AUTHERROR;
        own->error.re_why = AUTH_INVALIDRESP;
    } else if (decode != NULL && !AUTH_UNWRAP(handle->cl_auth, in, decode, results)) {
        own->error.re_status = RPC_CANTDECODERES;
    }
    if (reply.rm_reply.rp_stat == MSG_ACCEPTED && reply.acpted_rply.ar_verf.oa_base != NULL) {
        in->x_op = XDR_FREE;
        xdr_opaque_auth(in, &reply.acpted_rply.ar_verf);
    }
    return again;
}

static enum clnt_stat via_call(CLIENT *handle, rpcproc_t procedure, xdrproc_t encode, void *arguments,
                               xdrproc_t decode, void *results, struct timeval wait) {
    struct via_client *own = handle->cl_private;
    int refreshes = REFRESHES;
    pthread_mutex_lock(&own->lock);
    if (own->is_wait_set) wait = own->wait;
    /* Whoever wants no results now, and later none either, only sends. */
    bool_t is_batched = decode == NULL && microseconds(&wait) == 0;
    for (;;) {
        XDR in;
        memset(&own->error, 0, sizeof own->error);
        enum clnt_stat status = exchange(handle, procedure, encode, arguments, &wait, &in);
        if (status == RPC_SUCCESS) {
            if (unmarshal(handle, &in, decode, results, &refreshes)) continue;
        } else if (is_batched && (status == RPC_TIMEDOUT || own->error.re_errno == ENOMSG)) {
            own->error.re_status = RPC_SUCCESS;
        }
        break;
    }
    enum clnt_stat status = own->error.re_status;
    pthread_mutex_unlock(&own->lock);
    return status;
}

static void via_abort(CLIENT *handle) {
    (void)handle;
}

static void via_geterr(CLIENT *handle, struct rpc_err *error) {
    *error = ((struct via_client *)handle->cl_private)->error;
}

static bool_t via_freeres(CLIENT *handle, xdrproc_t decode, void *results) {
    (void)handle;
    xdr_free(decode, results);
    return TRUE;
}

static bool_t control(struct via_client *own, u_int request, void *info) {
    if (request == CLSET_FD_CLOSE || request == CLSET_FD_NCLOSE) return TRUE;
    if (info == NULL) return FALSE;
    switch (request) {
    case CLSET_TIMEOUT: {
        const struct timeval *wait = info;
        if (wait->tv_sec < 0 || wait->tv_usec < 0 || wait->tv_usec >= 1000000) return FALSE;
        own->wait = *wait;
        return own->is_wait_set = TRUE;
    }
    case CLGET_TIMEOUT: *(struct timeval *)info = own->wait; return TRUE;
    case CLGET_XID: *(u_int32_t *)info = own->xid; return TRUE;
    /* The next call counts up. */
    case CLSET_XID: own->xid = *(u_int32_t *)info - 1; return TRUE;
    case CLGET_VERS: *(u_int32_t *)info = own->version; return TRUE;
    case CLSET_VERS: own->version = *(u_int32_t *)info; return TRUE;
    case CLGET_PROG: *(u_int32_t *)info = own->program; return TRUE;
    case CLSET_PROG: own->program = *(u_int32_t *)info; return TRUE;
    /* There is no descriptor, and no address of the kernel. */
    default: return FALSE;
    }
}

static bool_t via_control(CLIENT *handle, u_int request, void *info) {
    struct via_client *own = handle->cl_private;
    pthread_mutex_lock(&own->lock);
    bool_t done = control(own, request, info);
    pthread_mutex_unlock(&own->lock);
    return done;
}

static void via_destroy(CLIENT *handle) {
    struct via_client *own = handle->cl_private;
    viarpc_disconnect(own->connection);
    pthread_mutex_destroy(&own->lock);
    free(own);
    free(handle->cl_netid);
    free(handle->cl_tp);
    free(handle);
}

static struct clnt_ops client_ops = {via_call,    via_abort,   via_geterr,
                                     via_freeres, via_destroy, via_control};

static CLIENT *not_created(struct rpc_err error) {
    rpc_createerr.cf_stat = error.re_status;
    rpc_createerr.cf_error = error;
    return NULL;
}

CLIENT *clntvia_create(const char *host, rpcprog_t program, rpcvers_t version,
                       const struct timeval *timeout) {
    char endpoint[32];
    viarpc_client *connection;
    endpoint_of(program, endpoint, sizeof endpoint);
    int64_t bound = timeout == NULL ? CONNECT_US : microseconds(timeout);
    int code = viarpc_connect(host, endpoint, bound, &connection);
    if (code != VIARPC_OK) return not_created(error_of(code));
    CLIENT *handle = calloc(1, sizeof *handle);
    struct via_client *own = calloc(1, sizeof *own);
    if (handle == NULL || own == NULL || (handle->cl_netid = strdup(NETWORK)) == NULL ||
        (handle->cl_tp = strdup(NETWORK)) == NULL) {
        if (handle != NULL) free(handle->cl_netid);
        free(handle);
        free(own);
        viarpc_disconnect(connection);
        return not_created(error_of(VIARPC_RESOURCE));
    }
    struct timeval now;
    gettimeofday(&now, NULL);
    own->connection = connection;
    pthread_mutex_init(&own->lock, NULL);
    own->xid = (u_int32_t)getpid() ^ (u_int32_t)now.tv_sec ^ (u_int32_t)now.tv_usec;
    own->program = program;
    own->version = version;
    handle->cl_ops = &client_ops;
    handle->cl_private = own;
    handle->cl_auth = authnone_create();
    return handle;
}

/* clnt_create, clnt_create_vers and rpc_call of libtirpc come here, too. */
CLIENT *clnt_create_timed(const char *host, const rpcprog_t program, const rpcvers_t version,
                          const char *type, const struct timeval *timeout) {
    typedef CLIENT *create(const char *, rpcprog_t, rpcvers_t, const char *, const struct timeval *);
    if (type != NULL && strcmp(type, NETWORK) == 0)
        return clntvia_create(host, program, version, timeout);
    create *next = (create *)dlsym(RTLD_NEXT, "clnt_create_timed");
    if (next == NULL) return not_created(error_of(VIARPC_INVALID));
    return next(host, program, version, type, timeout);
}

CLIENT *clnt_create(const char *host, const rpcprog_t program, const rpcvers_t version,
                    const char *type) {
    return clnt_create_timed(host, program, version, type, NULL);
}

/* Server */

static bool_t via_recv(SVCXPRT *transport, struct rpc_msg *message) {
    struct via_server *own = transport->xp_p1;
    const void *bytes;
    size_t length;
    int code = viarpc_next(own->server, LOOK_US, &bytes, &length);
    if (code != VIARPC_OK) {
        own->has_failed = code != VIARPC_TIMED_OUT;
        return FALSE;
    }
    xdrmem_create(&own->in, (char *)bytes, (u_int)length, XDR_DECODE);
    /* What is no call is dropped, and its caller notified, with the next one. */
    if (!xdr_callmsg(&own->in, message)) return FALSE;
    own->xid = message->rm_xid;
    int flavor = message->rm_call.cb_cred.oa_flavor;
    if (flavor == AUTH_NONE || flavor == AUTH_SYS || flavor == AUTH_SHORT) return TRUE;
    /* The others change what the arguments and results look like. */
    svcerr_auth(transport, AUTH_REJECTEDCRED);
    return FALSE;
}

static enum xprt_stat via_stat(SVCXPRT *transport) {
    struct via_server *own = transport->xp_p1;
    bool_t ends = own->has_failed || __atomic_load_n(&own->is_stopped, __ATOMIC_ACQUIRE);
    return ends ? XPRT_IDLE : XPRT_MOREREQS;
}

static bool_t via_getargs(SVCXPRT *transport, xdrproc_t decode, void *arguments) {
    struct via_server *own = transport->xp_p1;
    return decode(&own->in, arguments);
}

static bool_t via_freeargs(SVCXPRT *transport, xdrproc_t decode, void *arguments) {
    (void)transport;
    xdr_free(decode, arguments);
    return TRUE;
}

static bool_t via_reply(SVCXPRT *transport, struct rpc_msg *message) {
    struct via_server *own = transport->xp_p1;
    XDR out;
    size_t room;
    message->rm_xid = own->xid;
    void *buffer = viarpc_answer(own->server, SMALL, &room);
    if (buffer == NULL) return FALSE;
    xdrmem_create(&out, buffer, (u_int)room, XDR_ENCODE);
    if (!xdr_replymsg(&out, message)) {
        /* Too long for it, or what cannot be marshalled at all, which has no size either. */
        size_t needed = xdr_sizeof((xdrproc_t)xdr_replymsg, message);
        if (needed == 0) return FALSE;
        buffer = viarpc_answer(own->server, needed, &room);
        if (buffer == NULL) return FALSE;
        xdrmem_create(&out, buffer, (u_int)room, XDR_ENCODE);
        if (!xdr_replymsg(&out, message)) return FALSE;
    }
    return viarpc_reply(own->server, XDR_GETPOS(&out)) == VIARPC_OK;
}

static void via_end(SVCXPRT *transport) {
    struct via_server *own = transport->xp_p1;
    viarpc_unbind(own->server);
    close(own->other);
    transport->xp_ops = own->ops;
    transport->xp_ops2 = own->ops2;
    transport->xp_p1 = own->p1;
    free(own);
    SVC_DESTROY(transport);
}

static bool_t via_server_control(SVCXPRT *transport, const u_int request, void *info) {
    (void)transport, (void)request, (void)info;
    return FALSE;
}

static const struct xp_ops server_ops = {via_recv,  via_stat,     via_getargs,
                                         via_reply, via_freeargs, via_end};
static const struct xp_ops2 server_ops2 = {via_server_control};

/*
 * Has svc_run not poll a descriptor that is registered. It would take it for its own when it is closed, and
 * finds no transport then, which libtirpc takes for a fault of the program.
 */
static void hide(int descriptor) {
    for (int i = 0; i < svc_max_pollfd; i++)
        if (svc_pollfd[i].fd == descriptor) svc_pollfd[i].fd = -1;
    if (descriptor < FD_SETSIZE) FD_CLR(descriptor, &svc_fdset);
}

/*
 * libtirpc's dispatcher knows transports by descriptors, and keeps in each what no header declares. So it
 * makes this one itself, of a socket on which nothing ever comes; then the operations are exchanged.
 */
SVCXPRT *svcvia_create(rpcprog_t program) {
    char endpoint[32];
    int ends[2];
    char *network = strdup(NETWORK);
    struct via_server *own = calloc(1, sizeof *own);
    if (network == NULL || own == NULL) goto no_memory;
    endpoint_of(program, endpoint, sizeof endpoint);
    if (viarpc_bind(endpoint, &own->server) != VIARPC_OK) goto no_memory;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) goto no_socket;
    SVCXPRT *transport = svc_fd_create(ends[0], 0, 0);
    if (transport == NULL) goto no_transport;
    hide(ends[0]);
    own->other = ends[1];
    own->ops = transport->xp_ops;
    own->ops2 = transport->xp_ops2;
    own->p1 = transport->xp_p1;
    transport->xp_ops = &server_ops;
    transport->xp_ops2 = &server_ops2;
    transport->xp_p1 = own;
    free(transport->xp_netid);
    transport->xp_netid = network;
    return transport;
no_transport:
    close(ends[0]);
    close(ends[1]);
no_socket:
    viarpc_unbind(own->server);
no_memory:
    free(network);
    free(own);
    return NULL;
}

int svcvia_run(SVCXPRT *transport) {
    struct via_server *own = transport->xp_p1;
    do svc_getreq_common(transport->xp_fd);
    while (via_stat(transport) == XPRT_MOREREQS);
    return own->has_failed ? -1 : 0;
}

void svcvia_exit(SVCXPRT *transport) {
    struct via_server *own = transport->xp_p1;
    __atomic_store_n(&own->is_stopped, TRUE, __ATOMIC_RELEASE);
}
