/* Connections, client and server. */
#define _GNU_SOURCE
#include "frame.h"

/* A server that waits for one request and does something with it. */
typedef struct {
    side_t *side;
    VIP_VI_HANDLE vi;
    address_t local, from;
    VIP_VI_ATTRIBUTES theirs;
    VIP_CONN_HANDLE connection;
    VIP_RETURN waited, accepted;
    enum { ACCEPT, REJECT, KEEP } act;
} server_t;

static void server_run(void *argument)
{
    server_t *s = argument;
    s->waited = VipConnectWait(s->side->nic, &s->local.net, LONG, &s->from.net, &s->theirs,
                               &s->connection);
    if (s->waited != VIP_SUCCESS)
        return;
    if (s->act == ACCEPT)
        s->accepted = VipConnectAccept(s->connection, s->vi);
    else if (s->act == REJECT)
        s->accepted = VipConnectReject(s->connection);
}

static thread_t *server_start(server_t *s, side_t *side, const char *service, VIP_VI_HANDLE vi)
{
    s->side = side;
    s->vi = vi;
    name_address(&s->local, side, service);
    return thread_start(server_run, s);
}

/* Asks until somebody waits there. */
static VIP_RETURN request(side_t *side, VIP_VI_HANDLE vi, side_t *other, const char *service,
                          VIP_ULONG ms, VIP_VI_ATTRIBUTES *theirs)
{
    address_t local, remote;
    VIP_RETURN code;
    name_address(&local, side, "client");
    name_address(&remote, other, service);
    do
        code = VipConnectRequest(vi, &local.net, &remote.net, ms, theirs);
    while (code == VIP_NO_MATCH);
    return code;
}

#define RR VIP_SERVICE_RELIABLE_RECEPTION

ROW_TWO(EARLY, connect_notifies_both, "VipConnectRequest",
        "both sides learn the other's attributes, the server the client's address")
{
    static server_t s;
    VIP_VI_ATTRIBUTES attributes = vi_attributes(&p->b, RR), theirs;
    VIP_VI_HANDLE va = vi_create(&p->a, RR, NULL, NULL), vb;
    address_t expected;
    attributes.EnableRdmaRead = VIP_FALSE;
    OK(VipCreateVi(p->b.nic, &attributes, NULL, NULL, &vb));
    thread_t *thread = server_start(&s, &p->b, "both", vb);
    OK(request(&p->a, va, &p->b, "both", LONG, &theirs));
    thread_join(thread);
    SAME(s.accepted, VIP_SUCCESS);
    CHECK(theirs.EnableRdmaWrite && !theirs.EnableRdmaRead);
    SAME(theirs.ReliabilityLevel, RR);
    SAME(theirs.MaxTransferSize, attributes.MaxTransferSize);
    CHECK(s.theirs.EnableRdmaWrite && s.theirs.EnableRdmaRead);
    name_address(&expected, &p->a, "client");
    CHECK(memcmp(&expected, &s.from, 4 + 6 + strlen("client")) == 0);
}

ROW_TWO(EARLY, connect_request_no_match, "VipConnectRequest",
        "nobody waits there: VIP_NO_MATCH, promptly")
{
    VIP_VI_HANDLE va = vi_create(&p->a, RR, NULL, NULL);
    address_t local, remote;
    VIP_VI_ATTRIBUTES theirs;
    name_address(&local, &p->a, "client");
    name_address(&remote, &p->b, "nobody");
    GIVES(VipConnectRequest(va, &local.net, &remote.net, VIP_INFINITE, &theirs), VIP_NO_MATCH);
    SAME(vi_state(va), VIP_STATE_IDLE);
}

