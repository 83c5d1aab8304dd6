/*
 * vipl.h: the Virtual Interface Provider Library, VIPL 1.0, of Viaduct.
 *
 * Link with -lvipl. Every function of VIPL returns a VIP_RETURN; what each code means for it is in the
 * comment of the function. Time-outs are in milliseconds; VIP_INFINITE never ends.
 *
 * The descriptor has both sets of member names that programs use, in the same storage: CS with
 * DS[i].Local and DS[i].Remote (as Intel's header), and Control with Data[i] (as Giganet's).
 *
 * It compiles as C89 with GNU extensions, C99, C11 and C++.
 */
#ifndef VIPL_H
#define VIPL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#define VIPL_EXTENSION __extension__
#else
#define VIPL_EXTENSION
#endif

/* Scalars */

typedef void *VIP_PVOID;
typedef int VIP_BOOLEAN;
typedef char VIP_CHAR;
typedef unsigned char VIP_UCHAR;
typedef unsigned short VIP_USHORT;
typedef unsigned long VIP_ULONG;
typedef uint8_t VIP_UINT8;
typedef uint16_t VIP_UINT16;
typedef uint32_t VIP_UINT32;
VIPL_EXTENSION typedef uint64_t VIP_UINT64;

#define VIP_TRUE 1
#define VIP_FALSE 0

/* A time-out without end. Any time-out from 0xFFFFFFFF upwards is taken as this one. */
#define VIP_INFINITE (~(VIP_ULONG)0)

/* Handles. None of them is ever NULL or 0, and none is used again soon after it was released:
 * one that is stale, of another kind or made up is answered with VIP_INVALID_PARAMETER. */

typedef VIP_PVOID VIP_NIC_HANDLE;
typedef VIP_PVOID VIP_VI_HANDLE;
typedef VIP_PVOID VIP_CQ_HANDLE;
typedef VIP_PVOID VIP_CONN_HANDLE;
typedef VIP_PVOID VIP_PROTECTION_HANDLE;
typedef VIP_PVOID VIP_EVENT_HANDLE;
typedef VIP_PVOID VIP_QOS;
typedef VIP_UINT32 VIP_MEM_HANDLE;

/* Return codes. They are macros too, for programs that ask with #ifdef which ones there are. */

typedef enum {
    VIP_SUCCESS = 0,
    VIP_NOT_DONE = 1,
    VIP_INVALID_PARAMETER = 2,
    VIP_ERROR_RESOURCE = 3,
    VIP_TIMEOUT = 4,
    VIP_REJECT = 5,
    VIP_INVALID_RELIABILITY_LEVEL = 6,
    VIP_INVALID_MTU = 7,
    VIP_INVALID_QOS = 8,
    VIP_INVALID_PTAG = 9,
    VIP_INVALID_RDMAREAD = 10,
    VIP_DESCRIPTOR_ERROR = 11,
    VIP_INVALID_STATE = 12,
    VIP_ERROR_NAMESERVICE = 13,
    VIP_NO_MATCH = 14,
    VIP_NOT_REACHABLE = 15,
    VIP_ERROR_NOT_SUPPORTED = 16
} VIP_RETURN;

#define VIP_SUCCESS VIP_SUCCESS
#define VIP_NOT_DONE VIP_NOT_DONE
#define VIP_INVALID_PARAMETER VIP_INVALID_PARAMETER
#define VIP_ERROR_RESOURCE VIP_ERROR_RESOURCE
#define VIP_TIMEOUT VIP_TIMEOUT
#define VIP_REJECT VIP_REJECT
#define VIP_INVALID_RELIABILITY_LEVEL VIP_INVALID_RELIABILITY_LEVEL
#define VIP_INVALID_MTU VIP_INVALID_MTU
#define VIP_INVALID_QOS VIP_INVALID_QOS
#define VIP_INVALID_PTAG VIP_INVALID_PTAG
#define VIP_INVALID_RDMAREAD VIP_INVALID_RDMAREAD
#define VIP_DESCRIPTOR_ERROR VIP_DESCRIPTOR_ERROR
#define VIP_INVALID_STATE VIP_INVALID_STATE
#define VIP_ERROR_NAMESERVICE VIP_ERROR_NAMESERVICE
#define VIP_NO_MATCH VIP_NO_MATCH
#define VIP_NOT_REACHABLE VIP_NOT_REACHABLE
#define VIP_ERROR_NOT_SUPPORTED VIP_ERROR_NOT_SUPPORTED

