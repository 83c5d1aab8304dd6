/* What the examples share: the device, and giving up with a reason. */
#ifndef EXAMPLE_COMMON_H
#define EXAMPLE_COMMON_H

/* posix_memalign and clock_gettime, also with a strict compiler (-std=c11). */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <vipl.h>

/* Ends the program unless a function succeeded. */
#define MUST(call)                                                                                 \
    do {                                                                                           \
        VIP_RETURN must_code = (call);                                                             \
        if (must_code != VIP_SUCCESS) {                                                            \
            fprintf(stderr, "%s:%d: %s gave %s\n", __FILE__, __LINE__, #call,                      \
                    VipReturnName(must_code));                                                     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* An address with room for everything. */
typedef union {
    VIP_NET_ADDRESS net;
    unsigned char room[4 + 64 + 256];
} address_t;

/* The host part of one address and a discriminator. */
static inline void make_address(address_t *address, const VIP_UINT8 *host, unsigned host_len,
                                const char *service)
{
    memset(address, 0, sizeof *address);
    address->net.HostAddressLen = (VIP_UINT16)host_len;
    address->net.DiscriminatorLen = (VIP_UINT16)strlen(service);
    memcpy(address->net.HostAddress, host, host_len);
    memcpy(address->net.HostAddress + host_len, service, strlen(service));
}

/* A NIC with a protection tag, and registered memory. */
typedef struct {
    VIP_NIC_HANDLE nic;
    VIP_NIC_ATTRIBUTES attributes;
    VIP_PROTECTION_HANDLE tag;
    unsigned char *memory;
    VIP_MEM_HANDLE handle;
} nic_t;

static inline void open_nic(nic_t *nic, const char *device, size_t bytes, int rdma)
{
    VIP_MEM_ATTRIBUTES attributes;
    memset(&attributes, 0, sizeof attributes);
    MUST(VipOpenNic(device, &nic->nic));
    MUST(VipQueryNic(nic->nic, &nic->attributes));
    MUST(VipCreatePtag(nic->nic, &nic->tag));
    if (posix_memalign((void **)&nic->memory, VIP_DESCRIPTOR_ALIGNMENT, bytes) != 0) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    memset(nic->memory, 0, bytes);
    attributes.Ptag = nic->tag;
    attributes.EnableRdmaWrite = rdma;
    attributes.EnableRdmaRead = rdma;
    MUST(VipRegisterMem(nic->nic, nic->memory, bytes, &attributes, &nic->handle));
}

static inline void close_nic(nic_t *nic)
{
    MUST(VipDeregisterMem(nic->nic, nic->memory, nic->handle));
    MUST(VipDestroyPtag(nic->nic, nic->tag));
    MUST(VipCloseNic(nic->nic));
    free(nic->memory);
}

static inline VIP_VI_HANDLE create_vi(nic_t *nic, VIP_RELIABILITY_LEVEL level, int rdma,
                                      VIP_CQ_HANDLE send, VIP_CQ_HANDLE recv)
{
    VIP_VI_ATTRIBUTES attributes;
    VIP_VI_HANDLE vi;
    memset(&attributes, 0, sizeof attributes);
    attributes.ReliabilityLevel = level;
    attributes.MaxTransferSize = nic->attributes.MaxTransferSize;
    attributes.Ptag = nic->tag;
    attributes.EnableRdmaWrite = rdma;
    attributes.EnableRdmaRead = rdma;
    MUST(VipCreateVi(nic->nic, &attributes, send, recv, &vi));
    return vi;
}

/* A descriptor at `offset` of the memory with one segment of `length` bytes at `data`. */
static inline VIP_DESCRIPTOR *prepare(nic_t *nic, size_t offset, size_t data, unsigned length)
{
    VIP_DESCRIPTOR *descriptor = (VIP_DESCRIPTOR *)(void *)(nic->memory + offset);
    memset(descriptor, 0, sizeof *descriptor);
    descriptor->CS.SegCount = 1;
    descriptor->CS.Control = VIP_CONTROL_OP_SENDRECV;
    descriptor->CS.Length = length;
    descriptor->DS[0].Local.Data.AddressBits = 0;
    descriptor->DS[0].Local.Data.Address = nic->memory + data;
    descriptor->DS[0].Local.Handle = nic->handle;
    descriptor->DS[0].Local.Length = length;
    return descriptor;
}

/* Accepts whoever asks for `service`. */
static inline void serve(nic_t *nic, VIP_VI_HANDLE vi, const char *service)
{
    address_t local, from;
    VIP_VI_ATTRIBUTES theirs;
    VIP_CONN_HANDLE connection;
    make_address(&local, nic->attributes.LocalNicAddress, nic->attributes.NicAddressLen, service);
    MUST(VipConnectWait(nic->nic, &local.net, VIP_INFINITE, &from.net, &theirs, &connection));
    MUST(VipConnectAccept(connection, vi));
}

/* The address of a host by its name, which for a number N is nodeN. */
static inline void find_host(const nic_t *nic, const char *name, address_t *host)
{
    char node[64];
    int is_number = name[0] != '\0' && strspn(name, "0123456789") == strlen(name);
    snprintf(node, sizeof node, "%s%s", is_number ? "node" : "", name);
    memset(host, 0, sizeof *host);
    host->net.HostAddressLen = nic->attributes.NicAddressLen;
    MUST(VipNSInit(nic->nic, NULL));
    MUST(VipNSGetHostByName(nic->nic, node, &host->net, 0));
    MUST(VipNSShutdown(nic->nic));
}

/* Asks `host` for `service` until somebody is there. */
static inline void ask(nic_t *nic, VIP_VI_HANDLE vi, const address_t *host, const char *service)
{
    address_t local, remote;
    VIP_VI_ATTRIBUTES theirs;
    VIP_RETURN code;
    make_address(&local, nic->attributes.LocalNicAddress, nic->attributes.NicAddressLen, "");
    make_address(&remote, host->net.HostAddress, host->net.HostAddressLen, service);
    do
        code = VipConnectRequest(vi, &local.net, &remote.net, 1000, &theirs);
    while (code == VIP_NO_MATCH || code == VIP_TIMEOUT);
    MUST(code);
}

static inline double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* One side of an example: its device, and the name of the server's host. */
typedef struct {
    const char *device, *server_name;
    void (*run)(const char *device, const char *server_name);
} role_t;

static inline void *role_main(void *argument)
{
    role_t *role = argument;
    role->run(role->device, role->server_name);
    return NULL;
}

/* Without arguments both sides run in this process, on two simulated NICs; with a device the server,
 * with a device and the name or number of the server's node a client. */
static inline int example(int count, char **words, void (*server)(const char *, const char *),
                          void (*client)(const char *, const char *))
{
    if (count == 2) {
        server(words[1], "");
    } else if (count == 3) {
        client(words[1], words[2]);
    } else if (count == 1) {
        role_t roles[2] = {{"sim:model?node=1", "", server}, {"sim:model?node=0", "1", client}};
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, role_main, &roles[i]);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
    } else {
        fprintf(stderr, "usage: %s [DEVICE [NODE-OF-SERVER]]\n", words[0]);
        return 2;
    }
    return 0;
}

#endif