ROW_TWO(EARLY, connect_request_rejected, "VipConnectRequest", "rejected: VIP_REJECT, VI idle")
{
    static server_t s = {.act = REJECT};
    VIP_VI_HANDLE va = vi_create(&p->a, RR, NULL, NULL);
    VIP_VI_ATTRIBUTES theirs;
    thread_t *thread = server_start(&s, &p->b, "reject", NULL);
    GIVES(request(&p->a, va, &p->b, "reject", LONG, &theirs), VIP_REJECT);
    thread_join(thread);
    SAME(s.accepted, VIP_SUCCESS);
    SAME(vi_state(va), VIP_STATE_IDLE);
}

ROW_TWO(EARLY, connect_request_times_out, "VipConnectRequest",
        "neither accepted nor rejected: VIP_TIMEOUT, VI idle")
{
    static server_t s = {.act = KEEP};
    VIP_VI_HANDLE va = vi_create(&p->a, RR, NULL, NULL);
    VIP_VI_ATTRIBUTES theirs;
    thread_t *thread = server_start(&s, &p->b, "keep", NULL);
    GIVES(request(&p->a, va, &p->b, "keep", 100, &theirs), VIP_TIMEOUT);
    thread_join(thread);
    SAME(vi_state(va), VIP_STATE_IDLE);
    VIP_VI_HANDLE vb = vi_create(&p->b, RR, NULL, NULL);
    GIVES(VipConnectAccept(s.connection, vb), VIP_TIMEOUT);
    SAME(vi_state(vb), VIP_STATE_IDLE);
}

ROW_TWO(EARLY, connect_request_timeout_zero, "VipConnectRequest",
        "time-out 0: VIP_INVALID_PARAMETER")
{
    VIP_VI_HANDLE va = vi_create(&p->a, RR, NULL, NULL);
    VIP_VI_ATTRIBUTES theirs;
    GIVES(request(&p->a, va, &p->b, "zero", 0, &theirs), VIP_INVALID_PARAMETER);
    SAME(vi_state(va), VIP_STATE_IDLE);
}

ROW_NIC(EARLY, connect_request_not_reachable, "VipConnectRequest",
        "a host that is not on this network: VIP_NOT_REACHABLE")
{
    VIP_VI_HANDLE vi = vi_create(n, RR, NULL, NULL);
    address_t local, remote;
    VIP_VI_ATTRIBUTES theirs;
    name_address(&local, n, "client");
    name_address(&remote, n, "server");
    remote.net.HostAddress[0] ^= 0x55;
    GIVES(VipConnectRequest(vi, &local.net, &remote.net, LONG, &theirs), VIP_NOT_REACHABLE);
    SAME(vi_state(vi), VIP_STATE_IDLE);
}

ROW_NIC(EARLY, connect_request_to_a_dead_host, "VipConnectRequest",
        "no node: VIP_TIMEOUT after the time-out, or VIP_NOT_REACHABLE where that is known at once")
{
    VIP_VI_HANDLE vi = vi_create(n, RR, NULL, NULL);
    address_t local, remote;
    VIP_VI_ATTRIBUTES theirs;
    name_address(&local, n, "client");
    name_address(&remote, n, "server");
    remote.net.HostAddress[n->attributes.NicAddressLen - 1] = 40;
    VIP_RETURN code = VipConnectRequest(vi, &local.net, &remote.net, 100, &theirs);
    CHECK(code == VIP_TIMEOUT || code == VIP_NOT_REACHABLE);
    SAME(vi_state(vi), VIP_STATE_IDLE);
}

