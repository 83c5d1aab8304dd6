/*
 * The functions of VIPL as the rows call them: the linker takes __wrap_VipX for VipX, and VipX of
 * the library for __real_VipX (--wrap). A call whose handle is of the other process is carried
 * there. All others, and every call if there is no other process, go to the library as they are.
 */
#define _GNU_SOURCE
#include "carry.h"

/* The handle of a call is in the call already. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define LIST(...) __VA_ARGS__

/* A function with the handle `whose`; what follows carries its call `c`. */
#define WRAP(name, number_, whose, parameters, arguments)                                          \
    WRAP_WITH(name, number_, whose, LIST(parameters), LIST(arguments), , )

/* The same, with something to be done before and after. */
#define WRAP_WITH(name, number_, whose, parameters, arguments, before, after)                      \
    VIP_RETURN __real_##name(parameters);                                                          \
    VIP_RETURN __wrap_##name(parameters);                                                          \
    static VIP_RETURN far_##name(call_t *c, parameters);                                           \
    VIP_RETURN __wrap_##name(parameters)                                                           \
    {                                                                                              \
        VIP_RETURN code;                                                                           \
        before;                                                                                    \
        if (is_far(whose)) {                                                                       \
            call_t call = {.function = number_, .handle = whose};                                  \
            code = far_##name(&call, arguments);                                                   \
        } else {                                                                                   \
            code = __real_##name(arguments);                                                       \
        }                                                                                          \
        after;                                                                                     \
        return code;                                                                               \
    }                                                                                              \
    static VIP_RETURN far_##name(call_t *c, parameters)

