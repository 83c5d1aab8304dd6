/* The other process: it does what is carried to it. See carry.h. */
#define _GNU_SOURCE
#include "carry.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int event_socket;

static void send_event(const event_t *event)
{
    /* If the row is over there is nobody to tell. */
    (void)!send(event_socket, event, sizeof *event, MSG_NOSIGNAL);
}

static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    event_t event = {.kind = NOTICE_ERROR, .notice = *(notice_t *)context, .error = *error};
    send_event(&event);
}

static void on_vi(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *d)
{
    event_t event = {.kind = NOTICE_VI, .notice = *(notice_t *)context, .nic = nic, .vi = vi,
                     .descriptor = d};
    free(context);
    send_event(&event);
}

static void on_cq(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN is_recv)
{
    event_t event = {.kind = NOTICE_CQ, .notice = *(notice_t *)context, .nic = nic, .vi = vi,
                     .is_recv = is_recv};
    free(context);
    send_event(&event);
}

/* A copy of the handler that the row has given; a request is served once, so its handler frees it,
 * and that of errors stays as long as the process. */
static notice_t *keep(const call_t *c)
{
    notice_t *notice = malloc(sizeof *notice);
    if (notice == NULL)
        abort();
    *notice = c->notice;
    return notice;
}

/* The place of a result, or NULL as in the row. */
#define RESULT(order, place) (c->wanted & (1u << (order)) ? &(place) : NULL)

static VIP_RETURN do_call(call_t *c)
{
    VIP_DESCRIPTOR **done = RESULT(0, c->descriptor);
    switch (c->function) {
    case OPEN_NIC:
        return VipOpenNic(c->name, RESULT(0, c->made));
    case CLOSE_NIC:
        return VipCloseNic(c->handle);
    case QUERY_NIC:
        c->code = VipQueryNic(c->handle, RESULT(0, c->nic));
        if (c->code == VIP_SUCCESS && c->nic.NicAddressLen <= sizeof c->host)
            memcpy(c->host, c->nic.LocalNicAddress, c->nic.NicAddressLen);
        return c->code;
    case ERROR_CALLBACK:
        if (c->notice.handler.error == NULL)
            return VipErrorCallback(c->handle, c->notice.context, NULL);
        return VipErrorCallback(c->handle, keep(c), on_error);
    case CREATE_PTAG:
        return VipCreatePtag(c->handle, RESULT(0, c->made));
    case DESTROY_PTAG:
        return VipDestroyPtag(c->handle, c->second);
    case REGISTER_MEM:
        return VipRegisterMem(c->handle, c->address, c->number, RESULT(0, c->mem),
                              RESULT(1, c->memory));
    case DEREGISTER_MEM:
        return VipDeregisterMem(c->handle, c->address, c->memory);
    case QUERY_MEM:
        return VipQueryMem(c->handle, c->address, c->memory, RESULT(0, c->mem));
    case SET_MEM_ATTRIBUTES:
        return VipSetMemAttributes(c->handle, c->address, c->memory, RESULT(0, c->mem));
    case CREATE_VI:
        return VipCreateVi(c->handle, RESULT(0, c->vi), c->second, c->third, RESULT(1, c->made));
    case DESTROY_VI:
        return VipDestroyVi(c->handle);
    case QUERY_VI:
        return VipQueryVi(c->handle, RESULT(0, c->state), RESULT(1, c->vi), RESULT(2, c->flags[0]),
                          RESULT(3, c->flags[1]));
    case SET_VI_ATTRIBUTES:
        return VipSetViAttributes(c->handle, RESULT(0, c->vi));
    case SET_VI_EXTENSIONS:
        return VipSetViExtensions(c->handle, RESULT(0, c->extensions));
    case QUERY_VI_EXTENSIONS:
        return VipQueryViExtensions(c->handle, RESULT(0, c->extensions));
    case POST_SEND:
        return VipPostSend(c->handle, c->descriptor, c->memory);
    case SEND_DONE:
        return VipSendDone(c->handle, done);
    case SEND_WAIT:
        return VipSendWait(c->handle, c->number, done);
    case SEND_NOTIFY:
        return VipSendNotify(c->handle, keep(c), c->notice.handler.vi ? on_vi : NULL);
    case POST_RECV:
        return VipPostRecv(c->handle, c->descriptor, c->memory);
    case RECV_DONE:
        return VipRecvDone(c->handle, done);
    case RECV_WAIT:
        return VipRecvWait(c->handle, c->number, done);
    case RECV_NOTIFY:
        return VipRecvNotify(c->handle, keep(c), c->notice.handler.vi ? on_vi : NULL);
    case CONNECT_WAIT:
        return VipConnectWait(c->handle, RESULT(0, c->local.net), c->number,
                              RESULT(1, c->remote.net), RESULT(2, c->vi), RESULT(3, c->made));
    case CONNECT_ACCEPT:
        return VipConnectAccept(c->handle, c->second);
    case CONNECT_REJECT:
        return VipConnectReject(c->handle);
    case CONNECT_REQUEST:
        return VipConnectRequest(c->handle, RESULT(0, c->local.net), RESULT(1, c->remote.net),
                                 c->number, RESULT(2, c->vi));
    case DISCONNECT:
        return VipDisconnect(c->handle);
    case PEER_REQUEST:
        return VipConnectPeerRequest(c->handle, RESULT(0, c->local.net), RESULT(1, c->remote.net),
                                     c->number);
    case PEER_DONE:
        return VipConnectPeerDone(c->handle, RESULT(0, c->vi));
    case PEER_WAIT:
        return VipConnectPeerWait(c->handle, RESULT(0, c->vi));
    case CREATE_CQ:
        return VipCreateCQ(c->handle, c->number, RESULT(0, c->made));
    case DESTROY_CQ:
        return VipDestroyCQ(c->handle);
    case RESIZE_CQ:
        return VipResizeCQ(c->handle, c->number);
    case CQ_DONE:
        return VipCQDone(c->handle, RESULT(0, c->made), RESULT(1, c->flags[0]));
    case CQ_WAIT:
        return VipCQWait(c->handle, c->number, RESULT(0, c->made), RESULT(1, c->flags[0]));
    case CQ_NOTIFY:
        return VipCQNotify(c->handle, keep(c), c->notice.handler.cq ? on_cq : NULL);
    }
    abort();
}

/* Serves one socket after another call: a call that waits keeps no other one waiting. */
static void *serve(void *argument)
{
    int channel = *(const int *)argument;
    call_t call;
    ssize_t got;
    while ((got = recv(channel, &call, sizeof call, 0)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got != sizeof call)
            abort();
        call.code = do_call(&call);
        (void)!send(channel, &call, sizeof call, MSG_NOSIGNAL);
    }
    return NULL;
}

void other_run(const int *channels, int events)
{
    pthread_t threads[CHANNELS];
    char byte;
    event_socket = events;
    for (int i = 0; i < CHANNELS; i++)
        if (pthread_create(&threads[i], NULL, serve, (void *)&channels[i]) != 0)
            abort();
    /* The row sends nothing here; it ends, or closes its end. */
    while (recv(events, &byte, 1, 0) < 0 && errno == EINTR)
        ;
    _exit(0);
}
