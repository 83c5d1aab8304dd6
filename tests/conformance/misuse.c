/* Handles that are no good, and pointers that are NULL: VIP_INVALID_PARAMETER, never a crash. */
#define _GNU_SOURCE
#include "frame.h"

static VIP_NET_ADDRESS *some_address(void)
{
    static address_t address;
    address.net.HostAddressLen = 6;
    return &address.net;
}

static VIP_NIC_ATTRIBUTES nic_out;
static VIP_VI_ATTRIBUTES vi_io;
static VIP_VI_EXTENSIONS extensions_io;
static VIP_MEM_ATTRIBUTES mem_io;
static VIP_MEM_HANDLE mem_out;
static VIP_PVOID handle_out;
static VIP_DESCRIPTOR *desc_out;
static VIP_BOOLEAN bool_out, bool_out2;
static VIP_VI_STATE state_out;
static VIP_AUTODISCOVERY_LIST list_out;
static VIP_CHAR name_out[256] = "node0";
static VIP_ULONG length_io = sizeof name_out;
static _Alignas(64) unsigned char bytes[4096];
#define DESC ((VIP_DESCRIPTOR *)(void *)bytes)

static void vi_handler(VIP_PVOID c, VIP_NIC_HANDLE n, VIP_VI_HANDLE v, VIP_DESCRIPTOR *d)
{
    (void)c, (void)n, (void)v, (void)d;
}
static void cq_handler(VIP_PVOID c, VIP_NIC_HANDLE n, VIP_VI_HANDLE v, VIP_BOOLEAN r)
{
    (void)c, (void)n, (void)v, (void)r;
}
static void error_handler(VIP_PVOID c, VIP_ERROR_DESCRIPTOR *e) { (void)c, (void)e; }

/* Handles of every kind that are good, and one that was given back. */
typedef struct {
    VIP_PVOID nic, stale_nic, vi, stale_vi, cq, stale_cq;
} handles_t;

