/* Sizes, offsets and numbers of vipl.h; `libvipl/src/abi.rs` asserts the same ones. */
#define _GNU_SOURCE
#include "frame.h"

#define AT(type, member, offset)                                                                   \
    _Static_assert(offsetof(type, member) == (offset), #type "." #member " is at " #offset)
#define SIZE(type, size) _Static_assert(sizeof(type) == (size), #type " has " #size " bytes")

SIZE(VIP_PVOID, 8);
SIZE(VIP_BOOLEAN, 4);
SIZE(VIP_ULONG, 8);
SIZE(VIP_USHORT, 2);
SIZE(VIP_UINT16, 2);
SIZE(VIP_UINT32, 4);
SIZE(VIP_UINT64, 8);
SIZE(VIP_MEM_HANDLE, 4);
SIZE(VIP_RETURN, 4);
SIZE(VIP_VI_STATE, 4);
SIZE(VIP_PVOID64, 8);
SIZE(VIP_CONTROL_SEGMENT, 32);
AT(VIP_CONTROL_SEGMENT, Next, 0);
AT(VIP_CONTROL_SEGMENT, NextHandle, 8);
AT(VIP_CONTROL_SEGMENT, SegCount, 12);
AT(VIP_CONTROL_SEGMENT, Control, 14);
AT(VIP_CONTROL_SEGMENT, Reserved, 16);
AT(VIP_CONTROL_SEGMENT, ImmediateData, 20);
AT(VIP_CONTROL_SEGMENT, Length, 24);
AT(VIP_CONTROL_SEGMENT, Status, 28);
SIZE(VIP_ADDRESS_SEGMENT, 16);
AT(VIP_ADDRESS_SEGMENT, Handle, 8);
AT(VIP_ADDRESS_SEGMENT, Reserved, 12);
SIZE(VIP_DATA_SEGMENT, 16);
AT(VIP_DATA_SEGMENT, Handle, 8);
AT(VIP_DATA_SEGMENT, Length, 12);
SIZE(VIP_DESCRIPTOR_SEGMENT, 16);
SIZE(VIP_DESCRIPTOR, 64);
AT(VIP_DESCRIPTOR, CS, 0);
AT(VIP_DESCRIPTOR, Control, 0);
AT(VIP_DESCRIPTOR, DS, 32);
AT(VIP_DESCRIPTOR, Data, 32);
AT(VIP_NET_ADDRESS, HostAddressLen, 0);
AT(VIP_NET_ADDRESS, DiscriminatorLen, 2);
AT(VIP_NET_ADDRESS, HostAddress, 4);
SIZE(VIP_NIC_ATTRIBUTES, 200);
AT(VIP_NIC_ATTRIBUTES, HardwareVersion, 64);
AT(VIP_NIC_ATTRIBUTES, NicAddressLen, 80);
AT(VIP_NIC_ATTRIBUTES, LocalNicAddress, 88);
AT(VIP_NIC_ATTRIBUTES, ThreadSafe, 96);
AT(VIP_NIC_ATTRIBUTES, MaxDiscriminatorLen, 100);
AT(VIP_NIC_ATTRIBUTES, MaxRegisterBytes, 104);
AT(VIP_NIC_ATTRIBUTES, MaxPtags, 184);
AT(VIP_NIC_ATTRIBUTES, ReliabilityLevelSupport, 192);
AT(VIP_NIC_ATTRIBUTES, RDMAReadSupport, 194);
SIZE(VIP_VI_ATTRIBUTES, 40);
AT(VIP_VI_ATTRIBUTES, MaxTransferSize, 8);
AT(VIP_VI_ATTRIBUTES, QoS, 16);
AT(VIP_VI_ATTRIBUTES, Ptag, 24);
AT(VIP_VI_ATTRIBUTES, EnableRdmaWrite, 32);
AT(VIP_VI_ATTRIBUTES, EnableRdmaRead, 36);
SIZE(VIP_VI_EXTENSIONS, 16);
AT(VIP_VI_EXTENSIONS, SplitReceive, 4);
AT(VIP_VI_EXTENSIONS, Transfer, 8);
SIZE(VIP_MEM_ATTRIBUTES, 16);
AT(VIP_MEM_ATTRIBUTES, EnableRdmaWrite, 8);
AT(VIP_MEM_ATTRIBUTES, EnableRdmaRead, 12);
SIZE(VIP_ERROR_DESCRIPTOR, 48);
AT(VIP_ERROR_DESCRIPTOR, DescriptorPtr, 24);
AT(VIP_ERROR_DESCRIPTOR, OpCode, 32);
AT(VIP_ERROR_DESCRIPTOR, ResourceCode, 40);
AT(VIP_ERROR_DESCRIPTOR, ErrorCode, 44);
SIZE(VIP_AUTODISCOVERY_LIST, 24);
AT(VIP_AUTODISCOVERY_LIST, ADAddrArray, 8);

_Static_assert(VIP_STATUS_RESERVED == (~(VIP_STATUS_DONE | VIP_STATUS_ERROR_MASK |
                                         VIP_STATUS_OP_MASK | VIP_STATUS_IMMEDIATE) &
                                       0xffffffff),
               "reserved bits of Status are all others");
_Static_assert((VIP_CONTROL_OP_MASK | VIP_CONTROL_IMMEDIATE | VIP_CONTROL_QFENCE |
                VIP_CONTROL_RESERVED) == 0xffff,
               "reserved bits of Control are all others");
_Static_assert(VIP_NO_MATCH == 14 && VIP_NOT_REACHABLE == 15 && VIP_ERROR_NOT_SUPPORTED == 16,
               "return codes");
_Static_assert(VIP_STATE_ERROR == 3 && VIP_ERROR_CATASTROPHIC == 10 && VIP_RESOURCE_DESCRIPTOR == 3,
               "numbers");

#if !defined VIP_NOT_REACHABLE || !defined VIP_ERROR_NOT_SUPPORTED || !defined VIP_NO_MATCH
#error "return codes are macros too"
#endif

ROW(EARLY, layout_of_descriptors, "VIP_DESCRIPTOR",
    "the names of both conventions are the same places")
{
    VIP_DESCRIPTOR d;
    memset(&d, 0, sizeof d);
    d.CS.Status = 0x80001;
    d.DS[0].Local.Length = 7;
    d.DS[1].Remote.Handle = 9;
    SAME(d.Control.Status, 0x80001);
    SAME(d.Data[0].Length, 7);
    d.CS.Next.Address = &d;
    CHECK(d.Control.Next.Descriptor == &d && d.CS.Next.AddressBits == (VIP_UINT64)(size_t)&d);
}
