/* NICs: open, close, query, error callback, management. */
#define _GNU_SOURCE
#include "frame.h"

ROW(EARLY, open_nic_gives_a_handle, "VipOpenNic", "VIP_SUCCESS and a handle")
{
    VIP_NIC_HANDLE nic = NULL;
    OK(VipOpenNic(device_url(0), &nic));
    CHECK(nic != NULL);
    OK(VipCloseNic(nic));
}

ROW(EARLY, open_nic_many_times, "VipOpenNic", "the same device many times: other handles")
{
    VIP_NIC_HANDLE nics[8];
    for (int i = 0; i < 8; i++) {
        OK(VipOpenNic(device_url(0), &nics[i]));
        for (int j = 0; j < i; j++)
            CHECK(nics[i] != nics[j]);
    }
    for (int i = 0; i < 8; i++)
        OK(VipCloseNic(nics[i]));
}

ROW(EARLY, open_nic_unknown_name, "VipOpenNic", "no such device: VIP_ERROR_RESOURCE")
{
    VIP_NIC_HANDLE nic;
    GIVES(VipOpenNic("there-is-no-such-device", &nic), VIP_ERROR_RESOURCE);
}

ROW(EARLY, open_nic_malformed_url, "VipOpenNic", "a malformed URL: VIP_INVALID_PARAMETER")
{
    VIP_NIC_HANDLE nic;
    GIVES(VipOpenNic("sim:nothing", &nic), VIP_INVALID_PARAMETER);
    GIVES(VipOpenNic("sim:model?colour=red", &nic), VIP_INVALID_PARAMETER);
}

ROW(EARLY, open_nic_until_none_is_left, "VipOpenNic", "too many: VIP_ERROR_RESOURCE, then again")
{
    VIP_NIC_HANDLE nics[256];
    int count = 0;
    while (count < 256 && VipOpenNic(device_url(0), &nics[count]) == VIP_SUCCESS)
        count++;
    CHECK(count > 8 && count < 256);
    OK(VipCloseNic(nics[--count]));
    OK(VipOpenNic(device_url(0), &nics[count]));
    for (; count >= 0; count--)
        OK(VipCloseNic(nics[count]));
}

ROW(EARLY, close_nic_twice, "VipCloseNic", "a second time: VIP_INVALID_PARAMETER")
{
    VIP_NIC_HANDLE nic;
    OK(VipOpenNic(device_url(0), &nic));
    OK(VipCloseNic(nic));
    GIVES(VipCloseNic(nic), VIP_INVALID_PARAMETER);
}

ROW(EARLY, close_nic_takes_everything_back, "VipCloseNic", "what is left on it is taken back")
{
    for (int i = 0; i < 20; i++) {
        side_t n;
        VIP_CQ_HANDLE cq;
        VIP_VI_HANDLE vi;
        side_open(&n, 0);
        OK(VipCreateCQ(n.nic, 64, &cq));
        for (int j = 0; j < 60; j++)
            vi = vi_create(&n, VIP_SERVICE_RELIABLE_DELIVERY, cq, cq);
        OK(VipPostRecv(vi, one_segment(&n, 0, 0, 16), n.handle));
        side_close(&n);
        GIVES(VipDestroyVi(vi), VIP_INVALID_PARAMETER);
        GIVES(VipDestroyCQ(cq), VIP_INVALID_PARAMETER);
    }
}

ROW_CONNECTED(EARLY, close_nic_while_connected, "VipCloseNic",
              "with connected VIs: the other side is notified")
{
    OK(VipCloseNic(p->a.nic));
    vi_await(p->vb, VIP_STATE_ERROR);
    side_open(&p->a, 0);
}

ROW_NIC(EARLY, query_nic_limits, "VipQueryNic", "limits that programs need")
{
    VIP_NIC_ATTRIBUTES *a = &n->attributes;
    CHECK(a->Name[0] != 0 && memchr(a->Name, 0, sizeof a->Name) != NULL);
    CHECK(a->NicAddressLen > 0 && a->NicAddressLen <= 28 && a->LocalNicAddress != NULL);
    SAME(a->ThreadSafe, VIP_TRUE);
    CHECK(a->MaxDiscriminatorLen >= 16);
    CHECK(a->MaxTransferSize >= 65472);
    CHECK(a->MaxDescriptorsPerQueue >= 200 && a->MaxCQEntries >= 1024);
    CHECK(a->MaxVI >= 64 && a->MaxCQ >= 16 && a->MaxPtags >= 16);
    CHECK(a->MaxRegisterRegions >= 64 && a->MaxRegisterBlockBytes >= 1u << 30);
    CHECK(a->MaxRegisterBytes >= a->MaxRegisterBlockBytes);
    CHECK(a->MaxSegmentsPerDesc >= 16 && a->NativeMTU >= 1024);
}