#define LONG_ADDRESS(row, member, text)                                                            \
    ROW_NIC(EARLY, connect_request_##row, "VipConnectRequest", text ": VIP_INVALID_PARAMETER")     \
    {                                                                                              \
        VIP_VI_HANDLE vi = vi_create(n, RR, NULL, NULL);                                           \
        address_t local, remote;                                                                   \
        VIP_VI_ATTRIBUTES theirs;                                                                  \
        name_address(&local, n, "client");                                                         \
        name_address(&remote, n, "server");                                                        \
        remote.net.member = 0xffff;                                                                \
        GIVES(VipConnectRequest(vi, &local.net, &remote.net, LONG, &theirs),                       \
              VIP_INVALID_PARAMETER);                                                              \
        name_address(&remote, n, "server");                                                        \
        local.net.member = (VIP_UINT16)(n->attributes.MaxDiscriminatorLen + 1);                    \
        GIVES(VipConnectRequest(vi, &local.net, &remote.net, LONG, &theirs),                       \
              VIP_INVALID_PARAMETER);                                                              \
        SAME(vi_state(vi), VIP_STATE_IDLE);                                                        \
    }
LONG_ADDRESS(long_host, HostAddressLen, "a host address that is too long")
LONG_ADDRESS(long_discriminator, DiscriminatorLen, "a discriminator that is too long")

ROW_CONNECTED(EARLY, connect_request_connected, "VipConnectRequest",
              "connected, or in error: VIP_INVALID_STATE")
{
    VIP_VI_ATTRIBUTES theirs;
    GIVES(request(&p->a, p->va, &p->b, "again", LONG, &theirs), VIP_INVALID_STATE);
    SAME(vi_state(p->va), VIP_STATE_CONNECTED);
    OK(VipDisconnect(p->vb));
    vi_await(p->va, VIP_STATE_ERROR);
    GIVES(request(&p->a, p->va, &p->b, "again", LONG, &theirs), VIP_INVALID_STATE);
}

static void discriminator_row(pair_t *p, unsigned length)
{
    static server_t s;
    unsigned char bytes[256];
    VIP_VI_HANDLE va = vi_create(&p->a, RR, NULL, NULL), vb = vi_create(&p->b, RR, NULL, NULL);
    address_t local, remote;
    VIP_VI_ATTRIBUTES theirs;
    VIP_RETURN code;
    for (unsigned i = 0; i < length; i++)
        bytes[i] = (unsigned char)(i * 31);
    s.side = &p->b;
    s.vi = vb;
    make_address(&s.local, &p->b, bytes, length);
    thread_t *thread = thread_start(server_run, &s);
    make_address(&local, &p->a, bytes, length);
    make_address(&remote, &p->b, bytes, length);
    /* The last byte counts. */
    remote.room[4 + p->b.attributes.NicAddressLen + length - 1] ^= 1;
    GIVES(VipConnectRequest(va, &local.net, &remote.net, LONG, &theirs), VIP_NO_MATCH);
    make_address(&remote, &p->b, bytes, length);
    do
        code = VipConnectRequest(va, &local.net, &remote.net, LONG, &theirs);
    while (code == VIP_NO_MATCH);
    OK(code);
    thread_join(thread);
    SAME(s.from.net.DiscriminatorLen, length);
    CHECK(memcmp(s.from.room + 4 + s.from.net.HostAddressLen, bytes, length) == 0);
}

#define DISCRIMINATOR_ROW(row, length)                                                             \
    ROW_TWO(EARLY, connect_discriminator_##row, "VipConnectRequest",                               \
            "a discriminator of " #row " bytes")                                                   \
    {                                                                                              \
        discriminator_row(p, length);                                                              \
    }
DISCRIMINATOR_ROW(1, 1)
DISCRIMINATOR_ROW(4, 4)
DISCRIMINATOR_ROW(8, 8)
DISCRIMINATOR_ROW(12, 12)
DISCRIMINATOR_ROW(16, 16)
DISCRIMINATOR_ROW(most, p->a.attributes.MaxDiscriminatorLen)

ROW_NIC(EARLY, connect_wait_polls, "VipConnectWait", "time-out 0: VIP_TIMEOUT at once")
{
    address_t local, from;
    VIP_VI_ATTRIBUTES theirs;
    VIP_CONN_HANDLE connection;
    name_address(&local, n, "poll");
    for (int i = 0; i < 50; i++)
        GIVES(VipConnectWait(n->nic, &local.net, 0, &from.net, &theirs, &connection), VIP_TIMEOUT);
}

ROW_NIC(EARLY, connect_wait_times_out, "VipConnectWait", "nobody asks: VIP_TIMEOUT")
{
    address_t local, from;
    VIP_VI_ATTRIBUTES theirs;
    VIP_CONN_HANDLE connection;
    name_address(&local, n, "wait");
    GIVES(VipConnectWait(n->nic, &local.net, 50, &from.net, &theirs, &connection), VIP_TIMEOUT);
    GIVES(VipConnectWait(n->nic, &local.net, 1, &from.net, &theirs, &connection), VIP_TIMEOUT);
}

ROW_NIC(EARLY, connect_wait_long_discriminator, "VipConnectWait",
        "a discriminator that is too long: VIP_INVALID_PARAMETER")
{
    address_t local, from;
    VIP_VI_ATTRIBUTES theirs;
    VIP_CONN_HANDLE connection;
    name_address(&local, n, "wait");
    local.net.DiscriminatorLen = (VIP_UINT16)(n->attributes.MaxDiscriminatorLen + 1);
    GIVES(VipConnectWait(n->nic, &local.net, 0, &from.net, &theirs, &connection),
          VIP_INVALID_PARAMETER);
}

/* A client that asks beside the row. */
typedef struct {
    pair_t *p;
    VIP_VI_HANDLE vi;
    VIP_RETURN code;
} client_t;

static void client_run(void *argument)
{
    client_t *client = argument;
    VIP_VI_ATTRIBUTES theirs;
    client->code = request(&client->p->a, client->vi, &client->p->b, "row", LONG, &theirs);
}

/* Waits for the request of a client and keeps it. */
static thread_t *client_start(pair_t *p, client_t *c, server_t *s)
{
    c->p = p;
    c->vi = vi_create(&p->a, RR, NULL, NULL);
    thread_t *client = thread_start(client_run, c);
    s->act = KEEP;
    thread_t *server = server_start(s, &p->b, "row", NULL);
    thread_join(server);
    SAME(s->waited, VIP_SUCCESS);
    return client;
}

/* Another VI than the client wants, then the right one: the client is not notified of the first. */
static void accept_mismatch(pair_t *p, VIP_VI_ATTRIBUTES attributes, VIP_RETURN code)
{
    static server_t s;
    static client_t c;
    VIP_VI_HANDLE other, good = vi_create(&p->b, RR, NULL, NULL);
    OK(VipCreateVi(p->b.nic, &attributes, NULL, NULL, &other));
    thread_t *client = client_start(p, &c, &s);
    GIVES(VipConnectAccept(s.connection, other), code);
    SAME(vi_state(other), VIP_STATE_IDLE);
    OK(VipConnectAccept(s.connection, good));
    thread_join(client);
    SAME(c.code, VIP_SUCCESS);
}

#define MISMATCH_ROW(row, member, value, code)                                                     \
    ROW_TWO(EARLY, connect_accept_other_##row, "VipConnectAccept",                                 \
            "another " #member ": " #code ", the client is not notified, the right VI is taken")       \
    {                                                                                              \
        VIP_VI_ATTRIBUTES attributes = vi_attributes(&p->b, RR);                                   \
        attributes.member = value;                                                                 \
        accept_mismatch(p, attributes, code);                                                      \
    }
MISMATCH_ROW(level, ReliabilityLevel, VIP_SERVICE_RELIABLE_DELIVERY, VIP_INVALID_RELIABILITY_LEVEL)
MISMATCH_ROW(mtu, MaxTransferSize, 1000, VIP_INVALID_MTU)
MISMATCH_ROW(qos, QoS, (VIP_QOS)1, VIP_INVALID_QOS)

ROW_TWO(EARLY, connect_accept_connected_vi, "VipConnectAccept",
        "a VI that is connected: VIP_INVALID_STATE")
{
    static server_t s;
    static client_t c;
    VIP_VI_HANDLE va = vi_create(&p->a, RR, NULL, NULL), vb = vi_create(&p->b, RR, NULL, NULL);
    vi_connect(&p->a, va, &p->b, vb);
    thread_t *client = client_start(p, &c, &s);
    GIVES(VipConnectAccept(s.connection, vb), VIP_INVALID_STATE);
    SAME(vi_state(vb), VIP_STATE_CONNECTED);
    OK(VipConnectReject(s.connection));
    thread_join(client);
    SAME(c.code, VIP_REJECT);
}

ROW_TWO(EARLY, connect_accept_stale_vi, "VipConnectAccept",
        "a VI that is no good: VIP_INVALID_PARAMETER, the request stays")
{
    static server_t s;
    static client_t c;
    VIP_VI_HANDLE gone = vi_create(&p->b, RR, NULL, NULL);
    OK(VipDestroyVi(gone));
    thread_t *client = client_start(p, &c, &s);
    GIVES(VipConnectAccept(s.connection, gone), VIP_INVALID_PARAMETER);
    GIVES(VipConnectAccept(s.connection, NULL), VIP_INVALID_PARAMETER);
    GIVES(VipConnectAccept(s.connection, c.vi), VIP_INVALID_PARAMETER);
    OK(VipConnectReject(s.connection));
    thread_join(client);
    SAME(c.code, VIP_REJECT);
}

ROW_TWO(EARLY, connect_accept_twice, "VipConnectAccept",
        "the handle is used up: VIP_INVALID_PARAMETER")
{
    static server_t s;
    static client_t c;
    VIP_VI_HANDLE vb = vi_create(&p->b, RR, NULL, NULL), other = vi_create(&p->b, RR, NULL, NULL);
    thread_t *client = client_start(p, &c, &s);
    OK(VipConnectAccept(s.connection, vb));
    thread_join(client);
    GIVES(VipConnectAccept(s.connection, other), VIP_INVALID_PARAMETER);
    GIVES(VipConnectReject(s.connection), VIP_INVALID_PARAMETER);
    SAME(vi_state(vb), VIP_STATE_CONNECTED);
}

ROW_TWO(EARLY, connect_reject_twice, "VipConnectReject",
        "the handle is used up: VIP_INVALID_PARAMETER")
{
    static server_t s;
    static client_t c;
    thread_t *client = client_start(p, &c, &s);
    OK(VipConnectReject(s.connection));
    GIVES(VipConnectReject(s.connection), VIP_INVALID_PARAMETER);
    thread_join(client);
    SAME(c.code, VIP_REJECT);
}

ROW_TWO(EARLY, connect_pending_state, "VipQueryVi",
        "the client's VI is connect-pending until it is answered")
{
    static server_t s;
    static client_t c;
    thread_t *client = client_start(p, &c, &s);
    SAME(vi_state(c.vi), VIP_STATE_CONNECT_PENDING);
    OK(VipConnectReject(s.connection));
    thread_join(client);
    SAME(vi_state(c.vi), VIP_STATE_IDLE);
}

ROW_TWO(EARLY, disconnect_pending, "VipDisconnect",
        "while a connection is being set up: the request is given up, VI idle")
{
    static server_t s;
    static client_t c;
    thread_t *client = client_start(p, &c, &s);
    GIVES(VipDestroyVi(c.vi), VIP_INVALID_STATE);
    OK(VipDisconnect(c.vi));
    thread_join(client);
    SAME(c.code, VIP_INVALID_STATE);
    SAME(vi_state(c.vi), VIP_STATE_IDLE);
}

ROW_TWO(EARLY, connect_request_pending, "VipConnectRequest",
        "a second request of the same VI: VIP_INVALID_STATE")
{
    static server_t s;
    static client_t c;
    VIP_VI_ATTRIBUTES theirs;
    thread_t *client = client_start(p, &c, &s);
    GIVES(request(&p->a, c.vi, &p->b, "row", LONG, &theirs), VIP_INVALID_STATE);
    OK(VipConnectReject(s.connection));
    thread_join(client);
}

ROW_TWO(EARLY, close_nic_rejects_requests, "VipCloseNic",
        "a request that was not answered is rejected")
{
    static server_t s;
    static client_t c;
    thread_t *client = client_start(p, &c, &s);
    OK(VipCloseNic(p->b.nic));
    thread_join(client);
    SAME(c.code, VIP_REJECT);
    side_open(&p->b, 1);
}

ROW_NIC(EARLY, connect_request_to_the_own_node, "VipConnectRequest",
        "nobody waits there: VIP_NO_MATCH; VIP_NOT_REACHABLE if the link has no echo; VI idle")
{
    VIP_VI_HANDLE vi = vi_create(n, RR, NULL, NULL);
    address_t local, remote;
    VIP_VI_ATTRIBUTES theirs;
    name_address(&local, n, "client");
    name_address(&remote, n, "server");
    VIP_RETURN code = VipConnectRequest(vi, &local.net, &remote.net, LONG, &theirs);
    if (code != VIP_NO_MATCH)
        GIVES(code, VIP_NOT_REACHABLE);
    SAME(vi_state(vi), VIP_STATE_IDLE);
}

ROW_NIC(EARLY, connect_within_the_own_node, "VipConnectRequest",
        "client and server on one NIC, if the link has an echo: messages go both ways")
{
    VIP_VI_HANDLE vis[2] = {vi_create(n, RR, NULL, NULL), vi_create(n, RR, NULL, NULL)};
    address_t local, remote;
    VIP_VI_ATTRIBUTES theirs;
    VIP_DESCRIPTOR *done;
    name_address(&local, n, "client");
    name_address(&remote, n, "nobody");
    if (VipConnectRequest(vis[0], &local.net, &remote.net, LONG, &theirs) == VIP_NOT_REACHABLE)
        return;
    vi_connect(n, vis[0], n, vis[1]);
    for (unsigned i = 0; i < 4; i++) {
        unsigned from = i % 2, to = 1 - from, length = 5000 * i;
        unsigned char *out = n->memory + DATA_OFFSET, *in = out + 20000;
        memset(out, (int)(i + 1), length);
        OK(VipPostRecv(vis[to], one_segment(n, 2 * i, 20000, length), n->handle));
        OK(VipPostSend(vis[from], one_segment(n, 2 * i + 1, 0, length), n->handle));
        OK(VipRecvWait(vis[to], LONG, &done));
        SAME(done->CS.Length, length);
        OK(VipSendWait(vis[from], LONG, &done));
        CHECK(memcmp(in, out, length) == 0);
    }
    OK(VipDisconnect(vis[0]));
    vi_await(vis[1], VIP_STATE_ERROR);
}

ROW_LEVELS(EARLY, disconnect_is_idle, "VipDisconnect", "the VI is idle, the other side is notified")
{
    OK(VipDisconnect(p->va));
    SAME(vi_state(p->va), VIP_STATE_IDLE);
    vi_await(p->vb, VIP_STATE_ERROR);
    errors_await(&p->eb, VIP_ERROR_CONN_LOST);
    OK(VipDisconnect(p->vb));
    SAME(vi_state(p->vb), VIP_STATE_IDLE);
    (void)level;
}

ROW_NIC(EARLY, disconnect_idle, "VipDisconnect", "an idle VI: harmless, also twice")
{
    VIP_VI_HANDLE vi = vi_create(n, RR, NULL, NULL);
    OK(VipDisconnect(vi));
    OK(VipDisconnect(vi));
    SAME(vi_state(vi), VIP_STATE_IDLE);
}

ROW_LEVELS(EARLY, disconnect_flushes, "VipDisconnect",
           "posted receives are flushed, in order, and can be taken")
{
    VIP_DESCRIPTOR *done, *posted[5];
    (void)level;
    for (unsigned i = 0; i < 5; i++) {
        posted[i] = one_segment(&p->b, i, 0, 64);
        OK(VipPostRecv(p->vb, posted[i], p->b.handle));
    }
    OK(VipDisconnect(p->vb));
    for (unsigned i = 0; i < 5; i++) {
        GIVES(VipRecvDone(p->vb, &done), VIP_DESCRIPTOR_ERROR);
        CHECK(done == posted[i]);
        SAME(done->CS.Status,
             VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_OP_RECEIVE);
    }
    GIVES(VipRecvDone(p->vb, &done), VIP_DESCRIPTOR_ERROR);
    CHECK(done == NULL);
}

ROW_RELIABLE(EARLY, disconnect_keeps_what_was_delivered, "VipDisconnect",
             "a message that was delivered stays delivered if the sender disconnects at once")
{
    VIP_DESCRIPTOR *done;
    (void)level;
    OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 0, 64), p->b.handle));
    OK(VipPostRecv(p->vb, one_segment(&p->b, 1, 0, 64), p->b.handle));
    OK(VipPostSend(p->va, one_segment(&p->a, 0, 0, 8), p->a.handle));
    OK(VipSendWait(p->va, LONG, &done));
    OK(VipDisconnect(p->va));
    OK(VipRecvWait(p->vb, LONG, &done));
    SAME(done->CS.Length, 8);
    GIVES(VipRecvWait(p->vb, LONG, &done), VIP_DESCRIPTOR_ERROR);
    CHECK(done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
}

ROW_LEVELS(EARLY, disconnect_and_connect_again, "VipDisconnect", "20 connections of the same VIs")
{
    VIP_DESCRIPTOR *done;
    (void)level;
    for (unsigned i = 0; i < 20; i++) {
        OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 0, 64), p->b.handle));
        OK(VipPostSend(p->va, one_segment(&p->a, 0, 0, 8 + i), p->a.handle));
        OK(VipRecvWait(p->vb, LONG, &done));
        SAME(done->CS.Length, 8 + i);
        OK(VipSendWait(p->va, LONG, &done));
        OK(VipDisconnect(p->va));
        OK(VipDisconnect(p->vb));
        vi_connect(&p->a, p->va, &p->b, p->vb);
    }
}