/* Descriptors */

/* Alignment of a descriptor, in bytes. */
#define VIP_DESCRIPTOR_ALIGNMENT 64
/* Data needs none; whole cache lines are moved fastest. */
#define VIP_DATA_ALIGNMENT 64

struct _VIP_DESCRIPTOR;

/* An address: 64 bits wide on every machine. */
typedef union _VIP_PVOID64 {
    VIP_UINT64 AddressBits;
    VIP_PVOID Address;
    struct _VIP_DESCRIPTOR *Descriptor;
} VIP_PVOID64;

typedef struct _VIP_CONTROL_SEGMENT {
    VIP_PVOID64 Next;          /* written by VIPL when a later descriptor is posted */
    VIP_MEM_HANDLE NextHandle; /* written by VIPL */
    VIP_UINT16 SegCount;       /* segments that follow, an address segment included */
    VIP_UINT16 Control;        /* VIP_CONTROL_ */
    VIP_UINT32 Reserved;       /* 0 */
    VIP_UINT32 ImmediateData;
    VIP_UINT32 Length;         /* bytes in all segments; on completion, bytes moved */
    VIP_UINT32 Status;         /* VIP_STATUS_ */
} VIP_CONTROL_SEGMENT;

/* Names the remote buffer of an RDMA; then it is the first segment. */
typedef struct _VIP_ADDRESS_SEGMENT {
    VIP_PVOID64 Data;
    VIP_MEM_HANDLE Handle;
    VIP_UINT32 Reserved; /* 0 */
} VIP_ADDRESS_SEGMENT;

typedef struct _VIP_DATA_SEGMENT {
    VIP_PVOID64 Data;
    VIP_MEM_HANDLE Handle;
    VIP_UINT32 Length;
} VIP_DATA_SEGMENT;

typedef union _VIP_DESCRIPTOR_SEGMENT {
    VIP_ADDRESS_SEGMENT Remote;
    VIP_DATA_SEGMENT Local;
} VIP_DESCRIPTOR_SEGMENT;

/* A descriptor with room for two segments; a longer one simply goes on behind. */
VIPL_EXTENSION typedef struct _VIP_DESCRIPTOR {
    VIPL_EXTENSION union {
        VIP_CONTROL_SEGMENT CS;
        VIP_CONTROL_SEGMENT Control;
    };
    VIPL_EXTENSION union {
        VIP_DESCRIPTOR_SEGMENT DS[2];
        VIP_DATA_SEGMENT Data[1];
    };
} VIP_DESCRIPTOR;

/* Bits of Control */
#define VIP_CONTROL_OP_SENDRECV 0x0000
#define VIP_CONTROL_OP_RDMAWRITE 0x0001
#define VIP_CONTROL_OP_RDMAREAD 0x0002
#define VIP_CONTROL_OP_RESERVED 0x0003
#define VIP_CONTROL_OP_MASK 0x0003
#define VIP_CONTROL_IMMEDIATE 0x0004
#define VIP_CONTROL_QFENCE 0x0008
#define VIP_CONTROL_RESERVED 0xFFF0