static handles_t make_handles(side_t *n)
{
    handles_t h;
    side_t other;
    side_open(&other, 0);
    h.stale_nic = other.nic;
    side_close(&other);
    h.nic = n->nic;
    h.vi = vi_create(n, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    h.stale_vi = vi_create(n, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    OK(VipDestroyVi(h.stale_vi));
    OK(VipCreateCQ(n->nic, 16, &h.cq));
    OK(VipCreateCQ(n->nic, 16, &h.stale_cq));
    OK(VipDestroyCQ(h.stale_cq));
    return h;
}

#define BAD(stem, kind, expression, function, text, call)                                          \
    ROW_NIC(EARLY, stem##_##kind, function, text ": VIP_INVALID_PARAMETER")                        \
    {                                                                                              \
        handles_t h = make_handles(n);                                                             \
        VIP_PVOID bad = (expression);                                                              \
        (void)h;                                                                                   \
        GIVES(call, VIP_INVALID_PARAMETER);                                                        \
    }

#define BAD_NIC(stem, function, call)                                                              \
    BAD(stem, null_nic, NULL, function, "NIC handle NULL", call)                                   \
    BAD(stem, stale_nic, h.stale_nic, function, "NIC handle of a closed NIC", call)                \
    BAD(stem, foreign_nic, h.vi, function, "a VI's handle as NIC handle", call)                    \
    BAD(stem, wild_nic, (VIP_PVOID)&handle_out, function, "any pointer as NIC handle", call)

#define BAD_VI(stem, function, call)                                                               \
    BAD(stem, null_vi, NULL, function, "VI handle NULL", call)                                     \
    BAD(stem, stale_vi, h.stale_vi, function, "VI handle of a destroyed VI", call)                 \
    BAD(stem, foreign_vi, h.cq, function, "a CQ's handle as VI handle", call)                      \
    BAD(stem, wild_vi, (VIP_PVOID)~(size_t)0, function, "any bits as VI handle", call)

#define BAD_CQ(stem, function, call)                                                               \
    BAD(stem, null_cq, NULL, function, "CQ handle NULL", call)                                     \
    BAD(stem, stale_cq, h.stale_cq, function, "CQ handle of a destroyed CQ", call)                 \
    BAD(stem, foreign_cq, h.vi, function, "a VI's handle as CQ handle", call)                      \
    BAD(stem, wild_cq, (VIP_PVOID)1, function, "any bits as CQ handle", call)

BAD_NIC(close_nic, "VipCloseNic", VipCloseNic(bad))
BAD_NIC(query_nic, "VipQueryNic", VipQueryNic(bad, &nic_out))
BAD_NIC(register_mem, "VipRegisterMem", VipRegisterMem(bad, bytes, 64, &mem_io, &mem_out))
BAD_NIC(deregister_mem, "VipDeregisterMem", VipDeregisterMem(bad, n->memory, n->handle))
BAD_NIC(query_mem, "VipQueryMem", VipQueryMem(bad, n->memory, n->handle, &mem_io))
BAD_NIC(set_mem_attributes, "VipSetMemAttributes",
        VipSetMemAttributes(bad, n->memory, n->handle, &mem_io))
BAD_NIC(error_callback, "VipErrorCallback", VipErrorCallback(bad, NULL, error_handler))
BAD_NIC(query_management, "VipQuerySystemManagementInfo",
        VipQuerySystemManagementInfo(bad, VIP_SMI_AUTODISCOVERY, &list_out))
BAD_NIC(create_ptag, "VipCreatePtag", VipCreatePtag(bad, &handle_out))
BAD_NIC(destroy_ptag, "VipDestroyPtag", VipDestroyPtag(bad, n->tag))
BAD_NIC(create_vi, "VipCreateVi", VipCreateVi(bad, &vi_io, NULL, NULL, &handle_out))
BAD_NIC(connect_wait, "VipConnectWait",
        VipConnectWait(bad, some_address(), 0, some_address(), &vi_io, &handle_out))
BAD_NIC(create_cq, "VipCreateCQ", VipCreateCQ(bad, 16, &handle_out))
BAD_NIC(ns_init, "VipNSInit", VipNSInit(bad, NULL))
BAD_NIC(ns_get_host_by_name, "VipNSGetHostByName",
        VipNSGetHostByName(bad, name_out, some_address(), 0))
BAD_NIC(ns_get_host_by_addr, "VipNSGetHostByAddr",
        VipNSGetHostByAddr(bad, some_address(), name_out, &length_io))
BAD_NIC(ns_shutdown, "VipNSShutdown", VipNSShutdown(bad))

BAD_VI(destroy_vi, "VipDestroyVi", VipDestroyVi(bad))
BAD_VI(query_vi, "VipQueryVi", VipQueryVi(bad, &state_out, &vi_io, &bool_out, &bool_out2))
BAD_VI(set_vi_attributes, "VipSetViAttributes", VipSetViAttributes(bad, &vi_io))
BAD_VI(set_vi_extensions, "VipSetViExtensions", VipSetViExtensions(bad, &extensions_io))
BAD_VI(query_vi_extensions, "VipQueryViExtensions", VipQueryViExtensions(bad, &extensions_io))
BAD_VI(post_send, "VipPostSend", VipPostSend(bad, descriptor(n, 0), n->handle))
BAD_VI(post_recv, "VipPostRecv", VipPostRecv(bad, descriptor(n, 0), n->handle))
BAD_VI(send_done, "VipSendDone", VipSendDone(bad, &desc_out))
BAD_VI(recv_done, "VipRecvDone", VipRecvDone(bad, &desc_out))
BAD_VI(send_wait, "VipSendWait", VipSendWait(bad, VIP_INFINITE, &desc_out))
BAD_VI(recv_wait, "VipRecvWait", VipRecvWait(bad, VIP_INFINITE, &desc_out))
BAD_VI(send_notify, "VipSendNotify", VipSendNotify(bad, NULL, vi_handler))
BAD_VI(recv_notify, "VipRecvNotify", VipRecvNotify(bad, NULL, vi_handler))
BAD_VI(connect_request, "VipConnectRequest",
       VipConnectRequest(bad, some_address(), some_address(), 10, &vi_io))
BAD_VI(disconnect, "VipDisconnect", VipDisconnect(bad))
BAD_VI(peer_request, "VipConnectPeerRequest",
       VipConnectPeerRequest(bad, some_address(), some_address(), 10))
BAD_VI(peer_done, "VipConnectPeerDone", VipConnectPeerDone(bad, &vi_io))
BAD_VI(peer_wait, "VipConnectPeerWait", VipConnectPeerWait(bad, &vi_io))

BAD_CQ(destroy_cq, "VipDestroyCQ", VipDestroyCQ(bad))
BAD_CQ(resize_cq, "VipResizeCQ", VipResizeCQ(bad, 32))
BAD_CQ(cq_done, "VipCQDone", VipCQDone(bad, &handle_out, &bool_out))
BAD_CQ(cq_wait, "VipCQWait", VipCQWait(bad, VIP_INFINITE, &handle_out, &bool_out))
BAD_CQ(cq_notify, "VipCQNotify", VipCQNotify(bad, NULL, cq_handler))

BAD(connect_accept, null_connection, NULL, "VipConnectAccept", "connection handle NULL",
    VipConnectAccept(bad, h.vi))
BAD(connect_accept, foreign_connection, h.cq, "VipConnectAccept",
    "a CQ's handle as connection handle", VipConnectAccept(bad, h.vi))
BAD(connect_accept, wild_connection, (VIP_PVOID)bytes, "VipConnectAccept",
    "any pointer as connection handle", VipConnectAccept(bad, h.vi))
BAD(connect_reject, null_connection, NULL, "VipConnectReject", "connection handle NULL",
    VipConnectReject(bad))
BAD(connect_reject, foreign_connection, h.nic, "VipConnectReject",
    "a NIC's handle as connection handle", VipConnectReject(bad))
BAD(connect_reject, wild_connection, (VIP_PVOID)bytes, "VipConnectReject",
    "any pointer as connection handle", VipConnectReject(bad))

BAD(create_vi, stale_send_cq, h.stale_cq, "VipCreateVi", "a stale CQ for sends",
    (vi_io = vi_attributes(n, VIP_SERVICE_RELIABLE_DELIVERY),
     VipCreateVi(n->nic, &vi_io, bad, NULL, &handle_out)))
BAD(create_vi, stale_recv_cq, h.stale_cq, "VipCreateVi", "a stale CQ for receives",
    (vi_io = vi_attributes(n, VIP_SERVICE_RELIABLE_DELIVERY),
     VipCreateVi(n->nic, &vi_io, NULL, bad, &handle_out)))
BAD(create_vi, foreign_cq, h.vi, "VipCreateVi", "a VI's handle as CQ handle",
    (vi_io = vi_attributes(n, VIP_SERVICE_RELIABLE_DELIVERY),
     VipCreateVi(n->nic, &vi_io, bad, NULL, &handle_out)))

#define NO(stem, argument, function, call)                                                         \
    ROW_NIC(EARLY, stem##_without_##argument, function,                                            \
            "NULL for " #argument ": VIP_INVALID_PARAMETER")                                       \
    {                                                                                              \
        handles_t h = make_handles(n);                                                             \
        (void)h;                                                                                   \
        vi_io = vi_attributes(n, VIP_SERVICE_RELIABLE_DELIVERY);                                   \
        mem_io.Ptag = n->tag;                                                                      \
        GIVES(call, VIP_INVALID_PARAMETER);                                                        \
    }

NO(open_nic, name, "VipOpenNic", VipOpenNic(NULL, &handle_out))
NO(open_nic, handle, "VipOpenNic", VipOpenNic(device_url(0), NULL))
NO(query_nic, attributes, "VipQueryNic", VipQueryNic(n->nic, NULL))
NO(register_mem, address, "VipRegisterMem", VipRegisterMem(n->nic, NULL, 64, &mem_io, &mem_out))
NO(register_mem, attributes, "VipRegisterMem", VipRegisterMem(n->nic, bytes, 64, NULL, &mem_out))
NO(register_mem, handle, "VipRegisterMem", VipRegisterMem(n->nic, bytes, 64, &mem_io, NULL))
NO(deregister_mem, address, "VipDeregisterMem", VipDeregisterMem(n->nic, NULL, n->handle))
NO(query_mem, address, "VipQueryMem", VipQueryMem(n->nic, NULL, n->handle, &mem_io))
NO(query_mem, attributes, "VipQueryMem", VipQueryMem(n->nic, n->memory, n->handle, NULL))
NO(set_mem_attributes, address, "VipSetMemAttributes",
   VipSetMemAttributes(n->nic, NULL, n->handle, &mem_io))
NO(set_mem_attributes, attributes, "VipSetMemAttributes",
   VipSetMemAttributes(n->nic, n->memory, n->handle, NULL))
NO(query_management, list, "VipQuerySystemManagementInfo",
   VipQuerySystemManagementInfo(n->nic, VIP_SMI_AUTODISCOVERY, NULL))
NO(create_ptag, handle, "VipCreatePtag", VipCreatePtag(n->nic, NULL))
NO(destroy_ptag, handle, "VipDestroyPtag", VipDestroyPtag(n->nic, NULL))
NO(create_vi, attributes, "VipCreateVi", VipCreateVi(n->nic, NULL, NULL, NULL, &handle_out))
NO(create_vi, handle, "VipCreateVi", VipCreateVi(n->nic, &vi_io, NULL, NULL, NULL))
NO(query_vi, state, "VipQueryVi", VipQueryVi(h.vi, NULL, &vi_io, &bool_out, &bool_out2))
NO(query_vi, attributes, "VipQueryVi", VipQueryVi(h.vi, &state_out, NULL, &bool_out, &bool_out2))
NO(query_vi, send_empty, "VipQueryVi", VipQueryVi(h.vi, &state_out, &vi_io, NULL, &bool_out2))
NO(query_vi, recv_empty, "VipQueryVi", VipQueryVi(h.vi, &state_out, &vi_io, &bool_out, NULL))
NO(set_vi_attributes, attributes, "VipSetViAttributes", VipSetViAttributes(h.vi, NULL))
NO(set_vi_extensions, extensions, "VipSetViExtensions", VipSetViExtensions(h.vi, NULL))
NO(query_vi_extensions, extensions, "VipQueryViExtensions", VipQueryViExtensions(h.vi, NULL))
NO(post_send, descriptor, "VipPostSend", VipPostSend(h.vi, NULL, n->handle))
NO(post_recv, descriptor, "VipPostRecv", VipPostRecv(h.vi, NULL, n->handle))
NO(send_done, place, "VipSendDone", VipSendDone(h.vi, NULL))
NO(recv_done, place, "VipRecvDone", VipRecvDone(h.vi, NULL))
NO(send_wait, place, "VipSendWait", VipSendWait(h.vi, VIP_INFINITE, NULL))
NO(recv_wait, place, "VipRecvWait", VipRecvWait(h.vi, VIP_INFINITE, NULL))
NO(send_notify, handler, "VipSendNotify", VipSendNotify(h.vi, NULL, NULL))
NO(recv_notify, handler, "VipRecvNotify", VipRecvNotify(h.vi, NULL, NULL))
NO(connect_wait, local, "VipConnectWait",
   VipConnectWait(n->nic, NULL, 0, some_address(), &vi_io, &handle_out))
NO(connect_wait, remote, "VipConnectWait",
   VipConnectWait(n->nic, some_address(), 0, NULL, &vi_io, &handle_out))
NO(connect_wait, attributes, "VipConnectWait",
   VipConnectWait(n->nic, some_address(), 0, some_address(), NULL, &handle_out))
NO(connect_wait, handle, "VipConnectWait",
   VipConnectWait(n->nic, some_address(), 0, some_address(), &vi_io, NULL))
NO(connect_request, local, "VipConnectRequest",
   VipConnectRequest(h.vi, NULL, some_address(), 10, &vi_io))
NO(connect_request, remote, "VipConnectRequest",
   VipConnectRequest(h.vi, some_address(), NULL, 10, &vi_io))
NO(connect_request, attributes, "VipConnectRequest",
   VipConnectRequest(h.vi, some_address(), some_address(), 10, NULL))
NO(peer_request, local, "VipConnectPeerRequest",
   VipConnectPeerRequest(h.vi, NULL, some_address(), 10))
NO(peer_request, remote, "VipConnectPeerRequest",
   VipConnectPeerRequest(h.vi, some_address(), NULL, 10))
NO(peer_done, attributes, "VipConnectPeerDone", VipConnectPeerDone(h.vi, NULL))
NO(peer_wait, attributes, "VipConnectPeerWait", VipConnectPeerWait(h.vi, NULL))
NO(create_cq, handle, "VipCreateCQ", VipCreateCQ(n->nic, 16, NULL))
NO(cq_done, vi, "VipCQDone", VipCQDone(h.cq, NULL, &bool_out))
NO(cq_done, queue, "VipCQDone", VipCQDone(h.cq, &handle_out, NULL))
NO(cq_wait, vi, "VipCQWait", VipCQWait(h.cq, VIP_INFINITE, NULL, &bool_out))
NO(cq_wait, queue, "VipCQWait", VipCQWait(h.cq, VIP_INFINITE, &handle_out, NULL))
NO(cq_notify, handler, "VipCQNotify", VipCQNotify(h.cq, NULL, NULL))
NO(ns_get_host_by_name, name, "VipNSGetHostByName",
   VipNSGetHostByName(n->nic, NULL, some_address(), 0))
NO(ns_get_host_by_name, address, "VipNSGetHostByName",
   VipNSGetHostByName(n->nic, name_out, NULL, 0))
NO(ns_get_host_by_addr, address, "VipNSGetHostByAddr",
   VipNSGetHostByAddr(n->nic, NULL, name_out, &length_io))
NO(ns_get_host_by_addr, name, "VipNSGetHostByAddr",
   VipNSGetHostByAddr(n->nic, some_address(), NULL, &length_io))
NO(ns_get_host_by_addr, length, "VipNSGetHostByAddr",
   VipNSGetHostByAddr(n->nic, some_address(), name_out, NULL))
