/*
 * Serves ECHO by VIA in two threads, and by TCP in a third one. Its first line is the port.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "echo.h"
#include "tirpc_via.h"

extern void echo_1(struct svc_req *, SVCXPRT *);
extern void echo_2(struct svc_req *, SVCXPRT *);

static SVCXPRT *transports[2];

blob *repeat_1_svc(blob *argument, struct svc_req *request) {
    (void)request;
    return argument;
}

int *wait_1_svc(int *ms, struct svc_req *request) {
    static __thread int waited;
    (void)request;
    waited = *ms;
    usleep(1000 * (useconds_t)*ms);
    return &waited;
}

int *silent_1_svc(void *argument, struct svc_req *request) {
    (void)argument, (void)request;
    return NULL;
}

int *who_1_svc(void *argument, struct svc_req *request) {
    static __thread int user;
    (void)argument;
    user = -1;
    if (request->rq_cred.oa_flavor == AUTH_SYS)
        user = (int)((struct authunix_parms *)request->rq_clntcred)->aup_uid;
    return &user;
}

blob *long_1_svc(int *length, struct svc_req *request) {
    static __thread blob answer;
    (void)request;
    free(answer.blob_val);
    answer.blob_len = (u_int)*length;
    answer.blob_val = calloc(1, answer.blob_len);
    return &answer;
}

text *name_1_svc(text *argument, struct svc_req *request) {
    (void)request;
    return argument;
}

int *stop_1_svc(void *argument, struct svc_req *request) {
    static int done = 1;
    (void)argument, (void)request;
    svcvia_exit(transports[0]);
    svcvia_exit(transports[1]);
    return &done;
}

int *add_2_svc(int *argument, struct svc_req *request) {
    static __thread int sum;
    (void)request;
    sum = *argument + 1;
    return &sum;
}

static void *serve(void *transport) {
    return svcvia_run(transport) == 0 ? NULL : transport;
}

static void *serve_tcp(void *argument) {
    svc_run();
    return argument;
}

int main(void) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof place;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&place, length) != 0 || listen(listener, 10) != 0) return 1;
    if (getsockname(listener, (struct sockaddr *)&place, &length) != 0) return 1;
    SVCXPRT *tcp = svctcp_create(listener, 0, 0);
    if (tcp == NULL || !svc_reg(tcp, ECHO, FIRST, echo_1, NULL)) return 2;
    for (int i = 0; i < 2; i++) {
        transports[i] = svcvia_create(ECHO);
        if (transports[i] == NULL) {
            fprintf(stderr, "%s\n", clntvia_error());
            return 3;
        }
        if (!svc_reg(transports[i], ECHO, FIRST, echo_1, NULL)) return 4;
        if (!svc_reg(transports[i], ECHO, SECOND, echo_2, NULL)) return 4;
    }
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, serve_tcp, NULL) != 0) return 5;
    if (pthread_create(&threads[1], NULL, serve, transports[1]) != 0) return 5;
    printf("%d\n", ntohs(place.sin_port));
    fflush(stdout);
    void *failed;
    if (serve(transports[0]) != NULL) return 6;
    if (pthread_join(threads[1], &failed) != 0 || failed != NULL) return 7;
    SVC_DESTROY(transports[1]);
    SVC_DESTROY(transports[0]);
    return 0;
}