/* Bits of Status */
#define VIP_STATUS_DONE 0x00000001
#define VIP_STATUS_FORMAT_ERROR 0x00000002
#define VIP_STATUS_PROTECTION_ERROR 0x00000004
#define VIP_STATUS_LENGTH_ERROR 0x00000008
#define VIP_STATUS_PARTIAL_ERROR 0x00000010
#define VIP_STATUS_DESC_FLUSHED_ERROR 0x00000020
#define VIP_STATUS_TRANSPORT_ERROR 0x00000040
#define VIP_STATUS_RDMA_PROT_ERROR 0x00000080
#define VIP_STATUS_REMOTE_DESC_ERROR 0x00000100
#define VIP_STATUS_ERROR_MASK 0x000001FE
#define VIP_STATUS_OP_SEND 0x00000000
#define VIP_STATUS_OP_RECEIVE 0x00010000
#define VIP_STATUS_OP_RDMA_WRITE 0x00020000
#define VIP_STATUS_OP_REMOTE_RDMA_WRITE 0x00030000
#define VIP_STATUS_OP_RDMA_READ 0x00040000
#define VIP_STATUS_OP_MASK 0x00070000
#define VIP_STATUS_IMMEDIATE 0x00080000
#define VIP_STATUS_RESERVED 0xFFF0FE00

/* Addresses */

/* The discriminator follows the host address without a gap. */
typedef struct _VIP_NET_ADDRESS {
    VIP_UINT16 HostAddressLen;
    VIP_UINT16 DiscriminatorLen;
    VIP_UINT8 HostAddress[1];
} VIP_NET_ADDRESS;

/* Attributes */

typedef VIP_USHORT VIP_RELIABILITY_LEVEL;

#define VIP_SERVICE_UNRELIABLE 0x01
#define VIP_SERVICE_RELIABLE_DELIVERY 0x02
#define VIP_SERVICE_RELIABLE_RECEPTION 0x04

typedef struct _VIP_NIC_ATTRIBUTES {
    VIP_CHAR Name[64];
    VIP_ULONG HardwareVersion;
    VIP_ULONG ProviderVersion;
    VIP_UINT16 NicAddressLen;
    const VIP_UINT8 *LocalNicAddress; /* valid while the NIC is open */
    VIP_BOOLEAN ThreadSafe;
    VIP_UINT16 MaxDiscriminatorLen;
    VIP_ULONG MaxRegisterBytes;
    VIP_ULONG MaxRegisterRegions;
    VIP_ULONG MaxRegisterBlockBytes;
    VIP_ULONG MaxVI;
    VIP_ULONG MaxDescriptorsPerQueue;
    VIP_ULONG MaxSegmentsPerDesc;
    VIP_ULONG MaxCQ; /* one less while VIs of an open NIC have queues without one */
    VIP_ULONG MaxCQEntries;
    VIP_ULONG MaxTransferSize;
    VIP_ULONG NativeMTU;
    VIP_ULONG MaxPtags;
    VIP_RELIABILITY_LEVEL ReliabilityLevelSupport; /* several bits */
    VIP_RELIABILITY_LEVEL RDMAReadSupport;         /* several bits */
} VIP_NIC_ATTRIBUTES;

typedef struct _VIP_VI_ATTRIBUTES {
    VIP_RELIABILITY_LEVEL ReliabilityLevel; /* one bit */
    VIP_ULONG MaxTransferSize;
    VIP_QOS QoS; /* no values are defined; both sides must agree */
    VIP_PROTECTION_HANDLE Ptag;
    VIP_BOOLEAN EnableRdmaWrite;
    VIP_BOOLEAN EnableRdmaRead;
} VIP_VI_ATTRIBUTES;

typedef struct _VIP_MEM_ATTRIBUTES {
    VIP_PROTECTION_HANDLE Ptag;
    VIP_BOOLEAN EnableRdmaWrite;
    VIP_BOOLEAN EnableRdmaRead;
} VIP_MEM_ATTRIBUTES;

typedef enum {
    VIP_STATE_IDLE = 0,
    VIP_STATE_CONNECTED = 1,
    VIP_STATE_CONNECT_PENDING = 2,
    VIP_STATE_ERROR = 3
} VIP_VI_STATE;

/* Asynchronous errors */

typedef enum {
    VIP_ERROR_POST_DESC = 0,
    VIP_ERROR_CONN_LOST = 1,
    VIP_ERROR_RECVQ_EMPTY = 2,
    VIP_ERROR_VI_OVERRUN = 3,
    VIP_ERROR_RDMAW_PROT = 4,
    VIP_ERROR_RDMAW_DATA = 5,
    VIP_ERROR_RDMAW_ABORT = 6,
    VIP_ERROR_RDMAR_PROT = 7,
    VIP_ERROR_COMP_PROT = 8,
    VIP_ERROR_RDMA_TRANSPORT = 9,
    VIP_ERROR_CATASTROPHIC = 10
} VIP_ERROR_CODE;

