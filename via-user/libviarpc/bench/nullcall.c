/*
 * Null calls of SunRPC for `viaduct bench sockets`, by TCP or directly by VIA:
 *
 *     nullcall serve tcp|via PROGRAM           serves until its input ends
 *     nullcall call tcp|via PROGRAM PLACE      makes as many calls as each line of its input says
 *
 * Either writes `ok` first, the server with its place: a port, or a host. The client answers each line with
 * `ok` and the time of a call in nanoseconds, or with `error` and why.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tirpc_via.h"

#define VERSION 1

static void dispatch(struct svc_req *request, SVCXPRT *transport) {
    if (request->rq_proc == NULLPROC)
        svc_sendreply(transport, (xdrproc_t)xdr_void, NULL);
    else
        svcerr_noproc(transport);
}

static int failed(const char *why) {
    printf("error %s\n", why);
    return 1;
}

/* Whoever started it has no more use for it, or is dead. */
static void *end_with_input(void *argument) {
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) continue;
    _exit(0);
    return argument;
}

static int serve(int is_via, rpcprog_t program) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof place;
    pthread_t thread;
    SVCXPRT *transport;
    if (is_via) {
        transport = svcvia_create(program);
        if (transport == NULL) return failed(clntvia_error());
    } else {
        int listener = socket(AF_INET, SOCK_STREAM, 0);
        if (bind(listener, (struct sockaddr *)&place, length) != 0 || listen(listener, 10) != 0)
            return failed("no port");
        if (getsockname(listener, (struct sockaddr *)&place, &length) != 0) return failed("no port");
        transport = svctcp_create(listener, 0, 0);
    }
    if (transport == NULL || !svc_reg(transport, program, VERSION, dispatch, NULL))
        return failed("no transport of libtirpc");
    if (pthread_create(&thread, NULL, end_with_input, NULL) != 0) return failed("no thread");
    if (is_via)
        puts("ok localhost");
    else
        printf("ok %d\n", ntohs(place.sin_port));
    fflush(stdout);
    if (is_via) return svcvia_run(transport);
    svc_run();
    return 1;
}

static CLIENT *connected(int is_via, rpcprog_t program, const char *where) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int connection = RPC_ANYSOCK;
    if (is_via) return clnt_create(where, program, VERSION, "via");
    place.sin_port = htons((in_port_t)atoi(where));
    return clnttcp_create(&place, program, VERSION, &connection, 0, 0);
}

static int call(int is_via, rpcprog_t program, const char *where) {
    const struct timeval bound = {20, 0};
    char line[32];
    CLIENT *server = connected(is_via, program, where);
    if (server == NULL) return failed(clnt_spcreateerror("no connection"));
    puts("ok");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        long count = atol(line);
        enum clnt_stat status = RPC_SUCCESS;
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (long i = 0; i < count && status == RPC_SUCCESS; i++)
            status = clnt_call(server, NULLPROC, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL,
                               bound);
        clock_gettime(CLOCK_MONOTONIC, &to);
        if (status != RPC_SUCCESS) return failed(clnt_sperrno(status));
        double ns = 1e9 * (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec);
        printf("ok %.1f\n", ns / (double)count);
        fflush(stdout);
    }
    clnt_destroy(server);
    return 0;
}

int main(int count, char **arguments) {
    if (count < 4) return failed("usage: nullcall serve|call tcp|via PROGRAM [PLACE]");
    int is_via = strcmp(arguments[2], "via") == 0;
    rpcprog_t program = (rpcprog_t)strtoul(arguments[3], NULL, 10);
    if (strcmp(arguments[1], "serve") == 0) return serve(is_via, program);
    return count < 5 ? failed("no place") : call(is_via, program, arguments[4]);
}
