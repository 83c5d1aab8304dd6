/* Connections of peers that name each other. */
#define _GNU_SOURCE
#include "frame.h"

#define RR VIP_SERVICE_RELIABLE_RECEPTION

typedef struct {
    VIP_VI_HANDLE va, vb;
    address_t a, b;
} peers_t;

static peers_t make_peers(pair_t *p)
{
    peers_t peers;
    peers.va = vi_create(&p->a, RR, NULL, NULL);
    peers.vb = vi_create(&p->b, RR, NULL, NULL);
    name_address(&peers.a, &p->a, "left");
    name_address(&peers.b, &p->b, "right");
    return peers;
}

static void exchange(pair_t *p, VIP_VI_HANDLE va, VIP_VI_HANDLE vb)
{
    VIP_DESCRIPTOR *done;
    OK(VipPostRecv(vb, one_segment(&p->b, 0, 0, 64), p->b.handle));
    OK(VipPostSend(va, one_segment(&p->a, 0, 0, 12), p->a.handle));
    OK(VipRecvWait(vb, LONG, &done));
    SAME(done->CS.Length, 12);
}

ROW_TWO(FUNCTIONAL, peers_meet, "VipConnectPeerRequest", "both ask, both are connected")
{
    peers_t peers = make_peers(p);
    VIP_VI_ATTRIBUTES theirs;
    OK(VipConnectPeerRequest(peers.va, &peers.a.net, &peers.b.net, LONG));
    OK(VipConnectPeerRequest(peers.vb, &peers.b.net, &peers.a.net, LONG));
    OK(VipConnectPeerWait(peers.va, &theirs));
    SAME(theirs.ReliabilityLevel, RR);
    OK(VipConnectPeerWait(peers.vb, &theirs));
    CHECK(theirs.EnableRdmaWrite);
    exchange(p, peers.va, peers.vb);
}

ROW_TWO(FUNCTIONAL, peers_meet_late, "VipConnectPeerDone",
        "VIP_NOT_DONE until the other one asks, then VIP_SUCCESS")
{
    peers_t peers = make_peers(p);
    VIP_VI_ATTRIBUTES theirs;
    VIP_RETURN code;
    OK(VipConnectPeerRequest(peers.va, &peers.a.net, &peers.b.net, LONG));
    for (int i = 0; i < 20; i++) {
        GIVES(VipConnectPeerDone(peers.va, &theirs), VIP_NOT_DONE);
        sleep_ms(1);
    }
    SAME(vi_state(peers.va), VIP_STATE_CONNECT_PENDING);
    OK(VipConnectPeerRequest(peers.vb, &peers.b.net, &peers.a.net, LONG));
    for (int i = 0; i < LONG && (code = VipConnectPeerDone(peers.va, &theirs)) == VIP_NOT_DONE; i++)
        sleep_ms(1);
    OK(code);
    OK(VipConnectPeerWait(peers.vb, &theirs));
    exchange(p, peers.va, peers.vb);
}

ROW_TWO(FUNCTIONAL, peers_time_out, "VipConnectPeerWait",
        "the other one never asks: VIP_TIMEOUT, VI idle")
{
    peers_t peers = make_peers(p);
    VIP_VI_ATTRIBUTES theirs;
    OK(VipConnectPeerRequest(peers.va, &peers.a.net, &peers.b.net, 50));
    GIVES(VipConnectPeerWait(peers.va, &theirs), VIP_TIMEOUT);
    SAME(vi_state(peers.va), VIP_STATE_IDLE);
}

ROW_TWO(FUNCTIONAL, peer_done_after_disconnect, "VipConnectPeerDone",
        "connected and disconnected before it was asked: VIP_INVALID_STATE")
{
    peers_t peers = make_peers(p);
    VIP_VI_ATTRIBUTES theirs;
    OK(VipConnectPeerRequest(peers.va, &peers.a.net, &peers.b.net, LONG));
    OK(VipConnectPeerRequest(peers.vb, &peers.b.net, &peers.a.net, LONG));
    vi_await(peers.va, VIP_STATE_CONNECTED);
    OK(VipDisconnect(peers.va));
    GIVES(VipConnectPeerDone(peers.va, &theirs), VIP_INVALID_STATE);
    SAME(vi_state(peers.va), VIP_STATE_IDLE);
}

ROW_NIC(FUNCTIONAL, peer_done_without_request, "VipConnectPeerDone",
        "nothing was asked: VIP_INVALID_STATE")
{
    VIP_VI_ATTRIBUTES theirs;
    GIVES(VipConnectPeerDone(vi_create(n, RR, NULL, NULL), &theirs), VIP_INVALID_STATE);
}

ROW_NIC(FUNCTIONAL, peer_wait_without_request, "VipConnectPeerWait",
        "nothing was asked: VIP_INVALID_STATE")
{
    VIP_VI_ATTRIBUTES theirs;
    GIVES(VipConnectPeerWait(vi_create(n, RR, NULL, NULL), &theirs), VIP_INVALID_STATE);
}

ROW_TWO(FUNCTIONAL, peer_request_twice, "VipConnectPeerRequest",
        "a second request of the same VI: VIP_INVALID_STATE")
{
    peers_t peers = make_peers(p);
    OK(VipConnectPeerRequest(peers.va, &peers.a.net, &peers.b.net, LONG));
    GIVES(VipConnectPeerRequest(peers.va, &peers.a.net, &peers.b.net, LONG), VIP_INVALID_STATE);
}

ROW_TWO(FUNCTIONAL, peer_request_connected, "VipConnectPeerRequest",
        "a connected VI: VIP_INVALID_STATE")
{
    peers_t peers = make_peers(p);
    vi_connect(&p->a, peers.va, &p->b, peers.vb);
    GIVES(VipConnectPeerRequest(peers.va, &peers.a.net, &peers.b.net, LONG), VIP_INVALID_STATE);
}

ROW_TWO(FUNCTIONAL, peer_request_timeout_zero, "VipConnectPeerRequest",
        "time-out 0: VIP_INVALID_PARAMETER")
{
    peers_t peers = make_peers(p);
    GIVES(VipConnectPeerRequest(peers.va, &peers.a.net, &peers.b.net, 0), VIP_INVALID_PARAMETER);
}

#define PEER_MISMATCH(row, member, value, code)                                                    \
    ROW_TWO(FUNCTIONAL, peers_with_another_##row, "VipConnectPeerWait",                            \
            "another " #member ": " #code)                                                         \
    {                                                                                              \
        peers_t peers = make_peers(p);                                                             \
        VIP_VI_ATTRIBUTES attributes = vi_attributes(&p->b, RR), theirs;                           \
        attributes.member = value;                                                                 \
        OK(VipSetViAttributes(peers.vb, &attributes));                                             \
        OK(VipConnectPeerRequest(peers.va, &peers.a.net, &peers.b.net, LONG));                     \
        OK(VipConnectPeerRequest(peers.vb, &peers.b.net, &peers.a.net, LONG));                     \
        GIVES(VipConnectPeerWait(peers.va, &theirs), code);                                        \
        GIVES(VipConnectPeerWait(peers.vb, &theirs), code);                                        \
        SAME(vi_state(peers.va), VIP_STATE_IDLE);                                                  \
    }
PEER_MISMATCH(level, ReliabilityLevel, VIP_SERVICE_RELIABLE_DELIVERY, VIP_INVALID_RELIABILITY_LEVEL)
PEER_MISMATCH(mtu, MaxTransferSize, 1000, VIP_INVALID_MTU)
PEER_MISMATCH(qos, QoS, (VIP_QOS)1, VIP_INVALID_QOS)