typedef enum {
    VIP_RESOURCE_NIC = 0,
    VIP_RESOURCE_VI = 1,
    VIP_RESOURCE_CQ = 2,
    VIP_RESOURCE_DESCRIPTOR = 3
} VIP_RESOURCE_CODE;

typedef struct _VIP_ERROR_DESCRIPTOR {
    VIP_NIC_HANDLE NicHandle;
    VIP_VI_HANDLE ViHandle;        /* NULL if it is not about a VI */
    VIP_CQ_HANDLE CQHandle;        /* NULL if it is not about a CQ */
    VIP_DESCRIPTOR *DescriptorPtr; /* NULL if it is not about a descriptor */
    VIP_ULONG OpCode;              /* VIP_STATUS_OP_ of the descriptor */
    VIP_RESOURCE_CODE ResourceCode;
    VIP_ERROR_CODE ErrorCode;
} VIP_ERROR_DESCRIPTOR;

/* Management information */

#define VIP_SMI_AUTODISCOVERY 1

typedef struct _VIP_AUTODISCOVERY_LIST {
    VIP_ULONG NumberOfHops;
    VIP_NET_ADDRESS **ADAddrArray; /* valid until the next query or the close of the NIC */
    VIP_ULONG NumAdAddrs;
} VIP_AUTODISCOVERY_LIST;

/* Handlers. They run on a thread of the library, or on one that is inside a VIPL function, and
 * must not call functions that wait. Once VipErrorCallback has put another one in its place, or
 * VipDestroyVi, VipDestroyCQ or VipCloseNic have taken away what it is about, a handler does not run
 * any more: they wait for one that does in another thread, though not for ever. */

typedef void (*VIP_VI_CALLBACK)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                VIP_DESCRIPTOR *DescriptorPtr);
typedef void (*VIP_CQ_CALLBACK)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                VIP_BOOLEAN RecvQueue);
typedef void (*VIP_ERROR_HANDLER)(VIP_PVOID Context, VIP_ERROR_DESCRIPTOR *ErrorDesc);

/* NICs */

/* Opens a NIC. DeviceName is a URL of a device (shm:, sim:model, sim:rtl, vfio-user:PATH),
 * or "" or a legacy name (/dev/clanvi0, /dev/via_eth0, VINIC0, nic0) for the default device: the one
 * that the environment variable VIADUCT_DEVICE names (a URL, or a folder of sockets), else the first
 * NIC of a simulator in the run-time directory that no other program uses, else, where no simulator
 * runs, shm:. The same device may be opened many times; each time gives another NIC.
 * VIP_SUCCESS, VIP_INVALID_PARAMETER (NULL, a URL that is malformed), VIP_ERROR_RESOURCE (no such
 * device; a line on standard error says why). */
VIP_RETURN VipOpenNic(const VIP_CHAR *DeviceName, VIP_NIC_HANDLE *NicHandle);

/* Closes a NIC and takes back whatever the program has left on it. Calls that wait in other threads
 * end with VIP_INVALID_PARAMETER; nothing touches the program's memory afterwards.
 * VIP_SUCCESS, VIP_INVALID_PARAMETER. */
VIP_RETURN VipCloseNic(VIP_NIC_HANDLE NicHandle);

/* VIP_SUCCESS, VIP_INVALID_PARAMETER. */
VIP_RETURN VipQueryNic(VIP_NIC_HANDLE NicHandle, VIP_NIC_ATTRIBUTES *NicAttribs);

/* Sets the handler of asynchronous errors; NULL restores the default one, which writes a line to
 * standard error. VIP_SUCCESS, VIP_INVALID_PARAMETER. */
VIP_RETURN VipErrorCallback(VIP_NIC_HANDLE NicHandle, VIP_PVOID Context, VIP_ERROR_HANDLER Handler);

