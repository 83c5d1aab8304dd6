/*
 * vserver: a server with many clients and one completion queue.
 *
 * Arguments as of vpingpong. The server answers each request with its bytes reversed; a client opens
 * several connections and checks the answers.
 */
#include "common.h"

#define CLIENTS 8u
#define REQUESTS 50u
#define BYTES 64u
/* For each client a descriptor and a buffer for its requests, and the same for the answers. */
#define RECV(i) (128u * (i))
#define SEND(i) (128u * (i) + 64)
#define IN(i) (8192u + 2 * BYTES * (i))
#define OUT(i) (IN(i) + BYTES)
enum { MEMORY = 16384 };

static void server(const char *device, const char *server_name)
{
    nic_t nic;
    VIP_CQ_HANDLE cq;
    VIP_VI_HANDLE vis[CLIENTS], vi;
    VIP_BOOLEAN is_recv;
    VIP_DESCRIPTOR *done;
    unsigned finished = 0;
    (void)server_name;
    open_nic(&nic, device, MEMORY, 0);
    MUST(VipCreateCQ(nic.nic, 1024, &cq));
    for (unsigned i = 0; i < CLIENTS; i++) {
        vis[i] = create_vi(&nic, VIP_SERVICE_RELIABLE_RECEPTION, 0, cq, cq);
        MUST(VipPostRecv(vis[i], prepare(&nic, RECV(i), IN(i), BYTES), nic.handle));
        serve(&nic, vis[i], "reverse");
    }
    while (finished < CLIENTS * REQUESTS) {
        unsigned i = 0;
        MUST(VipCQWait(cq, VIP_INFINITE, &vi, &is_recv));
        while (vis[i] != vi)
            i++;
        if (!is_recv) {
            MUST(VipSendDone(vi, &done));
            finished++;
            continue;
        }
        MUST(VipRecvDone(vi, &done));
        unsigned length = done->CS.Length;
        for (unsigned k = 0; k < length; k++)
            nic.memory[OUT(i) + k] = nic.memory[IN(i) + length - 1 - k];
        MUST(VipPostRecv(vi, prepare(&nic, RECV(i), IN(i), BYTES), nic.handle));
        MUST(VipPostSend(vi, prepare(&nic, SEND(i), OUT(i), length), nic.handle));
    }
    printf("answered %u requests of %u clients\n", finished, CLIENTS);
    MUST(VipCloseNic(nic.nic));
    free(nic.memory);
}

static void client(const char *device, const char *server_name)
{
    nic_t nic;
    VIP_VI_HANDLE vis[CLIENTS];
    VIP_DESCRIPTOR *done;
    address_t host;
    open_nic(&nic, device, MEMORY, 0);
    find_host(&nic, server_name, &host);
    for (unsigned i = 0; i < CLIENTS; i++) {
        vis[i] = create_vi(&nic, VIP_SERVICE_RELIABLE_RECEPTION, 0, NULL, NULL);
        ask(&nic, vis[i], &host, "reverse");
    }
    for (unsigned round = 0; round < REQUESTS; round++) {
        unsigned length = 1 + round % BYTES;
        for (unsigned i = 0; i < CLIENTS; i++) {
            for (unsigned k = 0; k < length; k++)
                nic.memory[OUT(i) + k] = (unsigned char)(k + i);
            MUST(VipPostRecv(vis[i], prepare(&nic, RECV(i), IN(i), BYTES), nic.handle));
            MUST(VipPostSend(vis[i], prepare(&nic, SEND(i), OUT(i), length), nic.handle));
        }
        for (unsigned i = 0; i < CLIENTS; i++) {
            MUST(VipSendWait(vis[i], VIP_INFINITE, &done));
            MUST(VipRecvWait(vis[i], VIP_INFINITE, &done));
            for (unsigned k = 0; k < length; k++)
                if (nic.memory[IN(i) + k] != (unsigned char)(length - 1 - k + i)) {
                    fprintf(stderr, "a wrong answer\n");
                    exit(1);
                }
        }
    }
    MUST(VipCloseNic(nic.nic));
    free(nic.memory);
}

int main(int count, char **words) { return example(count, words, server, client); }
