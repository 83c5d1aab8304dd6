/*
 * vbandwidth: bytes a second of a stream of messages.
 *
 * Arguments as of vpingpong. VIA has no flow control: the server says with an empty message how many
 * receives it has posted anew.
 */
#include "common.h"

#define BYTES 16384u
#define WINDOW 16u
#define MESSAGES 2000u
/* A descriptor for each message of the window, one for the credits, then the data. */
enum { CREDIT = 64 * WINDOW, DATA = 4096, MEMORY = DATA + WINDOW * BYTES };

static void server(const char *device, const char *server_name)
{
    nic_t nic;
    VIP_DESCRIPTOR *done;
    (void)server_name;
    open_nic(&nic, device, MEMORY, 0);
    VIP_VI_HANDLE vi = create_vi(&nic, VIP_SERVICE_RELIABLE_DELIVERY, 0, NULL, NULL);
    for (unsigned i = 0; i < WINDOW; i++)
        MUST(VipPostRecv(vi, prepare(&nic, 64 * i, DATA + i * BYTES, BYTES), nic.handle));
    serve(&nic, vi, "bandwidth");
    for (unsigned i = 0; i < MESSAGES; i++) {
        unsigned slot = i % WINDOW;
        MUST(VipRecvWait(vi, VIP_INFINITE, &done));
        MUST(VipPostRecv(vi, prepare(&nic, 64 * slot, DATA + slot * BYTES, BYTES), nic.handle));
        /* The client does not wait for credits of its last window, and may be gone. */
        if (i % (WINDOW / 2) == WINDOW / 2 - 1 && i + WINDOW < MESSAGES) {
            MUST(VipPostSend(vi, prepare(&nic, CREDIT, DATA, 0), nic.handle));
            MUST(VipSendWait(vi, VIP_INFINITE, &done));
        }
    }
    MUST(VipCloseNic(nic.nic));
    free(nic.memory);
}

static void client(const char *device, const char *server_name)
{
    nic_t nic;
    VIP_DESCRIPTOR *done;
    address_t host;
    unsigned credits = WINDOW, sent = 0, finished = 0;
    open_nic(&nic, device, MEMORY, 0);
    VIP_VI_HANDLE vi = create_vi(&nic, VIP_SERVICE_RELIABLE_DELIVERY, 0, NULL, NULL);
    for (unsigned i = 0; i < 2; i++)
        MUST(VipPostRecv(vi, prepare(&nic, CREDIT + 64 * i, DATA, 0), nic.handle));
    find_host(&nic, server_name, &host);
    ask(&nic, vi, &host, "bandwidth");
    double start = now_us();
    while (finished < MESSAGES) {
        while (sent < MESSAGES && credits > 0 && sent - finished < WINDOW) {
            unsigned slot = sent++ % WINDOW;
            MUST(VipPostSend(vi, prepare(&nic, 64 * slot, DATA + slot * BYTES, BYTES), nic.handle));
            credits--;
        }
        if (sent > finished) {
            MUST(VipSendWait(vi, VIP_INFINITE, &done));
            finished++;
        }
        if (sent == MESSAGES)
            continue; /* Nobody waits for credits any more: the server may be gone. */
        VIP_RETURN credit =
            credits == 0 ? VipRecvWait(vi, VIP_INFINITE, &done) : VipRecvDone(vi, &done);
        if (credit == VIP_NOT_DONE)
            continue;
        MUST(credit);
        size_t offset = (size_t)((unsigned char *)done - nic.memory);
        MUST(VipPostRecv(vi, prepare(&nic, offset, DATA, 0), nic.handle));
        credits += WINDOW / 2;
    }
    double us = now_us() - start;
    printf("%u messages of %u bytes, %.1f MB/s\n", MESSAGES, BYTES, MESSAGES * (double)BYTES / us);
    MUST(VipCloseNic(nic.nic));
    free(nic.memory);
}

int main(int count, char **words) { return example(count, words, server, client); }