/* VIP_SMI_AUTODISCOVERY: SysManInfo is a VIP_AUTODISCOVERY_LIST.
 * VIP_SUCCESS, VIP_INVALID_PARAMETER (another InfoType), VIP_ERROR_RESOURCE. */
VIP_RETURN VipQuerySystemManagementInfo(VIP_NIC_HANDLE NicHandle, VIP_ULONG InfoType,
                                        VIP_PVOID SysManInfo);

/* Memory */

/* VIP_SUCCESS, VIP_INVALID_PARAMETER, VIP_ERROR_RESOURCE. */
VIP_RETURN VipCreatePtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE *Ptag);

/* VIP_SUCCESS, VIP_INVALID_PARAMETER, VIP_ERROR_RESOURCE (in use). */
VIP_RETURN VipDestroyPtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE Ptag);

/* Registers Length bytes of any memory of the program, which must stay there until it is
 * deregistered. The same memory may be registered many times.
 * VIP_SUCCESS, VIP_INVALID_PARAMETER (Length 0, or 4 GiB and more; memory that wraps around),
 * VIP_INVALID_PTAG, VIP_INVALID_RDMAREAD, VIP_ERROR_RESOURCE. */
VIP_RETURN VipRegisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_ULONG Length,
                          VIP_MEM_ATTRIBUTES *MemAttribs, VIP_MEM_HANDLE *MemHandle);

/* VirtualAddress is that of the registration. Afterwards the NIC does not touch the memory.
 * Descriptors in it that are done are to be taken back before the memory is given away.
 * VIP_SUCCESS, VIP_INVALID_PARAMETER, VIP_ERROR_RESOURCE (a descriptor in it is posted and not done:
 * VipDisconnect completes it). */
VIP_RETURN VipDeregisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress,
                            VIP_MEM_HANDLE MemHandle);

/* Address is any in the region. VIP_SUCCESS, VIP_INVALID_PARAMETER. */
VIP_RETURN VipQueryMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE MemHandle,
                       VIP_MEM_ATTRIBUTES *MemAttribs);

/* Address is any in the region. VIP_SUCCESS, VIP_INVALID_PARAMETER, VIP_INVALID_PTAG,
 * VIP_INVALID_RDMAREAD, VIP_ERROR_RESOURCE. */
VIP_RETURN VipSetMemAttributes(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address,
                               VIP_MEM_HANDLE MemHandle, VIP_MEM_ATTRIBUTES *MemAttribs);

/* VIs */

/* Creates a VI, idle. A completion queue for each work queue, or NULL.
 * VIP_SUCCESS, VIP_INVALID_PARAMETER, VIP_INVALID_RELIABILITY_LEVEL (not exactly one bit that the
 * NIC has), VIP_INVALID_MTU (0 or above MaxTransferSize), VIP_INVALID_PTAG, VIP_INVALID_RDMAREAD,
 * VIP_ERROR_RESOURCE. */
VIP_RETURN VipCreateVi(VIP_NIC_HANDLE NicHandle, VIP_VI_ATTRIBUTES *ViAttribs,
                       VIP_CQ_HANDLE SendCQHandle, VIP_CQ_HANDLE RecvCQHandle,
                       VIP_VI_HANDLE *ViHandle);

/* VIP_SUCCESS, VIP_INVALID_PARAMETER, VIP_INVALID_STATE (not idle), VIP_ERROR_RESOURCE (posted
 * descriptors that were not taken back). */
VIP_RETURN VipDestroyVi(VIP_VI_HANDLE ViHandle);

/* VIP_SUCCESS, VIP_INVALID_PARAMETER. */
VIP_RETURN VipQueryVi(VIP_VI_HANDLE ViHandle, VIP_VI_STATE *State, VIP_VI_ATTRIBUTES *ViAttribs,
                      VIP_BOOLEAN *SendQueueEmpty, VIP_BOOLEAN *RecvQueueEmpty);

/* As VipCreateVi, and VIP_INVALID_STATE unless the VI is idle. */
VIP_RETURN VipSetViAttributes(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *ViAttribs);

/* Work queues */