ROW_NIC(EARLY, query_nic_levels, "VipQueryNic", "all three reliability levels")
{
    SAME(n->attributes.ReliabilityLevelSupport, VIP_SERVICE_UNRELIABLE |
                                                    VIP_SERVICE_RELIABLE_DELIVERY |
                                                    VIP_SERVICE_RELIABLE_RECEPTION);
}

ROW_TWO(EARLY, query_nic_addresses_differ, "VipQueryNic", "nodes have addresses of their own")
{
    SAME(p->a.attributes.NicAddressLen, p->b.attributes.NicAddressLen);
    CHECK(memcmp(p->a.attributes.LocalNicAddress, p->b.attributes.LocalNicAddress,
                 p->a.attributes.NicAddressLen) != 0);
}

ROW_CONNECTED(FUNCTIONAL, error_callback_is_called, "VipErrorCallback",
              "the handler gets NIC, VI, resource and code")
{
    OK(VipDisconnect(p->va));
    errors_await(&p->eb, VIP_ERROR_CONN_LOST);
    CHECK(p->eb.last.NicHandle == p->b.nic && p->eb.last.ViHandle == p->vb);
    CHECK(p->eb.last.CQHandle == NULL && p->eb.last.DescriptorPtr == NULL);
    SAME(p->eb.last.ResourceCode, VIP_RESOURCE_VI);
}

ROW_CONNECTED(FUNCTIONAL, error_callback_once, "VipErrorCallback", "one call for one error")
{
    OK(VipDisconnect(p->va));
    errors_await(&p->eb, VIP_ERROR_CONN_LOST);
    sleep_ms(20);
    SAME(errors_count(&p->eb, VIP_ERROR_CONN_LOST), 1);
    SAME(errors_count(&p->ea, VIP_ERROR_CONN_LOST), 0);
}

ROW_CONNECTED(FUNCTIONAL, error_callback_null, "VipErrorCallback",
              "NULL restores the default handler")
{
    OK(VipErrorCallback(p->b.nic, NULL, NULL));
    OK(VipDisconnect(p->va));
    vi_await(p->vb, VIP_STATE_ERROR);
    sleep_ms(20);
    SAME(errors_count(&p->eb, VIP_ERROR_CONN_LOST), 0);
}

ROW_TWO(FUNCTIONAL, query_management_finds_the_other_node, "VipQuerySystemManagementInfo",
        "VIP_SMI_AUTODISCOVERY gives the nodes that answer")
{
    VIP_AUTODISCOVERY_LIST list;
    memset(&list, 0, sizeof list);
    OK(VipQuerySystemManagementInfo(p->a.nic, VIP_SMI_AUTODISCOVERY, &list));
    SAME(list.NumAdAddrs, 1);
    SAME(list.NumberOfHops, 1);
    VIP_NET_ADDRESS *found = list.ADAddrArray[0];
    SAME(found->HostAddressLen, p->b.attributes.NicAddressLen);
    CHECK(memcmp(found->HostAddress, p->b.attributes.LocalNicAddress, found->HostAddressLen) == 0);
}

ROW_NIC(FUNCTIONAL, query_management_other_kinds, "VipQuerySystemManagementInfo",
        "another InfoType: VIP_INVALID_PARAMETER")
{
    VIP_AUTODISCOVERY_LIST list;
    GIVES(VipQuerySystemManagementInfo(n->nic, 0, &list), VIP_INVALID_PARAMETER);
    GIVES(VipQuerySystemManagementInfo(n->nic, 2, &list), VIP_INVALID_PARAMETER);
    GIVES(VipQuerySystemManagementInfo(n->nic, ~(VIP_ULONG)0, &list), VIP_INVALID_PARAMETER);
}