ROW_CONNECTED(EARLY, error_state_flushes_posts, "VipPostSend",
              "in the error state posts are done at once, flushed, on both queues")
{
    VIP_DESCRIPTOR *done;
    OK(VipDisconnect(p->va));
    vi_await(p->vb, VIP_STATE_ERROR);
    OK(VipPostSend(p->vb, one_segment(&p->b, 0, 0, 8), p->b.handle));
    GIVES(VipSendDone(p->vb, &done), VIP_DESCRIPTOR_ERROR);
    CHECK(done != NULL && (done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR));
    OK(VipPostRecv(p->vb, one_segment(&p->b, 0, 0, 8), p->b.handle));
    GIVES(VipRecvDone(p->vb, &done), VIP_DESCRIPTOR_ERROR);
    CHECK(done != NULL && (done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR));
}

ROW_CONNECTED(EARLY, error_state_flushes_queues, "VipRecvDone",
              "the other side disconnects: what is posted is flushed, in order")
{
    VIP_DESCRIPTOR *done, *posted[4];
    for (unsigned i = 0; i < 4; i++) {
        posted[i] = one_segment(&p->b, i, 0, 64);
        OK(VipPostRecv(p->vb, posted[i], p->b.handle));
    }
    OK(VipDisconnect(p->va));
    for (unsigned i = 0; i < 4; i++) {
        GIVES(VipRecvWait(p->vb, LONG, &done), VIP_DESCRIPTOR_ERROR);
        CHECK(done == posted[i] && (done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR));
    }
}
