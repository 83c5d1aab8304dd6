/*
 * VIA as a transport for programs of SunRPC with libtirpc (docs/rpc.md): tirpc_via.c. Link with
 * -ltirpc_via -lviarpc in front of -ltirpc, or compile tirpc_via.c into the program.
 *
 *     CLIENT *client = clnt_create("localhost", ECHO, FIRST, "via");
 *
 *     SVCXPRT *transport = svcvia_create(ECHO);
 *     svc_reg(transport, ECHO, FIRST, echo_1, NULL);
 *     svcvia_run(transport);
 *
 * clnt_create, clnt_create_timed and what libtirpc makes of them (clnt_create_vers, rpc_call) take the net
 * type "via"; every other one goes to libtirpc. There is no port mapper: a program is an endpoint of its
 * host.
 */
#ifndef TIRPC_VIA_H
#define TIRPC_VIA_H

#include <rpc/rpc.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A client of a program at a host: a node's name, one of the hosts file, or `localhost`, which is where a
 * program of this user on this machine serves it. NULL, with rpc_createerr, if there is none; clntvia_error
 * says more. `timeout` of the connection: NULL is 25 seconds.
 */
CLIENT *clntvia_create(const char *host, rpcprog_t program, rpcvers_t version,
                       const struct timeval *timeout);

/* What this thread's last failure was, as text. */
const char *clntvia_error(void);

/*
 * A transport that serves a program, for svc_reg with a netconfig of NULL. NULL if there is no device:
 * clntvia_error says why. Several transports of a program share its calls: one for each thread. As all of
 * libtirpc's: made and registered before svc_run runs in another thread, and destroyed by svc_destroy when
 * nobody serves it.
 */
SVCXPRT *svcvia_create(rpcprog_t program);

/*
 * Serves a transport in this thread. 0 once svcvia_exit was called, -1 if the device fails. svc_run, which
 * serves all transports of the kernel, may run in another thread meanwhile.
 */
int svcvia_run(SVCXPRT *transport);

/* Has svcvia_run return, after the procedure that runs, or in a tenth of a second. Of any thread. */
void svcvia_exit(SVCXPRT *transport);

#ifdef __cplusplus
}
#endif

#endif
