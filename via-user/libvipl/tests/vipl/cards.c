/*
 * Programs with cards of their own that are killed in mid-traffic: the program at the other end learns of
 * each, and the next program has the card.
 *
 * cards ROUNDS URL URL    the survivor, on the first card; its victims have the second
 */
#include "../../../examples/c/common.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define RECEIVES 8u
/* Descriptors, a buffer for all receives, a buffer of sends. */
#define BYTES 20000u
#define IN 4096u
#define OUT (IN + BYTES)
#define MEMORY (OUT + BYTES)
/* Longest time for anything, in milliseconds: beyond it something hangs. */
#define HANGS 60000

static void quiet(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    (void)context;
    (void)error;
}

/* A card that the last program may still be giving back. */
static void open_card(nic_t *nic, const char *url)
{
    VIP_NIC_HANDLE probe;
    double end = now_us() + HANGS * 1e3;
    while (VipOpenNic(url, &probe) != VIP_SUCCESS) {
        if (now_us() > end) {
            fprintf(stderr, "%s cannot be opened\n", url);
            exit(4);
        }
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    open_nic(nic, url, MEMORY, 1);
    MUST(VipCloseNic(probe));
    MUST(VipErrorCallback(nic->nic, NULL, quiet));
}

/* Sends, and waits for each answer, until it is killed. */
static void victim(const char *url, const address_t *server, int round)
{
    VIP_DESCRIPTOR *done;
    nic_t nic;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    open_card(&nic, url);
    VIP_VI_HANDLE vi = create_vi(&nic, VIP_SERVICE_RELIABLE_DELIVERY, 1, NULL, NULL);
    MUST(VipPostRecv(vi, prepare(&nic, 0, IN, BYTES), nic.handle));
    ask(&nic, vi, server, "cards");
    unsigned length = round % 3 == 0 ? 4 : round % 3 == 1 ? 3000 : BYTES;
    for (unsigned i = 0;; i = (i + 1) % RECEIVES) {
        MUST(VipPostSend(vi, prepare(&nic, 64 * (i + 1), OUT, length), nic.handle));
        MUST(VipSendWait(vi, HANGS, &done));
        MUST(VipRecvWait(vi, HANGS, &done));
        MUST(VipPostRecv(vi, prepare(&nic, 0, IN, BYTES), nic.handle));
    }
}

static int is_connected(VIP_VI_HANDLE vi)
{
    VIP_VI_STATE state;
    VIP_VI_ATTRIBUTES attributes;
    VIP_BOOLEAN send, recv;
    MUST(VipQueryVi(vi, &state, &attributes, &send, &recv));
    return state == VIP_STATE_CONNECTED;
}

/* Messages that arrived before the kill was noticed; the time that took, in microseconds. */
static unsigned round_of(nic_t *nic, const char *url, int round, double life, double *time)
{
    VIP_DESCRIPTOR *done;
    address_t own;
    unsigned next = 0, messages = 0, answered = 0, sends = 0;
    VIP_VI_HANDLE vi = create_vi(nic, VIP_SERVICE_RELIABLE_DELIVERY, 1, NULL, NULL);
    for (unsigned i = 0; i < RECEIVES; i++)
        MUST(VipPostRecv(vi, prepare(nic, 64 * i, IN, BYTES), nic->handle));
    make_address(&own, nic->attributes.LocalNicAddress, nic->attributes.NicAddressLen, "");
    pid_t child = fork();
    if (child == 0)
        victim(url, &own, round);
    serve(nic, vi, "cards");
    double kill_at = now_us() + life, killed = 0;
    while (is_connected(vi)) {
        if (VipRecvDone(vi, &done) == VIP_SUCCESS) {
            messages++;
            MUST(VipPostRecv(vi, prepare(nic, 64 * next, IN, BYTES), nic->handle));
            next = (next + 1) % RECEIVES;
        }
        if (killed == 0 && now_us() > kill_at) {
            kill(child, SIGKILL);
            killed = now_us();
        }
        if (sends != 0 && VipSendDone(vi, &done) != VIP_NOT_DONE)
            sends = 0;
        /* Who sends nothing learns of a card that was reset by a keepalive alone, whose time stands still
           in a simulation that has nothing else to do; and what is sent just now may arrive before. */
        if (sends == 0 && (answered < messages || killed != 0)) {
            sends = VipPostSend(vi, prepare(nic, 64 * RECEIVES, OUT, 4), nic->handle) == VIP_SUCCESS;
            answered++;
        }
        if (killed != 0 && now_us() - killed > HANGS * 1e3) {
            fprintf(stderr, "round %d: a kill is not noticed\n", round);
            exit(6);
        }
    }
    *time = now_us() - killed;
    if (killed == 0) {
        int status;
        waitpid(child, &status, 0);
        fprintf(stderr, "round %d: the connection ended by itself; the program gave %#x\n", round, status);
        exit(7);
    }
    waitpid(child, NULL, 0);
    MUST(VipDisconnect(vi));
    do
        done = NULL, VipRecvDone(vi, &done);
    while (done != NULL);
    do
        done = NULL, VipSendDone(vi, &done);
    while (done != NULL);
    MUST(VipDestroyVi(vi));
    return messages;
}

int main(int argc, char **words)
{
    nic_t nic;
    double worst = 0;
    unsigned messages = 0;
    unsigned long long random = 88172645463325252ull;
    if (argc != 4)
        return 2;
    open_card(&nic, words[2]);
    for (int round = 0; round < atoi(words[1]); round++) {
        double time;
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        messages += round_of(&nic, words[3], round, (double)(random % 100000), &time);
        worst = time > worst ? time : worst;
    }
    close_nic(&nic);
    printf("%s rounds, %u messages, a kill was noticed within %.1f ms\n", words[1], messages, worst / 1e3);
    return 0;
}