/* A function that is not carried: no row has a use for it on node 1. */
#define WRAP_NEAR(name, whose, parameters, arguments)                                              \
    VIP_RETURN __real_##name(parameters);                                                          \
    VIP_RETURN __wrap_##name(parameters);                                                          \
    VIP_RETURN __wrap_##name(parameters)                                                           \
    {                                                                                              \
        if (is_far(whose))                                                                         \
            fail(__FILE__, __LINE__, "%s is not carried to the other process", #name);             \
        return __real_##name(arguments);                                                           \
    }

/* For a pointer to what comes back; NULL stays NULL. */
#define PLACE(order, pointer)                                                                      \
    do {                                                                                           \
        if ((pointer) != NULL)                                                                     \
            c->wanted |= 1u << (order);                                                            \
    } while (0)

/* For a pointer to what goes there. */
#define GO(order, pointer, place)                                                                  \
    do {                                                                                           \
        if ((pointer) != NULL) {                                                                   \
            c->wanted |= 1u << (order);                                                            \
            (place) = *(pointer);                                                                  \
        }                                                                                          \
    } while (0)

/* What came back, to where the row wants it. */
#define BACK(pointer, value)                                                                       \
    do {                                                                                           \
        if ((pointer) != NULL)                                                                     \
            *(pointer) = (value);                                                                  \
    } while (0)

static void address_goes(call_t *c, unsigned order, address_t *place, const VIP_NET_ADDRESS *a)
{
    PLACE(order, a);
    if (a != NULL)
        copy_address(&place->net, a);
}

VIP_RETURN __real_VipOpenNic(const VIP_CHAR *name, VIP_NIC_HANDLE *nic);
VIP_RETURN __wrap_VipOpenNic(const VIP_CHAR *name, VIP_NIC_HANDLE *nic);
VIP_RETURN __wrap_VipOpenNic(const VIP_CHAR *name, VIP_NIC_HANDLE *nic)
{
    call_t call = {.function = OPEN_NIC}, *c = &call;
    if (opens_far(name)) {
        strncpy(call.name, name, sizeof call.name - 1);
        PLACE(0, nic);
        if (carry(c) == VIP_SUCCESS)
            BACK(nic, across(call.made));
    } else {
        call.code = __real_VipOpenNic(name, nic);
    }
    if (call.code == VIP_SUCCESS)
        order_opened(*nic, name);
    return call.code;
}

WRAP_WITH(VipCloseNic, CLOSE_NIC, nic, LIST(VIP_NIC_HANDLE nic), LIST(nic), order_closed(nic), )
{
    return carry(c);
}

WRAP(VipQueryNic, QUERY_NIC, nic, LIST(VIP_NIC_HANDLE nic, VIP_NIC_ATTRIBUTES *a), LIST(nic, a))
{
    static VIP_UINT8 host[sizeof c->host];
    PLACE(0, a);
    if (carry(c) == VIP_SUCCESS && a != NULL) {
        CHECK(c->nic.NicAddressLen <= sizeof host);
        memcpy(host, c->host, sizeof host);
        *a = c->nic;
        a->LocalNicAddress = host;
    }
    return c->code;
}

WRAP(VipErrorCallback, ERROR_CALLBACK, nic,
     LIST(VIP_NIC_HANDLE nic, VIP_PVOID context, VIP_ERROR_HANDLER handler),
     LIST(nic, context, handler))
{
    c->notice = (notice_t){{.error = handler}, context};
    return carry(c);
}

WRAP_NEAR(VipQuerySystemManagementInfo, nic,
          LIST(VIP_NIC_HANDLE nic, VIP_ULONG type, VIP_PVOID info), LIST(nic, type, info))

WRAP(VipCreatePtag, CREATE_PTAG, nic, LIST(VIP_NIC_HANDLE nic, VIP_PROTECTION_HANDLE *tag),
     LIST(nic, tag))
{
    PLACE(0, tag);
    if (carry(c) == VIP_SUCCESS)
        BACK(tag, across(c->made));
    return c->code;
}

WRAP(VipDestroyPtag, DESTROY_PTAG, nic, LIST(VIP_NIC_HANDLE nic, VIP_PROTECTION_HANDLE tag),
     LIST(nic, tag))
{
    c->second = tag;
    return carry(c);
}

WRAP(VipRegisterMem, REGISTER_MEM, nic,
     LIST(VIP_NIC_HANDLE nic, VIP_PVOID address, VIP_ULONG length, VIP_MEM_ATTRIBUTES *attributes,
          VIP_MEM_HANDLE *handle),
     LIST(nic, address, length, attributes, handle))
{
    if (!is_common(address))
        fail(__FILE__, __LINE__, "memory that the other process does not have: it is of no side");
    c->address = address;
    c->number = length;
    GO(0, attributes, c->mem);
    PLACE(1, handle);
    if (carry(c) == VIP_SUCCESS)
        BACK(handle, c->memory);
    return c->code;
}

WRAP(VipDeregisterMem, DEREGISTER_MEM, nic,
     LIST(VIP_NIC_HANDLE nic, VIP_PVOID address, VIP_MEM_HANDLE handle), LIST(nic, address, handle))
{
    c->address = address;
    c->memory = handle;
    return carry(c);
}

#define MEMORY_PARAMETERS                                                                          \
    LIST(VIP_NIC_HANDLE nic, VIP_PVOID address, VIP_MEM_HANDLE handle,                             \
         VIP_MEM_ATTRIBUTES *attributes)

WRAP(VipQueryMem, QUERY_MEM, nic, MEMORY_PARAMETERS, LIST(nic, address, handle, attributes))
{
    c->address = address;
    c->memory = handle;
    PLACE(0, attributes);
    if (carry(c) == VIP_SUCCESS)
        BACK(attributes, c->mem);
    return c->code;
}

WRAP(VipSetMemAttributes, SET_MEM_ATTRIBUTES, nic, MEMORY_PARAMETERS,
     LIST(nic, address, handle, attributes))
{
    c->address = address;
    c->memory = handle;
    GO(0, attributes, c->mem);
    return carry(c);
}

WRAP(VipCreateVi, CREATE_VI, nic,
     LIST(VIP_NIC_HANDLE nic, VIP_VI_ATTRIBUTES *attributes, VIP_CQ_HANDLE send, VIP_CQ_HANDLE recv,
          VIP_VI_HANDLE *vi),
     LIST(nic, attributes, send, recv, vi))
{
    c->second = send;
    c->third = recv;
    GO(0, attributes, c->vi);
    PLACE(1, vi);
    if (carry(c) == VIP_SUCCESS)
        BACK(vi, across(c->made));
    return c->code;
}

WRAP(VipDestroyVi, DESTROY_VI, vi, LIST(VIP_VI_HANDLE vi), LIST(vi)) { return carry(c); }

WRAP(VipQueryVi, QUERY_VI, vi,
     LIST(VIP_VI_HANDLE vi, VIP_VI_STATE *state, VIP_VI_ATTRIBUTES *attributes, VIP_BOOLEAN *send,
          VIP_BOOLEAN *recv),
     LIST(vi, state, attributes, send, recv))
{
    PLACE(0, state);
    PLACE(1, attributes);
    PLACE(2, send);
    PLACE(3, recv);
    if (carry(c) == VIP_SUCCESS) {
        BACK(state, c->state);
        BACK(attributes, c->vi);
        BACK(send, c->flags[0]);
        BACK(recv, c->flags[1]);
    }
    return c->code;
}

WRAP(VipSetViAttributes, SET_VI_ATTRIBUTES, vi,
     LIST(VIP_VI_HANDLE vi, VIP_VI_ATTRIBUTES *attributes), LIST(vi, attributes))
{
    GO(0, attributes, c->vi);
    return carry(c);
}

WRAP(VipSetViExtensions, SET_VI_EXTENSIONS, vi,
     LIST(VIP_VI_HANDLE vi, VIP_VI_EXTENSIONS *extensions), LIST(vi, extensions))
{
    GO(0, extensions, c->extensions);
    return carry(c);
}

WRAP(VipQueryViExtensions, QUERY_VI_EXTENSIONS, vi,
     LIST(VIP_VI_HANDLE vi, VIP_VI_EXTENSIONS *extensions), LIST(vi, extensions))
{
    PLACE(0, extensions);
    if (carry(c) == VIP_SUCCESS)
        BACK(extensions, c->extensions);
    return c->code;
}

#define POST(name, number_, before, after)                                                         \
    WRAP_WITH(name, number_, vi, LIST(VIP_VI_HANDLE vi, VIP_DESCRIPTOR *d, VIP_MEM_HANDLE handle), \
              LIST(vi, d, handle), before, after)                                                  \
    {                                                                                              \
        c->descriptor = d;                                                                         \
        c->memory = handle;                                                                        \
        return carry(c);                                                                           \
    }
POST(VipPostSend, POST_SEND, order_sends(vi), )
POST(VipPostRecv, POST_RECV, , order_received(vi))

/* Both codes may come with a descriptor, or with NULL. */
static VIP_RETURN carry_taking(call_t *c, VIP_DESCRIPTOR **done)
{
    GO(0, done, c->descriptor);
    carry(c);
    BACK(done, c->descriptor);
    return c->code;
}

#define DONE(name, number_)                                                                        \
    WRAP(name, number_, vi, LIST(VIP_VI_HANDLE vi, VIP_DESCRIPTOR **done), LIST(vi, done))         \
    {                                                                                              \
        return carry_taking(c, done);                                                              \
    }
DONE(VipSendDone, SEND_DONE)
DONE(VipRecvDone, RECV_DONE)

#define WAIT(name, number_)                                                                        \
    WRAP(name, number_, vi, LIST(VIP_VI_HANDLE vi, VIP_ULONG ms, VIP_DESCRIPTOR **done),           \
         LIST(vi, ms, done))                                                                       \
    {                                                                                              \
        c->number = ms;                                                                            \
        return carry_taking(c, done);                                                              \
    }
WAIT(VipSendWait, SEND_WAIT)
WAIT(VipRecvWait, RECV_WAIT)

#define NOTIFY(name, number_)                                                                      \
    WRAP(name, number_, vi, LIST(VIP_VI_HANDLE vi, VIP_PVOID context, VIP_VI_CALLBACK handler),    \
         LIST(vi, context, handler))                                                               \
    {                                                                                              \
        c->notice = (notice_t){{.vi = handler}, context};                                          \
        return carry(c);                                                                           \
    }
NOTIFY(VipSendNotify, SEND_NOTIFY)
NOTIFY(VipRecvNotify, RECV_NOTIFY)

WRAP(VipConnectWait, CONNECT_WAIT, nic,
     LIST(VIP_NIC_HANDLE nic, VIP_NET_ADDRESS *local, VIP_ULONG ms, VIP_NET_ADDRESS *remote,
          VIP_VI_ATTRIBUTES *theirs, VIP_CONN_HANDLE *connection),
     LIST(nic, local, ms, remote, theirs, connection))
{
    c->number = ms;
    address_goes(c, 0, &c->local, local);
    PLACE(1, remote);
    PLACE(2, theirs);
    PLACE(3, connection);
    if (carry(c) == VIP_SUCCESS) {
        if (remote != NULL)
            copy_address(remote, &c->remote.net);
        BACK(theirs, c->vi);
        BACK(connection, across(c->made));
    }
    return c->code;
}

WRAP(VipConnectAccept, CONNECT_ACCEPT, connection,
     LIST(VIP_CONN_HANDLE connection, VIP_VI_HANDLE vi), LIST(connection, vi))
{
    c->second = vi;
    return carry(c);
}

WRAP(VipConnectReject, CONNECT_REJECT, connection, LIST(VIP_CONN_HANDLE connection),
     LIST(connection))
{
    return carry(c);
}

WRAP(VipConnectRequest, CONNECT_REQUEST, vi,
     LIST(VIP_VI_HANDLE vi, VIP_NET_ADDRESS *local, VIP_NET_ADDRESS *remote, VIP_ULONG ms,
          VIP_VI_ATTRIBUTES *theirs),
     LIST(vi, local, remote, ms, theirs))
{
    c->number = ms;
    address_goes(c, 0, &c->local, local);
    address_goes(c, 1, &c->remote, remote);
    PLACE(2, theirs);
    if (carry(c) == VIP_SUCCESS)
        BACK(theirs, c->vi);
    return c->code;
}

WRAP(VipDisconnect, DISCONNECT, vi, LIST(VIP_VI_HANDLE vi), LIST(vi)) { return carry(c); }

WRAP(VipConnectPeerRequest, PEER_REQUEST, vi,
     LIST(VIP_VI_HANDLE vi, VIP_NET_ADDRESS *local, VIP_NET_ADDRESS *remote, VIP_ULONG ms),
     LIST(vi, local, remote, ms))
{
    c->number = ms;
    address_goes(c, 0, &c->local, local);
    address_goes(c, 1, &c->remote, remote);
    return carry(c);
}

#define PEER(name, number_)                                                                        \
    WRAP(name, number_, vi, LIST(VIP_VI_HANDLE vi, VIP_VI_ATTRIBUTES *theirs), LIST(vi, theirs))   \
    {                                                                                              \
        PLACE(0, theirs);                                                                          \
        if (carry(c) == VIP_SUCCESS)                                                               \
            BACK(theirs, c->vi);                                                                   \
        return c->code;                                                                            \
    }
PEER(VipConnectPeerDone, PEER_DONE)
PEER(VipConnectPeerWait, PEER_WAIT)

WRAP(VipCreateCQ, CREATE_CQ, nic, LIST(VIP_NIC_HANDLE nic, VIP_ULONG entries, VIP_CQ_HANDLE *cq),
     LIST(nic, entries, cq))
{
    c->number = entries;
    PLACE(0, cq);
    if (carry(c) == VIP_SUCCESS)
        BACK(cq, across(c->made));
    return c->code;
}

WRAP(VipDestroyCQ, DESTROY_CQ, cq, LIST(VIP_CQ_HANDLE cq), LIST(cq)) { return carry(c); }

WRAP(VipResizeCQ, RESIZE_CQ, cq, LIST(VIP_CQ_HANDLE cq, VIP_ULONG entries), LIST(cq, entries))
{
    c->number = entries;
    return carry(c);
}

static VIP_RETURN carry_entry(call_t *c, VIP_VI_HANDLE *vi, VIP_BOOLEAN *is_recv)
{
    PLACE(0, vi);
    PLACE(1, is_recv);
    if (carry(c) == VIP_SUCCESS) {
        BACK(vi, across(c->made));
        BACK(is_recv, c->flags[0]);
    }
    return c->code;
}

WRAP(VipCQDone, CQ_DONE, cq, LIST(VIP_CQ_HANDLE cq, VIP_VI_HANDLE *vi, VIP_BOOLEAN *is_recv),
     LIST(cq, vi, is_recv))
{
    return carry_entry(c, vi, is_recv);
}

WRAP(VipCQWait, CQ_WAIT, cq,
     LIST(VIP_CQ_HANDLE cq, VIP_ULONG ms, VIP_VI_HANDLE *vi, VIP_BOOLEAN *is_recv),
     LIST(cq, ms, vi, is_recv))
{
    c->number = ms;
    return carry_entry(c, vi, is_recv);
}

WRAP(VipCQNotify, CQ_NOTIFY, cq, LIST(VIP_CQ_HANDLE cq, VIP_PVOID context, VIP_CQ_CALLBACK handler),
     LIST(cq, context, handler))
{
    c->notice = (notice_t){{.cq = handler}, context};
    return carry(c);
}

WRAP_NEAR(VipNSInit, nic, LIST(VIP_NIC_HANDLE nic, VIP_PVOID info), LIST(nic, info))
WRAP_NEAR(VipNSGetHostByName, nic,
          LIST(VIP_NIC_HANDLE nic, VIP_CHAR *name, VIP_NET_ADDRESS *address, VIP_ULONG index),
          LIST(nic, name, address, index))
WRAP_NEAR(VipNSGetHostByAddr, nic,
          LIST(VIP_NIC_HANDLE nic, VIP_NET_ADDRESS *address, VIP_CHAR *name, VIP_ULONG *length),
          LIST(nic, address, name, length))
WRAP_NEAR(VipNSShutdown, nic, LIST(VIP_NIC_HANDLE nic), LIST(nic))
