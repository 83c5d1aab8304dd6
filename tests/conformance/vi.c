/* VIs: create, destroy, query, change. */
#define _GNU_SOURCE
#include "frame.h"

#define CREATE_GIVES(code) GIVES(VipCreateVi(n->nic, &attributes, NULL, NULL, &vi), code)

ROW_NIC(EARLY, create_vi_is_idle, "VipCreateVi", "a new VI is idle, its queues empty")
{
    VIP_VI_HANDLE vi = vi_create(n, VIP_SERVICE_RELIABLE_RECEPTION, NULL, NULL);
    VIP_VI_STATE state = VIP_STATE_ERROR;
    VIP_VI_ATTRIBUTES found;
    VIP_BOOLEAN send = VIP_FALSE, recv = VIP_FALSE;
    OK(VipQueryVi(vi, &state, &found, &send, &recv));
    SAME(state, VIP_STATE_IDLE);
    CHECK(send && recv);
}

ROW_NIC(EARLY, create_vi_many, "VipCreateVi", "many VIs, each with a handle of its own")
{
    static VIP_VI_HANDLE vis[200];
    for (int i = 0; i < 200; i++) {
        vis[i] = vi_create(n, VIP_SERVICE_UNRELIABLE, NULL, NULL);
        CHECK(i == 0 || vis[i] != vis[i - 1]);
    }
    for (int i = 0; i < 200; i++)
        OK(VipDestroyVi(vis[i]));
}

ROW_NIC(EARLY, create_vi_until_none_is_left, "VipCreateVi",
        "too many VIs: VIP_ERROR_RESOURCE, and again after a destroy")
{
    static VIP_VI_HANDLE vis[1 << 16];
    VIP_VI_ATTRIBUTES attributes = vi_attributes(n, VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_ULONG count = 0;
    VIP_RETURN code = VIP_SUCCESS;
    while (count <= n->attributes.MaxVI && code == VIP_SUCCESS) {
        code = VipCreateVi(n->nic, &attributes, NULL, NULL, &vis[count]);
        count += code == VIP_SUCCESS;
    }
    GIVES(code, VIP_ERROR_RESOURCE);
    SAME(count, n->attributes.MaxVI);
    OK(VipDestroyVi(vis[7]));
    OK(VipCreateVi(n->nic, &attributes, NULL, NULL, &vis[7]));
}

static void level_is_refused(side_t *n, VIP_RELIABILITY_LEVEL level)
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(n, VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_VI_HANDLE vi;
    attributes.ReliabilityLevel = level;
    CREATE_GIVES(VIP_INVALID_RELIABILITY_LEVEL);
}

ROW_NIC(EARLY, create_vi_no_level, "VipCreateVi", "no level: VIP_INVALID_RELIABILITY_LEVEL")
{
    level_is_refused(n, 0);
}

ROW_NIC(EARLY, create_vi_two_levels, "VipCreateVi",
        "two levels at once: VIP_INVALID_RELIABILITY_LEVEL")
{
    level_is_refused(n, VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION);
}

ROW_NIC(EARLY, create_vi_unknown_level, "VipCreateVi",
        "a level that does not exist: VIP_INVALID_RELIABILITY_LEVEL")
{
    level_is_refused(n, 8);
    level_is_refused(n, 0x8000);
}

ROW_NIC(EARLY, create_vi_mtu, "VipCreateVi", "MaxTransferSize 0 or too large: VIP_INVALID_MTU")
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(n, VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_VI_HANDLE vi;
    attributes.MaxTransferSize = 0;
    CREATE_GIVES(VIP_INVALID_MTU);
    attributes.MaxTransferSize = n->attributes.MaxTransferSize + 1;
    CREATE_GIVES(VIP_INVALID_MTU);
    attributes.MaxTransferSize = ~(VIP_ULONG)0;
    CREATE_GIVES(VIP_INVALID_MTU);
    attributes.MaxTransferSize = 1;
    CREATE_GIVES(VIP_SUCCESS);
}

ROW_NIC(EARLY, create_vi_null_ptag, "VipCreateVi", "tag NULL: VIP_INVALID_PTAG")
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(n, VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_VI_HANDLE vi;
    attributes.Ptag = NULL;
    CREATE_GIVES(VIP_INVALID_PTAG);
}

ROW_NIC(EARLY, create_vi_stale_ptag, "VipCreateVi", "a destroyed tag: VIP_INVALID_PTAG")
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(n, VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_VI_HANDLE vi;
    OK(VipCreatePtag(n->nic, &attributes.Ptag));
    OK(VipDestroyPtag(n->nic, attributes.Ptag));
    CREATE_GIVES(VIP_INVALID_PTAG);
}

ROW_NIC(EARLY, create_vi_rdma_read_unreliable, "VipCreateVi",
        "RDMA reads without reliability: VIP_INVALID_RDMAREAD")
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(n, VIP_SERVICE_UNRELIABLE);
    VIP_VI_HANDLE vi;
    attributes.EnableRdmaRead = VIP_TRUE;
    CREATE_GIVES(VIP_INVALID_RDMAREAD);
}

