/* The name service. */
#define _GNU_SOURCE
#include "frame.h"

#include <stdlib.h>
#include <unistd.h>

/* A hosts file with this text; its name is good until the next call. */
static char *hosts_file(const char *text)
{
    static char name[] = "conformance-hosts-XXXXXX", place[256];
    const char *folder = getenv("TMPDIR");
    snprintf(place, sizeof place, "%s/%s", folder ? folder : P_tmpdir, name);
    int file = mkstemp(place);
    CHECK(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
    return place;
}

ROW_NIC(EARLY, ns_without_init, "VipNSGetHostByName", "before VipNSInit: VIP_ERROR_NAMESERVICE")
{
    address_t address;
    char name[64];
    VIP_ULONG length = sizeof name;
    memset(&address, 0, sizeof address);
    GIVES(VipNSGetHostByName(n->nic, "node0", &address.net, 0), VIP_ERROR_NAMESERVICE);
    name_address(&address, n, "");
    GIVES(VipNSGetHostByAddr(n->nic, &address.net, name, &length), VIP_ERROR_NAMESERVICE);
}

ROW_TWO(EARLY, ns_node_names, "VipNSGetHostByName", "node names need no file")
{
    address_t address;
    OK(VipNSInit(p->a.nic, NULL));
    memset(&address, 0, sizeof address);
    OK(VipNSGetHostByName(p->a.nic, "node1", &address.net, 0));
    SAME(address.net.HostAddressLen, p->b.attributes.NicAddressLen);
    SAME(address.net.DiscriminatorLen, 0);
    CHECK(memcmp(address.net.HostAddress, p->b.attributes.LocalNicAddress,
                 address.net.HostAddressLen) == 0);
}

ROW_NIC(EARLY, ns_room_in_the_address, "VipNSGetHostByName",
        "HostAddressLen 0 or enough is taken, too little: VIP_INVALID_PARAMETER")
{
    address_t address;
    OK(VipNSInit(n->nic, NULL));
    memset(&address, 0, sizeof address);
    address.net.HostAddressLen = n->attributes.NicAddressLen;
    OK(VipNSGetHostByName(n->nic, "node0", &address.net, 0));
    address.net.HostAddressLen = 2;
    GIVES(VipNSGetHostByName(n->nic, "node0", &address.net, 0), VIP_INVALID_PARAMETER);
}

ROW_NIC(EARLY, ns_unknown_name, "VipNSGetHostByName", "no such host: VIP_ERROR_NAMESERVICE")
{
    address_t address;
    OK(VipNSInit(n->nic, NULL));
    memset(&address, 0, sizeof address);
    GIVES(VipNSGetHostByName(n->nic, "no-such-host", &address.net, 0), VIP_ERROR_NAMESERVICE);
}

ROW_NIC(EARLY, ns_index_beyond_the_last, "VipNSGetHostByName",
        "a NameIndex beyond the last: VIP_ERROR_NAMESERVICE")
{
    address_t address;
    OK(VipNSInit(n->nic, NULL));
    memset(&address, 0, sizeof address);
    GIVES(VipNSGetHostByName(n->nic, "node0", &address.net, 1), VIP_ERROR_NAMESERVICE);
    GIVES(VipNSGetHostByName(n->nic, "node0", &address.net, ~(VIP_ULONG)0), VIP_ERROR_NAMESERVICE);
}

ROW_NIC(EARLY, ns_name_of_an_address, "VipNSGetHostByAddr", "the name, and its length with the 0")
{
    address_t address, found;
    char name[64];
    VIP_ULONG length = sizeof name;
    OK(VipNSInit(n->nic, NULL));
    name_address(&address, n, "");
    OK(VipNSGetHostByAddr(n->nic, &address.net, name, &length));
    SAME(length, strlen(name) + 1);
    memset(&found, 0, sizeof found);
    OK(VipNSGetHostByName(n->nic, name, &found.net, 0));
    CHECK(memcmp(found.net.HostAddress, address.net.HostAddress, address.net.HostAddressLen) == 0);
}

ROW_NIC(EARLY, ns_name_without_room, "VipNSGetHostByAddr",
        "too little room: VIP_INVALID_PARAMETER, and NameLen says how much is needed")
{
    address_t address;
    char name[64] = "untouched";
    VIP_ULONG length = 1;
    OK(VipNSInit(n->nic, NULL));
    name_address(&address, n, "");
    GIVES(VipNSGetHostByAddr(n->nic, &address.net, name, &length), VIP_INVALID_PARAMETER);
    CHECK(length > 1 && strcmp(name, "untouched") == 0);
    OK(VipNSGetHostByAddr(n->nic, &address.net, name, &length));
    SAME(length, strlen(name) + 1);
}

ROW_NIC(EARLY, ns_hosts_file, "VipNSInit", "a hosts file: its names are known, several of a line")
{
    address_t address;
    char *file = hosts_file("# hosts of a test\n1 left east\n0 right\n");
    VIP_RETURN code = VipNSInit(n->nic, file);
    unlink(file);
    OK(code);
    memset(&address, 0, sizeof address);
    OK(VipNSGetHostByName(n->nic, "east", &address.net, 0));
    VIP_UINT16 length = n->attributes.NicAddressLen;
    CHECK(memcmp(address.net.HostAddress, n->attributes.LocalNicAddress, length) != 0);
    address.net.HostAddressLen = 0;
    OK(VipNSGetHostByName(n->nic, "right", &address.net, 0));
    CHECK(memcmp(address.net.HostAddress, n->attributes.LocalNicAddress, length) == 0);
}

ROW_NIC(EARLY, ns_no_hosts_file, "VipNSInit", "a file that is not there: VIP_ERROR_NAMESERVICE")
{
    GIVES(VipNSInit(n->nic, (VIP_PVOID) "there/is/no/such/file"), VIP_ERROR_NAMESERVICE);
}

ROW_NIC(EARLY, ns_malformed_hosts_file, "VipNSInit", "a malformed file: VIP_ERROR_NAMESERVICE")
{
    char *file = hosts_file("nothing-but-a-word\n");
    VIP_RETURN code = VipNSInit(n->nic, file);
    unlink(file);
    GIVES(code, VIP_ERROR_NAMESERVICE);
}

ROW_NIC(EARLY, ns_after_shutdown, "VipNSShutdown", "afterwards: VIP_ERROR_NAMESERVICE, until again")
{
    address_t address;
    memset(&address, 0, sizeof address);
    OK(VipNSInit(n->nic, NULL));
    OK(VipNSShutdown(n->nic));
    GIVES(VipNSGetHostByName(n->nic, "node0", &address.net, 0), VIP_ERROR_NAMESERVICE);
    OK(VipNSInit(n->nic, NULL));
    OK(VipNSGetHostByName(n->nic, "node0", &address.net, 0));
}

/* Names of codes: an extension. */

static int is(const char *name, const char *expected) { return strcmp(name, expected) == 0; }

ROW(EARLY, name_of_return_codes, "VipReturnName",
    "the name of each code; of any other number that it is none")
{
    CHECK(is(VipReturnName(VIP_SUCCESS), "VIP_SUCCESS"));
    CHECK(is(VipReturnName(VIP_INVALID_RDMAREAD), "VIP_INVALID_RDMAREAD"));
    CHECK(is(VipReturnName(VIP_ERROR_NOT_SUPPORTED), "VIP_ERROR_NOT_SUPPORTED"));
    CHECK(is(VipReturnName((VIP_RETURN)17), "(no VIP_RETURN)"));
    CHECK(is(VipReturnName((VIP_RETURN)-1), "(no VIP_RETURN)"));
    CHECK(VipReturnName(VIP_TIMEOUT) == VipReturnName(VIP_TIMEOUT));
}

ROW(EARLY, name_of_error_codes, "VipErrorName",
    "the name of each code; of any other number that it is none")
{
    CHECK(is(VipErrorName(VIP_ERROR_POST_DESC), "VIP_ERROR_POST_DESC"));
    CHECK(is(VipErrorName(VIP_ERROR_CONN_LOST), "VIP_ERROR_CONN_LOST"));
    CHECK(is(VipErrorName(VIP_ERROR_CATASTROPHIC), "VIP_ERROR_CATASTROPHIC"));
    CHECK(is(VipErrorName((VIP_ERROR_CODE)11), "(no VIP_ERROR_CODE)"));
}

ROW(EARLY, name_of_statuses, "VipStatusName", "the name of the error, and whether part was moved")
{
    CHECK(is(VipStatusName(0), "(not done)"));
    CHECK(is(VipStatusName(VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE), "VIP_STATUS_DONE"));
    CHECK(is(VipStatusName(VIP_STATUS_DONE | VIP_STATUS_FORMAT_ERROR), "VIP_STATUS_FORMAT_ERROR"));
    CHECK(is(VipStatusName(VIP_STATUS_DONE | VIP_STATUS_REMOTE_DESC_ERROR),
             "VIP_STATUS_REMOTE_DESC_ERROR"));
    CHECK(is(VipStatusName(VIP_STATUS_DONE | VIP_STATUS_LENGTH_ERROR | VIP_STATUS_PARTIAL_ERROR),
             "VIP_STATUS_LENGTH_ERROR | VIP_STATUS_PARTIAL_ERROR"));
    CHECK(is(VipStatusName(VIP_STATUS_DONE | VIP_STATUS_PARTIAL_ERROR), "VIP_STATUS_PARTIAL_ERROR"));
}
