/*
 * client calls HOST            null calls, blobs, credentials
 * client errors HOST           each error, and that the handle goes on
 * client tcp PORT              the same server by TCP
 * client killed HOST           prints a line, and waits for the end of the server
 * client stop HOST             ends the server
 * It knows nothing of VIA but the name of the net type.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "echo.h"

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);          \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

static const struct timeval LONG_BOUND = {20, 0};
static const struct timeval AT_ONCE = {0, 0};

static CLIENT *created(const char *host) {
    CLIENT *server = clnt_create(host, ECHO, FIRST, "via");
    if (server == NULL) clnt_pcreateerror(host);
    CHECK(server != NULL);
    struct timeval bound = LONG_BOUND;
    CHECK(clnt_control(server, CLSET_TIMEOUT, (char *)&bound));
    return server;
}

static enum clnt_stat call(CLIENT *server, rpcproc_t procedure, struct timeval bound) {
    return clnt_call(server, procedure, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL, bound);
}

static void calls(CLIENT *server) {
    for (int i = 0; i < 2000; i++) CHECK(call(server, NULLPROC, LONG_BOUND) == RPC_SUCCESS);
    for (unsigned length = 0; length <= 400000; length = 3 * length + 1) {
        blob sent = {length, malloc(length + 1)};
        for (unsigned i = 0; i < length; i++) sent.blob_val[i] = (char)(i * 7 + length);
        blob *got = repeat_1(&sent, server);
        CHECK(got != NULL && got->blob_len == length);
        CHECK(memcmp(got->blob_val, sent.blob_val, length) == 0);
        CHECK(clnt_freeres(server, (xdrproc_t)xdr_blob, (caddr_t)got));
        free(sent.blob_val);
    }
    int *user = who_1(NULL, server);
    CHECK(user != NULL && *user == -1);
    auth_destroy(server->cl_auth);
    server->cl_auth = authunix_create_default();
    user = who_1(NULL, server);
    CHECK(user != NULL && *user == (int)geteuid());
}

/* The error of the last call. */
static struct rpc_err error_of(CLIENT *server) {
    struct rpc_err error;
    clnt_geterr(server, &error);
    return error;
}

static enum clnt_stat not_created(const char *host, rpcprog_t program, const char *type) {
    CHECK(clnt_create(host, program, FIRST, type) == NULL);
    return rpc_createerr.cf_stat;
}

static void versions(CLIENT *server, const char *host) {
    rpcvers_t version = 9;
    rpcprog_t program = 77;
    CHECK(clnt_control(server, CLSET_VERS, (char *)&version));
    CHECK(call(server, NULLPROC, LONG_BOUND) == RPC_PROGVERSMISMATCH);
    CHECK(error_of(server).re_vers.low == FIRST && error_of(server).re_vers.high == SECOND);
    CHECK(clnt_control(server, CLSET_PROG, (char *)&program));
    CHECK(call(server, NULLPROC, LONG_BOUND) == RPC_PROGUNAVAIL);
    version = FIRST, program = ECHO;
    CHECK(clnt_control(server, CLSET_VERS, (char *)&version));
    CHECK(clnt_control(server, CLSET_PROG, (char *)&program));
    /* These are libtirpc's, which calls clnt_create_timed. */
    CLIENT *newest = clnt_create_vers(host, ECHO, &version, FIRST, 9, "via");
    CHECK(newest != NULL && version == SECOND);
    int two = 2, three = 0;
    CHECK(clnt_call(newest, ADD, (xdrproc_t)xdr_int, (caddr_t)&two, (xdrproc_t)xdr_int,
                    (caddr_t)&three, LONG_BOUND) == RPC_SUCCESS);
    CHECK(three == 3);
    clnt_destroy(newest);
    CHECK(clnt_create_vers(host, ECHO, &version, 8, 9, "via") == NULL);
    CHECK(rpc_createerr.cf_stat == RPC_PROGVERSMISMATCH);
}

