/*
 * Calls of the fast path, for a counter of instructions:
 *
 *   cc -O1 -I via-user/include via-user/libvipl/bench/fastpath.c -o fastpath -L DIR -lvipl -lpthread
 *   valgrind --tool=callgrind --collect-atstart=no --toggle-collect=VipPostRecv ./fastpath
 *
 * Every call is made COUNT times, so instructions divided by it are those of a call. What writing
 * the doorbell costs is the bus's: subtract the inclusive cost of the bus's `write64`.
 */
#include "../../examples/c/common.h"

#define COUNT 500

int main(void)
{
    nic_t a, b;
    VIP_DESCRIPTOR *done;
    VIP_RETURN code;
    open_nic(&a, "sim:model?node=0", 1 << 17, 0);
    open_nic(&b, "sim:model?node=1", 1 << 17, 0);
    VIP_VI_HANDLE vi = create_vi(&a, VIP_SERVICE_RELIABLE_DELIVERY, 0, NULL, NULL);
    /* Receives of an idle VI go to the NIC: a token each. */
    for (unsigned i = 0; i < COUNT; i++)
        MUST(VipPostRecv(vi, prepare(&a, 64 * i, 65536, 64), a.handle));
    for (unsigned i = 0; i < COUNT; i++)
        if ((code = VipRecvDone(vi, &done)) != VIP_NOT_DONE)
            return 1;
    /* Sends of an idle VI are done at once. */
    for (unsigned i = 0; i < COUNT; i++)
        MUST(VipPostSend(vi, prepare(&a, 64 * i, 65536, 64), a.handle));
    for (unsigned i = 0; i < COUNT; i++)
        if (VipSendDone(vi, &done) != VIP_DESCRIPTOR_ERROR || done == NULL)
            return 1;
    MUST(VipCloseNic(a.nic));
    MUST(VipCloseNic(b.nic));
    return 0;
}
