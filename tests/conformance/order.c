/*
 * The order of doorbells on served NICs.
 *
 * A row posts a receive on one NIC and then sends on the other one. Where both are in a simulator
 * of another process, the two doorbells are messages on two sockets: nothing says which takes
 * effect first, and a message that finds no receive breaks its connection. Programs of two
 * machines tell each other by VIA what they have posted. So that rows need not, a send waits here
 * until receives of the other NIC have reached it: a command to that NIC, behind their doorbells,
 * has been answered.
 */
#define _GNU_SOURCE
#include "carry.h"

#include <pthread.h>

/* More that are open at once have no use for this. */
#define NICS 16

static struct {
    VIP_NIC_HANDLE handle;
    int node;
} nics[NICS];
/* Whether receives were posted on a node since its last command. */
static int posted[2];
static int by_hand;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void order_by_hand(void) { by_hand = 1; }

static int is_on(void) { return !by_hand && strncmp(device_url(0), "sim:", 4) != 0; }

void order_opened(VIP_NIC_HANDLE nic, const VIP_CHAR *name)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < NICS; i++)
        if (nics[i].handle == NULL) {
            nics[i].handle = nic;
            nics[i].node = strcmp(name, device_url(1)) == 0;
            break;
        }
    pthread_mutex_unlock(&lock);
}

void order_closed(VIP_NIC_HANDLE nic)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < NICS; i++)
        if (nics[i].handle == nic)
            nics[i].handle = NULL;
    pthread_mutex_unlock(&lock);
}

/* In one process nobody knows here of which node a VI is: it may be either. */
static int may_be(VIP_VI_HANDLE vi, int node) { return !has_other() || is_far(vi) == node; }

void order_received(VIP_VI_HANDLE vi)
{
    if (!is_on())
        return;
    pthread_mutex_lock(&lock);
    for (int node = 0; node < 2; node++)
        posted[node] |= may_be(vi, node);
    pthread_mutex_unlock(&lock);
}

static void reach(int node)
{
    VIP_CQ_HANDLE cq;
    for (int i = 0; i < NICS; i++)
        if (nics[i].handle != NULL && nics[i].node == node) {
            if (VipCreateCQ(nics[i].handle, 1, &cq) == VIP_SUCCESS)
                OK(VipDestroyCQ(cq));
            return;
        }
}

void order_sends(VIP_VI_HANDLE vi)
{
    if (!is_on())
        return;
    pthread_mutex_lock(&lock);
    for (int node = 0; node < 2; node++)
        if (posted[node] && may_be(vi, 1 - node)) {
            reach(node);
            posted[node] = 0;
        }
    pthread_mutex_unlock(&lock);
}