/* Posts a descriptor; MemHandle is of the region that holds it. Unless the VI is connected it
 * completes at once, flushed.
 * VIP_SUCCESS, VIP_INVALID_PARAMETER (not aligned to 64 bytes, not in that region),
 * VIP_ERROR_RESOURCE (MaxDescriptorsPerQueue are posted). */
VIP_RETURN VipPostSend(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *DescriptorPtr,
                       VIP_MEM_HANDLE MemHandle);

/* Takes the oldest descriptor back if it is done; never waits.
 * VIP_SUCCESS; VIP_NOT_DONE; VIP_DESCRIPTOR_ERROR with the descriptor, which ended in error, or
 * with NULL: nothing is posted; VIP_INVALID_PARAMETER. */
VIP_RETURN VipSendDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR **DescriptorPtr);

/* As VipSendDone, but waits: VIP_TIMEOUT instead of VIP_NOT_DONE. */
VIP_RETURN VipSendWait(VIP_VI_HANDLE ViHandle, VIP_ULONG TimeOut, VIP_DESCRIPTOR **DescriptorPtr);

/* Calls the handler once, when the next descriptor is done, with that descriptor, which is then
 * taken back. VIP_SUCCESS, VIP_INVALID_PARAMETER, VIP_ERROR_RESOURCE. */
VIP_RETURN VipSendNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_VI_CALLBACK Handler);

/* As VipPostSend, but an idle VI keeps the descriptor for its next connection. */
VIP_RETURN VipPostRecv(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *DescriptorPtr,
                       VIP_MEM_HANDLE MemHandle);

/* As VipSendDone. */
VIP_RETURN VipRecvDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR **DescriptorPtr);

/* As VipSendWait. */
VIP_RETURN VipRecvWait(VIP_VI_HANDLE ViHandle, VIP_ULONG TimeOut, VIP_DESCRIPTOR **DescriptorPtr);

/* As VipSendNotify. */
VIP_RETURN VipRecvNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_VI_CALLBACK Handler);

/* Connections */

/* Waits for a request to LocalAddr; 0 looks once. RemoteAddr must have room for an address of
 * NicAddressLen and MaxDiscriminatorLen bytes.
 * Several may wait at one address: each request goes to one of them. It stands for as long as its
 * sender waits.
 * VIP_SUCCESS, VIP_TIMEOUT, VIP_INVALID_PARAMETER, VIP_ERROR_RESOURCE. */
VIP_RETURN VipConnectWait(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS *LocalAddr, VIP_ULONG TimeOut,
                          VIP_NET_ADDRESS *RemoteAddr, VIP_VI_ATTRIBUTES *RemoteViAttribs,
                          VIP_CONN_HANDLE *ConnHandle);

/* Accepts with an idle VI. If the attributes do not match, the other side is not notified, and the
 * request may be accepted with another VI, or rejected.
 * VIP_SUCCESS, VIP_INVALID_PARAMETER, VIP_INVALID_RELIABILITY_LEVEL, VIP_INVALID_MTU,
 * VIP_INVALID_QOS, VIP_INVALID_STATE (the VI is not idle, or VipDisconnect has ended it),
 * VIP_TIMEOUT (the other side has ended), VIP_ERROR_RESOURCE. ConnHandle is not valid any more if the
 * acceptance had been sent. */
VIP_RETURN VipConnectAccept(VIP_CONN_HANDLE ConnHandle, VIP_VI_HANDLE ViHandle);

/* VIP_SUCCESS, VIP_INVALID_PARAMETER. */
VIP_RETURN VipConnectReject(VIP_CONN_HANDLE ConnHandle);

/* Asks whoever waits at RemoteAddr; they learn LocalAddr.
 * VIP_SUCCESS, VIP_TIMEOUT, VIP_REJECT, VIP_NO_MATCH (nobody waits there; at once),
 * VIP_NOT_REACHABLE (no address of this network; the own one, if the link does not bring back what a
 * node sends to itself), VIP_INVALID_STATE (not idle), VIP_INVALID_PARAMETER (also a time-out of 0),
 * VIP_ERROR_RESOURCE. */
