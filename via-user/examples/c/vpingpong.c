/*
 * vpingpong: the time of a message there and back.
 *
 *   vpingpong                  both sides in this process, on two simulated NICs
 *   vpingpong DEVICE           the server
 *   vpingpong DEVICE NODE      a client of the server on node NODE
 */
#include "common.h"

#define ROUNDS 1000
#define BYTES 8
/* Places in the memory: two descriptors, what is sent, what is received. */
enum { SEND = 0, RECV = 64, OUT = 128, IN = 192, MEMORY = 4096 };

static void bounce(nic_t *nic, VIP_VI_HANDLE vi, int first)
{
    VIP_DESCRIPTOR *done;
    if (first) {
        MUST(VipPostSend(vi, prepare(nic, SEND, OUT, BYTES), nic->handle));
        MUST(VipSendWait(vi, VIP_INFINITE, &done));
    }
    MUST(VipRecvWait(vi, VIP_INFINITE, &done));
    MUST(VipPostRecv(vi, prepare(nic, RECV, IN, BYTES), nic->handle));
    if (!first) {
        MUST(VipPostSend(vi, prepare(nic, SEND, OUT, BYTES), nic->handle));
        MUST(VipSendWait(vi, VIP_INFINITE, &done));
    }
}

static void run(const char *device, const char *server_name, int is_client)
{
    nic_t nic;
    VIP_DESCRIPTOR *done;
    address_t host;
    open_nic(&nic, device, MEMORY, 0);
    VIP_VI_HANDLE vi = create_vi(&nic, VIP_SERVICE_RELIABLE_DELIVERY, 0, NULL, NULL);
    MUST(VipPostRecv(vi, prepare(&nic, RECV, IN, BYTES), nic.handle));
    if (is_client) {
        find_host(&nic, server_name, &host);
        ask(&nic, vi, &host, "pingpong");
    } else {
        serve(&nic, vi, "pingpong");
    }
    double start = now_us();
    for (int i = 0; i < ROUNDS; i++)
        bounce(&nic, vi, is_client);
    if (is_client)
        printf("%d rounds of %d bytes, %.2f us each\n", ROUNDS, BYTES, (now_us() - start) / ROUNDS);
    MUST(VipDisconnect(vi));
    while (VipRecvDone(vi, &done) == VIP_DESCRIPTOR_ERROR && done != NULL)
        ; /* the receive that was still posted */
    MUST(VipDestroyVi(vi));
    close_nic(&nic);
}

static void server(const char *device, const char *name) { run(device, name, 0); }
static void client(const char *device, const char *name) { run(device, name, 1); }

int main(int count, char **words) { return example(count, words, server, client); }