ROW_TWO(EARLY, create_vi_cq_of_another_nic, "VipCreateVi",
        "a CQ of another NIC: VIP_INVALID_PARAMETER")
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(&p->a, VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_VI_HANDLE vi;
    VIP_CQ_HANDLE cq;
    OK(VipCreateCQ(p->b.nic, 16, &cq));
    GIVES(VipCreateVi(p->a.nic, &attributes, cq, NULL, &vi), VIP_INVALID_PARAMETER);
    GIVES(VipCreateVi(p->a.nic, &attributes, NULL, cq, &vi), VIP_INVALID_PARAMETER);
}

ROW_NIC(EARLY, destroy_vi_twice, "VipDestroyVi", "a second time: VIP_INVALID_PARAMETER")
{
    VIP_VI_HANDLE vi = vi_create(n, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    OK(VipDestroyVi(vi));
    GIVES(VipDestroyVi(vi), VIP_INVALID_PARAMETER);
}

ROW_LEVELS(EARLY, destroy_vi_connected, "VipDestroyVi", "connected: VIP_INVALID_STATE")
{
    (void)level;
    GIVES(VipDestroyVi(p->va), VIP_INVALID_STATE);
    OK(VipDisconnect(p->va));
    OK(VipDestroyVi(p->va));
}

ROW_CONNECTED(EARLY, destroy_vi_in_error, "VipDestroyVi", "in the error state: VIP_INVALID_STATE")
{
    OK(VipDisconnect(p->va));
    vi_await(p->vb, VIP_STATE_ERROR);
    GIVES(VipDestroyVi(p->vb), VIP_INVALID_STATE);
    OK(VipDisconnect(p->vb));
    OK(VipDestroyVi(p->vb));
}

ROW_NIC(EARLY, destroy_vi_with_receives, "VipDestroyVi",
        "with posted receives: VIP_ERROR_RESOURCE until they are taken back")
{
    VIP_VI_HANDLE vi = vi_create(n, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_DESCRIPTOR *done;
    OK(VipPostRecv(vi, one_segment(n, 0, 0, 64), n->handle));
    GIVES(VipDestroyVi(vi), VIP_ERROR_RESOURCE);
    OK(VipDisconnect(vi));
    GIVES(VipDestroyVi(vi), VIP_ERROR_RESOURCE);
    GIVES(VipRecvDone(vi, &done), VIP_DESCRIPTOR_ERROR);
    CHECK(done != NULL && (done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR));
    OK(VipDestroyVi(vi));
}

ROW_NIC(EARLY, destroy_vi_with_sends, "VipDestroyVi",
        "with sends not taken back: VIP_ERROR_RESOURCE until they are")
{
    VIP_VI_HANDLE vi = vi_create(n, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_DESCRIPTOR *done;
    OK(VipPostSend(vi, one_segment(n, 0, 0, 64), n->handle));
    GIVES(VipDestroyVi(vi), VIP_ERROR_RESOURCE);
    GIVES(VipSendDone(vi, &done), VIP_DESCRIPTOR_ERROR);
    OK(VipDestroyVi(vi));
}

ROW_NIC(EARLY, query_vi_reports_what_was_given, "VipQueryVi", "the attributes of the creation")
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(n, VIP_SERVICE_RELIABLE_RECEPTION), found;
    VIP_VI_HANDLE vi;
    VIP_VI_STATE state;
    VIP_BOOLEAN send, recv;
    attributes.MaxTransferSize = 12345;
    attributes.QoS = (VIP_QOS)77;
    attributes.EnableRdmaRead = VIP_FALSE;
    OK(VipCreateVi(n->nic, &attributes, NULL, NULL, &vi));
    OK(VipQueryVi(vi, &state, &found, &send, &recv));
    SAME(found.ReliabilityLevel, VIP_SERVICE_RELIABLE_RECEPTION);
    SAME(found.MaxTransferSize, 12345);
    CHECK(found.QoS == (VIP_QOS)77 && found.Ptag == n->tag);
    CHECK(found.EnableRdmaWrite && !found.EnableRdmaRead);
}

ROW_NIC(EARLY, query_vi_queues, "VipQueryVi", "queues are empty until something is posted")
{
    VIP_VI_HANDLE vi = vi_create(n, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_VI_ATTRIBUTES found;
    VIP_VI_STATE state;
    VIP_BOOLEAN send, recv;
    VIP_DESCRIPTOR *done;
    OK(VipPostRecv(vi, one_segment(n, 0, 0, 64), n->handle));
    OK(VipQueryVi(vi, &state, &found, &send, &recv));
    CHECK(send && !recv);
    OK(VipPostSend(vi, one_segment(n, 1, 0, 64), n->handle));
    OK(VipQueryVi(vi, &state, &found, &send, &recv));
    CHECK(!send && !recv);
    GIVES(VipSendDone(vi, &done), VIP_DESCRIPTOR_ERROR);
    OK(VipQueryVi(vi, &state, &found, &send, &recv));
    CHECK(send && !recv);
}

ROW_LEVELS(EARLY, query_vi_connected, "VipQueryVi", "connected on both sides")
{
    (void)level;
    SAME(vi_state(p->va), VIP_STATE_CONNECTED);
    vi_await(p->vb, VIP_STATE_CONNECTED);
}

ROW_NIC(EARLY, set_vi_attributes_changes, "VipSetViAttributes", "what is set can be queried")
{
    VIP_VI_HANDLE vi = vi_create(n, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_VI_ATTRIBUTES attributes = vi_attributes(n, VIP_SERVICE_RELIABLE_RECEPTION), found;
    VIP_VI_STATE state;
    VIP_BOOLEAN send, recv;
    attributes.MaxTransferSize = 999;
    OK(VipCreatePtag(n->nic, &attributes.Ptag));
    OK(VipSetViAttributes(vi, &attributes));
    OK(VipQueryVi(vi, &state, &found, &send, &recv));
    SAME(found.ReliabilityLevel, VIP_SERVICE_RELIABLE_RECEPTION);
    SAME(found.MaxTransferSize, 999);
    CHECK(found.Ptag == attributes.Ptag);
}

#define SET_GIVES(row, member, value, code)                                                        \
    ROW_NIC(EARLY, set_vi_attributes_##row, "VipSetViAttributes", "bad " #member ": " #code)       \
    {                                                                                              \
        VIP_VI_HANDLE vi = vi_create(n, VIP_SERVICE_UNRELIABLE, NULL, NULL);                       \
        VIP_VI_ATTRIBUTES attributes = vi_attributes(n, VIP_SERVICE_UNRELIABLE);                   \
        attributes.member = value;                                                                 \
        GIVES(VipSetViAttributes(vi, &attributes), code);                                          \
    }
SET_GIVES(level, ReliabilityLevel, 3, VIP_INVALID_RELIABILITY_LEVEL)
SET_GIVES(mtu, MaxTransferSize, 0, VIP_INVALID_MTU)
SET_GIVES(ptag, Ptag, NULL, VIP_INVALID_PTAG)
SET_GIVES(rdma_read, EnableRdmaRead, VIP_TRUE, VIP_INVALID_RDMAREAD)

ROW_CONNECTED(EARLY, set_vi_attributes_connected, "VipSetViAttributes",
              "connected, or in error: VIP_INVALID_STATE")
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(&p->a, VIP_SERVICE_RELIABLE_RECEPTION);
    GIVES(VipSetViAttributes(p->va, &attributes), VIP_INVALID_STATE);
    OK(VipDisconnect(p->vb));
    vi_await(p->va, VIP_STATE_ERROR);
    GIVES(VipSetViAttributes(p->va, &attributes), VIP_INVALID_STATE);
}

ROW_TWO(FUNCTIONAL, set_vi_attributes_then_connect, "VipSetViAttributes",
        "a VI that was changed connects with its new level, and keeps its receives")
{
    VIP_VI_HANDLE va = vi_create(&p->a, VIP_SERVICE_RELIABLE_RECEPTION, NULL, NULL);
    VIP_VI_HANDLE vb = vi_create(&p->b, VIP_SERVICE_UNRELIABLE, NULL, NULL);
    VIP_VI_ATTRIBUTES attributes = vi_attributes(&p->b, VIP_SERVICE_RELIABLE_RECEPTION);
    VIP_DESCRIPTOR *done, *posted = one_segment(&p->b, 0, 0, 64);
    OK(VipPostRecv(vb, posted, p->b.handle));
    OK(VipSetViAttributes(vb, &attributes));
    vi_connect(&p->a, va, &p->b, vb);
    OK(VipPostSend(va, one_segment(&p->a, 0, 0, 5), p->a.handle));
    OK(VipRecvWait(vb, LONG, &done));
    CHECK(done == posted && done->CS.Length == 5);
}