VIP_RETURN VipConnectRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS *LocalAddr,
                             VIP_NET_ADDRESS *RemoteAddr, VIP_ULONG TimeOut,
                             VIP_VI_ATTRIBUTES *RemoteViAttribs);

/* Disconnects: what is posted completes as flushed, in order, and is still to be taken back; then
 * the VI is idle. A connection that is being set up is given up. Harmless on an idle VI.
 * VIP_SUCCESS, VIP_INVALID_PARAMETER, VIP_ERROR_RESOURCE, VIP_INVALID_STATE (another thread connects
 * it again and again). */
VIP_RETURN VipDisconnect(VIP_VI_HANDLE ViHandle);

/* Asks for a connection with a VI whose owner does the same; both sides name each other. It does
 * not wait; the time-out is that of the request.
 * VIP_SUCCESS, VIP_INVALID_PARAMETER, VIP_INVALID_STATE, VIP_NOT_REACHABLE, VIP_ERROR_RESOURCE. */
VIP_RETURN VipConnectPeerRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS *LocalAddr,
                                 VIP_NET_ADDRESS *RemoteAddr, VIP_ULONG TimeOut);

/* VIP_SUCCESS, VIP_NOT_DONE, VIP_TIMEOUT, VIP_INVALID_RELIABILITY_LEVEL, VIP_INVALID_MTU,
 * VIP_INVALID_QOS (the peer's VI has another one), VIP_REJECT (refused for a reason that is not known
 * here), VIP_NOT_REACHABLE, VIP_INVALID_STATE (nothing was asked, or VipDisconnect has ended it),
 * VIP_INVALID_PARAMETER, VIP_ERROR_RESOURCE. */
VIP_RETURN VipConnectPeerDone(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *RemoteViAttribs);

/* As VipConnectPeerDone, but waits. */
VIP_RETURN VipConnectPeerWait(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *RemoteViAttribs);

/* Completion queues */

/* VIP_SUCCESS, VIP_INVALID_PARAMETER (0 entries or above MaxCQEntries), VIP_ERROR_RESOURCE. */
VIP_RETURN VipCreateCQ(VIP_NIC_HANDLE NicHandle, VIP_ULONG EntryCount, VIP_CQ_HANDLE *CQHandle);

/* VIP_SUCCESS, VIP_INVALID_PARAMETER, VIP_ERROR_RESOURCE (a VI uses it). */
VIP_RETURN VipDestroyCQ(VIP_CQ_HANDLE CQHandle);

/* VIP_SUCCESS, VIP_INVALID_PARAMETER, VIP_ERROR_RESOURCE. */
VIP_RETURN VipResizeCQ(VIP_CQ_HANDLE CQHandle, VIP_ULONG EntryCount);

/* Reports whose descriptor is done; take it with VipSendDone or VipRecvDone, one for each entry.
 * VIP_SUCCESS, VIP_NOT_DONE, VIP_INVALID_PARAMETER. */
VIP_RETURN VipCQDone(VIP_CQ_HANDLE CQHandle, VIP_VI_HANDLE *ViHandle, VIP_BOOLEAN *RecvQueue);

/* As VipCQDone, but waits: VIP_TIMEOUT instead of VIP_NOT_DONE. */
VIP_RETURN VipCQWait(VIP_CQ_HANDLE CQHandle, VIP_ULONG TimeOut, VIP_VI_HANDLE *ViHandle,
                     VIP_BOOLEAN *RecvQueue);

/* Calls the handler once, with the next entry, which is then taken.
 * VIP_SUCCESS, VIP_INVALID_PARAMETER, VIP_ERROR_RESOURCE. */
VIP_RETURN VipCQNotify(VIP_CQ_HANDLE CQHandle, VIP_PVOID Context, VIP_CQ_CALLBACK Handler);

/* Names */

/* NSInitInfo is NULL, or the path of a hosts file. VIP_SUCCESS, VIP_INVALID_PARAMETER,
 * VIP_ERROR_NAMESERVICE (the file cannot be read; a line on standard error says why). */
