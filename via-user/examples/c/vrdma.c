/*
 * vrdma: RDMA writes and reads.
 *
 * Arguments as of vpingpong. The server sends the place of its buffer; the client writes into it, with
 * immediate data that tell the server so, and reads back what the server has made of it.
 */
#include "common.h"

#define BYTES 4096u
enum { DESCRIPTOR = 0, INFO = 128, BUFFER = 4096, MEMORY = 16384 };

/* What the client needs to know of the server's buffer. */
typedef struct {
    VIP_UINT64 address;
    VIP_MEM_HANDLE handle;
} place_t;

static VIP_DESCRIPTOR *prepare_rdma(nic_t *nic, VIP_UINT16 operation, place_t remote)
{
    VIP_DESCRIPTOR *d = prepare(nic, DESCRIPTOR, BUFFER, BYTES);
    d->CS.Control = operation;
    d->CS.SegCount = 2;
    d->DS[1] = d->DS[0];
    d->DS[0].Remote.Data.AddressBits = remote.address;
    d->DS[0].Remote.Handle = remote.handle;
    d->DS[0].Remote.Reserved = 0;
    return d;
}

static void server(const char *device, const char *server_name)
{
    nic_t nic;
    VIP_DESCRIPTOR *done;
    (void)server_name;
    open_nic(&nic, device, MEMORY, 1);
    VIP_VI_HANDLE vi = create_vi(&nic, VIP_SERVICE_RELIABLE_RECEPTION, 1, NULL, NULL);
    for (unsigned i = 1; i < 3; i++)
        MUST(VipPostRecv(vi, prepare(&nic, DESCRIPTOR + 64 * i + 256, INFO, 0), nic.handle));
    serve(&nic, vi, "rdma");
    place_t mine = {(VIP_UINT64)(size_t)(nic.memory + BUFFER), nic.handle};
    memcpy(nic.memory + INFO, &mine, sizeof mine);
    MUST(VipPostSend(vi, prepare(&nic, DESCRIPTOR, INFO, sizeof mine), nic.handle));
    MUST(VipSendWait(vi, VIP_INFINITE, &done));
    /* The client has written. */
    MUST(VipRecvWait(vi, VIP_INFINITE, &done));
    printf("the client wrote: %s (immediate data %u)\n", (char *)nic.memory + BUFFER,
           (unsigned)done->CS.ImmediateData);
    strcpy((char *)nic.memory + BUFFER, "and this is what the client read");
    MUST(VipPostSend(vi, prepare(&nic, DESCRIPTOR, INFO, 0), nic.handle));
    MUST(VipSendWait(vi, VIP_INFINITE, &done));
    /* The client has read. */
    MUST(VipRecvWait(vi, VIP_INFINITE, &done));
    MUST(VipDisconnect(vi));
    MUST(VipDestroyVi(vi));
    close_nic(&nic);
}

static void client(const char *device, const char *server_name)
{
    nic_t nic;
    VIP_DESCRIPTOR *done, *d;
    address_t host;
    place_t theirs;
    open_nic(&nic, device, MEMORY, 1);
    VIP_VI_HANDLE vi = create_vi(&nic, VIP_SERVICE_RELIABLE_RECEPTION, 1, NULL, NULL);
    MUST(VipPostRecv(vi, prepare(&nic, 256, INFO, sizeof theirs), nic.handle));
    MUST(VipPostRecv(vi, prepare(&nic, 320, INFO + 64, 0), nic.handle));
    find_host(&nic, server_name, &host);
    ask(&nic, vi, &host, "rdma");
    MUST(VipRecvWait(vi, VIP_INFINITE, &done));
    memcpy(&theirs, nic.memory + INFO, sizeof theirs);
    strcpy((char *)nic.memory + BUFFER, "this went straight into the server's memory");
    d = prepare_rdma(&nic, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, theirs);
    d->CS.ImmediateData = 1998;
    MUST(VipPostSend(vi, d, nic.handle));
    MUST(VipSendWait(vi, VIP_INFINITE, &done));
    MUST(VipRecvWait(vi, VIP_INFINITE, &done));
    MUST(VipPostSend(vi, prepare_rdma(&nic, VIP_CONTROL_OP_RDMAREAD, theirs), nic.handle));
    MUST(VipSendWait(vi, VIP_INFINITE, &done));
    printf("the client read: %s\n", (char *)nic.memory + BUFFER);
    MUST(VipPostSend(vi, prepare(&nic, DESCRIPTOR, INFO, 0), nic.handle));
    MUST(VipSendWait(vi, VIP_INFINITE, &done));
    MUST(VipDisconnect(vi));
    MUST(VipDestroyVi(vi));
    close_nic(&nic);
}

int main(int count, char **words) { return example(count, words, server, client); }