static void errors(CLIENT *server, const char *host) {
    CHECK(not_created("no such host", ECHO, "via") == RPC_UNKNOWNHOST);
    CHECK(not_created(host, 77, "via") == RPC_PROGNOTREGISTERED);
    CHECK(not_created("localhost", 77, "via") == RPC_PROGNOTREGISTERED);
    /* It says so in its own way. */
    CHECK(not_created(host, ECHO, "pigeon") == RPC_UNKNOWNPROTO);
    CHECK(call(server, 99, LONG_BOUND) == RPC_PROCUNAVAIL);
    versions(server, host);
    /* No text of nine bytes is marshalled, none of one byte taken for an answer. */
    text nine = "123456789", *eight;
    CHECK(name_1(&nine, server) == NULL && error_of(server).re_status == RPC_CANTENCODEARGS);
    nine = "12345678", eight = name_1(&nine, server);
    CHECK(eight != NULL && strcmp(*eight, nine) == 0);
    int number = 5;
    CHECK(clnt_call(server, NULLPROC, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_int,
                    (caddr_t)&number, LONG_BOUND) == RPC_CANTDECODERES);
    CHECK(clnt_call(server, NAME, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL,
                    LONG_BOUND) == RPC_CANTDECODEARGS);
    /* A time-out; the answer that comes later is no other call's. */
    struct timeval brief = {0, 30000}, bound = LONG_BOUND, found;
    int ms = 200;
    CHECK(clnt_control(server, CLSET_TIMEOUT, (char *)&brief));
    CHECK(clnt_control(server, CLGET_TIMEOUT, (char *)&found) && found.tv_usec == 30000);
    CHECK(wait_1(&ms, server) == NULL && error_of(server).re_status == RPC_TIMEDOUT);
    CHECK(clnt_control(server, CLSET_TIMEOUT, (char *)&bound));
    ms = 1;
    int *waited = wait_1(&ms, server);
    CHECK(waited != NULL && *waited == 1);
    CHECK(silent_1(NULL, server) == NULL && error_of(server).re_status == RPC_CANTRECV);
    CHECK(error_of(server).re_errno == ENOMSG);
    /* More than both sides take. */
    blob most = {17 << 20, calloc(1, 17 << 20)};
    CHECK(repeat_1(&most, server) == NULL && error_of(server).re_status == RPC_CANTSEND);
    CHECK(error_of(server).re_errno == EMSGSIZE);
    int much = 17 << 20;
    CHECK(long_1(&much, server) == NULL && error_of(server).re_status == RPC_SYSTEMERROR);
    /* Who wants no answer does not wait for one. */
    CLIENT *batch = created(host);
    struct timeval none = AT_ONCE;
    CHECK(clnt_control(batch, CLSET_TIMEOUT, (char *)&none));
    for (int i = 0; i < 100; i++)
        CHECK(clnt_call(batch, SILENT, (xdrproc_t)xdr_void, NULL, NULL, NULL, AT_ONCE) ==
              RPC_SUCCESS);
    CHECK(clnt_control(batch, CLSET_TIMEOUT, (char *)&bound));
    CHECK(call(batch, NULLPROC, LONG_BOUND) == RPC_SUCCESS);
    clnt_destroy(batch);
    u_int32_t xid = 1000;
    CHECK(clnt_control(server, CLSET_XID, (char *)&xid));
    CHECK(call(server, NULLPROC, LONG_BOUND) == RPC_SUCCESS);
    CHECK(clnt_control(server, CLGET_XID, (char *)&xid) && xid == 1000);
    CHECK(!clnt_control(server, CLGET_FD, (char *)&number));
}

static void killed(CLIENT *server) {
    int ms = 60000;
    puts("calls");
    fflush(stdout);
    CHECK(wait_1(&ms, server) == NULL && error_of(server).re_status == RPC_CANTRECV);
    CHECK(error_of(server).re_errno == ECONNRESET);
    CHECK(call(server, NULLPROC, LONG_BOUND) == RPC_CANTSEND);
    CHECK(not_created("localhost", ECHO, "via") == RPC_PROGNOTREGISTERED);
}

static void by_tcp(int port) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    place.sin_port = htons((in_port_t)port);
    int connection = RPC_ANYSOCK;
    CLIENT *server = clnttcp_create(&place, ECHO, FIRST, &connection, 0, 0);
    CHECK(server != NULL && call(server, NULLPROC, LONG_BOUND) == RPC_SUCCESS);
    clnt_destroy(server);
}

int main(int count, char **arguments) {
    CHECK(count == 3);
    if (strcmp(arguments[1], "tcp") == 0) {
        by_tcp(atoi(arguments[2]));
        return 0;
    }
    CLIENT *server = created(arguments[2]);
    if (strcmp(arguments[1], "calls") == 0) calls(server);
    if (strcmp(arguments[1], "errors") == 0) errors(server, arguments[2]);
    if (strcmp(arguments[1], "killed") == 0) killed(server);
    if (strcmp(arguments[1], "stop") == 0) CHECK(stop_1(NULL, server) != NULL);
    clnt_destroy(server);
    return 0;
}