VIP_RETURN VipNSInit(VIP_NIC_HANDLE NicHandle, VIP_PVOID NSInitInfo);

/* The address of a host: HostAddressLen and HostAddress are set, and DiscriminatorLen to 0.
 * HostAddressLen says how many bytes there is room for; 0 is taken as enough. NameIndex counts
 * from 0 through the addresses of a host.
 * VIP_SUCCESS, VIP_INVALID_PARAMETER (also too little room), VIP_ERROR_NAMESERVICE. */
VIP_RETURN VipNSGetHostByName(VIP_NIC_HANDLE NicHandle, VIP_CHAR *Name, VIP_NET_ADDRESS *Address,
                              VIP_ULONG NameIndex);

/* The name of a host, with a 0 behind it. NameLen is the room in Name, and then the length with
 * the 0; with too little room it says how much is needed.
 * VIP_SUCCESS, VIP_INVALID_PARAMETER, VIP_ERROR_NAMESERVICE. */
VIP_RETURN VipNSGetHostByAddr(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS *Address, VIP_CHAR *Name,
                              VIP_ULONG *NameLen);

/* VIP_SUCCESS, VIP_INVALID_PARAMETER. */
VIP_RETURN VipNSShutdown(VIP_NIC_HANDLE NicHandle);

/* Names of codes: an extension of this library, for messages. They take any number, also one that
 * is no code, and return a string of the library, which stays and is not to be freed. */

#define VIPL_HAS_NAMES 1

/* The name of a return code: "VIP_SUCCESS". */
const VIP_CHAR *VipReturnName(VIP_RETURN Code);

/* The name of the code of an asynchronous error: "VIP_ERROR_CONN_LOST". */
const VIP_CHAR *VipErrorName(VIP_ERROR_CODE Code);

/* How a descriptor ended, by the Status of its control segment: the name of its error,
 * "VIP_STATUS_LENGTH_ERROR", with " | VIP_STATUS_PARTIAL_ERROR" behind it if part of the message was
 * moved; "VIP_STATUS_DONE" without an error; "(not done)". */
const VIP_CHAR *VipStatusName(VIP_UINT32 Status);

/* What a VI does beyond the specification: an extension of this library, after "VIA over the CLAN
 * Network", 3.5 and 3.7. Devices in shared memory have it, and hardware has not. */

#define VIPL_HAS_EXTENSIONS 1

/* How the data of sends is moved. */
#define VIP_TRANSFER_DYNAMIC 0 /* as is best for each */
#define VIP_TRANSFER_PIO 1     /* by stores; a long send goes on while both programs look at it */
#define VIP_TRANSFER_DMA 2     /* by copies straight into the receiver's buffers */

/* In the Status of a receive: the message continues in the next receive. */
#define VIP_STATUS_CONTINUED 0x00100000

typedef struct _VIP_VI_EXTENSIONS {
    /* Sends wait until the peer has posted a receive, instead of being lost. */
    VIP_BOOLEAN DeferSend;
    /* A message that is longer than the oldest receive continues in the next ones, and all but the
     * last have VIP_STATUS_CONTINUED; immediate data is in the last. Without enough receives it is as
     * a message without one. */
    VIP_BOOLEAN SplitReceive;
    VIP_ULONG Transfer; /* VIP_TRANSFER_ */
} VIP_VI_EXTENSIONS;

/* Sets the extensions of an idle VI, which hold from its next connection on. A new VI has none.
 * VIP_SUCCESS, VIP_INVALID_PARAMETER (also an unknown Transfer), VIP_INVALID_STATE (not idle),
 * VIP_ERROR_NOT_SUPPORTED (the device has none), VIP_ERROR_RESOURCE. */
VIP_RETURN VipSetViExtensions(VIP_VI_HANDLE ViHandle, VIP_VI_EXTENSIONS *Extensions);

/* VIP_SUCCESS, VIP_INVALID_PARAMETER. */
VIP_RETURN VipQueryViExtensions(VIP_VI_HANDLE ViHandle, VIP_VI_EXTENSIONS *Extensions);

#ifdef __cplusplus
}
#endif

#endif /* VIPL_H */
