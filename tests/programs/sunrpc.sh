# SunRPC by libtirpc and rpcgen: null calls, for long enough that the connection moves, and blobs that come back.
# needs: gcc libc6-dev libtirpc-dev rpcsvc-proto
# links: 2
source "${0%/*}/common.bash"
cd "$FOLDER"
cat >echo.x <<'END'
typedef opaque blob<>;
program ECHO { version FIRST { blob REPEAT(blob) = 1; } = 1; } = 0x20000099;
END
cat >server.c <<'END'
#include "echo.h"
#include <netinet/in.h>
#include <stdlib.h>
extern void echo_1(struct svc_req *, SVCXPRT *);
blob *repeat_1_svc(blob *argument, struct svc_req *request) {
    (void)request;
    return argument;
}
int main(int count, char **arguments) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    place.sin_port = htons(count > 1 ? atoi(arguments[1]) : 0);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&place, sizeof place) != 0) return 1;
    if (listen(listener, 10) != 0) return 1;
    SVCXPRT *transport = svctcp_create(listener, 0, 0);
    /* No protocol: the port is known, so no port mapper is asked. */
    if (transport == NULL || !svc_register(transport, ECHO, FIRST, echo_1, 0)) return 2;
    svc_run();
    return 3;
}
END
cat >client.c <<'END'
#include "echo.h"
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char **arguments) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    place.sin_port = htons(count > 1 ? atoi(arguments[1]) : 0);
    struct timeval bound = {20, 0};
    int connection = RPC_ANYSOCK, null = 0, same = 0;
    CLIENT *server = clnttcp_create(&place, ECHO, FIRST, &connection, 0, 0);
    if (server == NULL) return 1;
    for (int i = 0; i < 10000; i++)
        null += clnt_call(server, NULLPROC, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL,
                          bound) == RPC_SUCCESS;
    for (unsigned length = 1; length < 400000; length = 3 * length + 1) {
        blob sent = {length, malloc(length)};
        for (unsigned i = 0; i < length; i++) sent.blob_val[i] = (char)(i * 7 + length);
        blob *got = repeat_1(&sent, server);
        if (got == NULL) return 2;
        same += got->blob_len == length && memcmp(got->blob_val, sent.blob_val, length) == 0;
        clnt_freeres(server, (xdrproc_t)xdr_blob, (caddr_t)got);
        free(sent.blob_val);
    }
    printf("%d null calls, %d blobs the same\n", null, same);
    clnt_destroy(server);
    return 0;
}
END
rpcgen -h -o echo.h echo.x
rpcgen -c -o echo_xdr.c echo.x
rpcgen -l -o echo_clnt.c echo.x
rpcgen -m -o echo_svc.c echo.x
for side in server:svc client:clnt; do
    gcc -w -I/usr/include/tirpc -o "${side%:*}" "${side%:*}.c" "echo_${side#*:}.c" echo_xdr.c -ltirpc
done
$RUN ./server "$PORT" &
listening "$PORT"
$RUN ./client "$PORT"
