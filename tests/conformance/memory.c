/* Protection tags and registered memory. */
#define _GNU_SOURCE
#include "frame.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static VIP_MEM_ATTRIBUTES plain(const side_t *n)
{
    VIP_MEM_ATTRIBUTES attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.Ptag = n->tag;
    return attributes;
}

ROW_NIC(EARLY, create_ptag_gives_others, "VipCreatePtag", "each tag is another, none is NULL")
{
    VIP_PROTECTION_HANDLE tags[16];
    for (int i = 0; i < 16; i++) {
        OK(VipCreatePtag(n->nic, &tags[i]));
        CHECK(tags[i] != NULL && tags[i] != n->tag);
        for (int j = 0; j < i; j++)
            CHECK(tags[i] != tags[j]);
    }
    for (int i = 0; i < 16; i++)
        OK(VipDestroyPtag(n->nic, tags[i]));
}

ROW_NIC(FUNCTIONAL, destroy_ptag_in_use_by_memory, "VipDestroyPtag",
        "in use by memory: VIP_ERROR_RESOURCE, afterwards not")
{
    GIVES(VipDestroyPtag(n->nic, n->tag), VIP_ERROR_RESOURCE);
    OK(VipDeregisterMem(n->nic, n->memory, n->handle));
    OK(VipDestroyPtag(n->nic, n->tag));
}

ROW_NIC(FUNCTIONAL, destroy_ptag_in_use_by_vi, "VipDestroyPtag",
        "in use by a VI: VIP_ERROR_RESOURCE, afterwards not")
{
    VIP_VI_HANDLE vi = vi_create(n, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    OK(VipDeregisterMem(n->nic, n->memory, n->handle));
    GIVES(VipDestroyPtag(n->nic, n->tag), VIP_ERROR_RESOURCE);
    OK(VipDestroyVi(vi));
    OK(VipDestroyPtag(n->nic, n->tag));
}

ROW_NIC(FUNCTIONAL, destroy_ptag_twice, "VipDestroyPtag", "a second time: VIP_INVALID_PARAMETER")
{
    VIP_PROTECTION_HANDLE tag;
    OK(VipCreatePtag(n->nic, &tag));
    OK(VipDestroyPtag(n->nic, tag));
    GIVES(VipDestroyPtag(n->nic, tag), VIP_INVALID_PARAMETER);
}

ROW_TWO(FUNCTIONAL, destroy_ptag_of_another_nic, "VipDestroyPtag",
        "a tag of another NIC: VIP_INVALID_PARAMETER")
{
    GIVES(VipDestroyPtag(p->a.nic, p->b.tag), VIP_INVALID_PARAMETER);
}

ROW_NIC(EARLY, register_mem_never_zero, "VipRegisterMem", "handles are never 0, and differ")
{
    VIP_MEM_ATTRIBUTES attributes = plain(n);
    VIP_MEM_HANDLE handles[64];
    for (int i = 0; i < 64; i++) {
        OK(VipRegisterMem(n->nic, n->memory + 64 * i, 64, &attributes, &handles[i]));
        CHECK(handles[i] != 0);
        for (int j = 0; j < i; j++)
            CHECK(handles[i] != handles[j]);
    }
    for (int i = 0; i < 64; i++)
        OK(VipDeregisterMem(n->nic, n->memory + 64 * i, handles[i]));
}

ROW_NIC(EARLY, register_mem_same_memory_again, "VipRegisterMem",
        "the same memory again, with other rights")
{
    VIP_MEM_ATTRIBUTES attributes = plain(n), found;
    VIP_MEM_HANDLE one, two;
    OK(VipRegisterMem(n->nic, n->memory, 4096, &attributes, &one));
    attributes.EnableRdmaWrite = VIP_TRUE;
    OK(VipRegisterMem(n->nic, n->memory, 4096, &attributes, &two));
    CHECK(one != two);
    OK(VipQueryMem(n->nic, n->memory, one, &found));
    CHECK(!found.EnableRdmaWrite);
    OK(VipQueryMem(n->nic, n->memory, two, &found));
    CHECK(found.EnableRdmaWrite);
}

ROW_NIC(EARLY, register_mem_any_place_and_length, "VipRegisterMem", "any alignment and length")
{
    VIP_MEM_ATTRIBUTES attributes = plain(n);
    VIP_MEM_HANDLE handle;
    for (unsigned offset = 0; offset < 70; offset += 7)
        for (unsigned length = 1; length < 10000; length = length * 3 + 1) {
            OK(VipRegisterMem(n->nic, n->memory + offset, length, &attributes, &handle));
            OK(VipDeregisterMem(n->nic, n->memory + offset, handle));
        }
}

static unsigned char in_bss[5000];
static unsigned char in_data[5000] = {1};

ROW_NIC(EARLY, register_mem_of_every_kind, "VipRegisterMem", "heap, static and stack memory")
{
    VIP_MEM_ATTRIBUTES attributes = plain(n);
    unsigned char on_stack[3000];
    unsigned char *on_heap = malloc(3000);
    unsigned char *all[] = {in_bss, in_data, on_stack, on_heap};
    VIP_MEM_HANDLE handle;
    for (int i = 0; i < 4; i++) {
        OK(VipRegisterMem(n->nic, all[i], 3000, &attributes, &handle));
        OK(VipDeregisterMem(n->nic, all[i], handle));
    }
    free(on_heap);
}

/* Three pages, the second with these rights. */
static unsigned char *three_pages(int rights)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && mprotect(pages + page, page, rights) == 0);
    return pages;
}

ROW_NIC(FULL, register_mem_unmapped, "VipRegisterMem",
        "memory that is not mapped, or that nobody may read: VIP_INVALID_PARAMETER")
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    VIP_MEM_ATTRIBUTES attributes = plain(n);
    VIP_MEM_HANDLE handle;
    unsigned char *pages = three_pages(PROT_NONE);
    GIVES(VipRegisterMem(n->nic, pages, 3 * page, &attributes, &handle), VIP_INVALID_PARAMETER);
    GIVES(VipRegisterMem(n->nic, pages + page - 1, 2, &attributes, &handle),
          VIP_INVALID_PARAMETER);
    GIVES(VipRegisterMem(n->nic, pages + page, 1, &attributes, &handle), VIP_INVALID_PARAMETER);
    GIVES(VipRegisterMem(n->nic, pages + 2 * page - 1, 2, &attributes, &handle),
          VIP_INVALID_PARAMETER);
    OK(VipRegisterMem(n->nic, pages, page, &attributes, &handle));
    OK(VipDeregisterMem(n->nic, pages, handle));
    OK(VipRegisterMem(n->nic, pages + 2 * page, page, &attributes, &handle));
    OK(VipDeregisterMem(n->nic, pages + 2 * page, handle));
    GIVES(VipRegisterMem(n->nic, (VIP_PVOID)(size_t)64, 64, &attributes, &handle),
          VIP_INVALID_PARAMETER);
}

ROW_NIC(FULL, register_mem_read_only, "VipRegisterMem", "memory that may only be read")
{
    VIP_MEM_ATTRIBUTES attributes = plain(n);
    VIP_MEM_HANDLE handle;
    unsigned char *pages = three_pages(PROT_READ);
    OK(VipRegisterMem(n->nic, pages, 3 * (size_t)sysconf(_SC_PAGESIZE), &attributes, &handle));
    OK(VipDeregisterMem(n->nic, pages, handle));
}

ROW_NIC(EARLY, register_mem_no_bytes, "VipRegisterMem", "length 0: VIP_INVALID_PARAMETER")
{
    VIP_MEM_ATTRIBUTES attributes = plain(n);
    VIP_MEM_HANDLE handle;
    GIVES(VipRegisterMem(n->nic, n->memory, 0, &attributes, &handle), VIP_INVALID_PARAMETER);
}

ROW_NIC(EARLY, register_mem_too_long, "VipRegisterMem",
        "4 GiB and more, or around the end: VIP_INVALID_PARAMETER")
{
    VIP_MEM_ATTRIBUTES attributes = plain(n);
    VIP_MEM_HANDLE handle;
    GIVES(VipRegisterMem(n->nic, n->memory, (VIP_ULONG)1 << 32, &attributes, &handle),
          VIP_INVALID_PARAMETER);
    GIVES(VipRegisterMem(n->nic, n->memory, ~(VIP_ULONG)0, &attributes, &handle),
          VIP_INVALID_PARAMETER);
    GIVES(VipRegisterMem(n->nic, (VIP_PVOID)~(size_t)63, 4096, &attributes, &handle),
          VIP_INVALID_PARAMETER);
}

ROW_NIC(EARLY, register_mem_null_ptag, "VipRegisterMem", "tag NULL: VIP_INVALID_PTAG")
{
    VIP_MEM_ATTRIBUTES attributes = plain(n);
    VIP_MEM_HANDLE handle;
    attributes.Ptag = NULL;
    GIVES(VipRegisterMem(n->nic, n->memory, 64, &attributes, &handle), VIP_INVALID_PTAG);
}

ROW_NIC(EARLY, register_mem_stale_ptag, "VipRegisterMem", "a destroyed tag: VIP_INVALID_PTAG")
{
    VIP_MEM_ATTRIBUTES attributes = plain(n);
    VIP_MEM_HANDLE handle;
    OK(VipCreatePtag(n->nic, &attributes.Ptag));
    OK(VipDestroyPtag(n->nic, attributes.Ptag));
    GIVES(VipRegisterMem(n->nic, n->memory, 64, &attributes, &handle), VIP_INVALID_PTAG);
}

ROW_TWO(EARLY, register_mem_ptag_of_another_nic, "VipRegisterMem",
        "another NIC's tag: VIP_INVALID_PTAG")
{
    VIP_MEM_ATTRIBUTES attributes = plain(&p->b);
    VIP_MEM_HANDLE handle;
    GIVES(VipRegisterMem(p->a.nic, p->a.memory, 64, &attributes, &handle), VIP_INVALID_PTAG);
}

ROW_NIC(EARLY, register_mem_until_none_is_left, "VipRegisterMem",
        "too many regions: VIP_ERROR_RESOURCE, and all can be given back")
{
    static VIP_MEM_HANDLE handles[1 << 16];
    VIP_MEM_ATTRIBUTES attributes = plain(n);
    VIP_ULONG limit = n->attributes.MaxRegisterRegions, count = 0;
    VIP_RETURN code = VIP_SUCCESS;
    CHECK(limit < 1 << 16);
    while (count <= limit && code == VIP_SUCCESS) {
        code = VipRegisterMem(n->nic, n->memory, 64, &attributes, &handles[count]);
        count += code == VIP_SUCCESS;
    }
    GIVES(code, VIP_ERROR_RESOURCE);
    SAME(count + 1, limit);
    while (count-- > 0)
        OK(VipDeregisterMem(n->nic, n->memory, handles[count]));
    OK(VipRegisterMem(n->nic, n->memory, 64, &attributes, handles));
}

ROW_NIC(EARLY, deregister_mem_twice, "VipDeregisterMem", "a second time: VIP_INVALID_PARAMETER")
{
    OK(VipDeregisterMem(n->nic, n->memory, n->handle));
    GIVES(VipDeregisterMem(n->nic, n->memory, n->handle), VIP_INVALID_PARAMETER);
}

ROW_NIC(FUNCTIONAL, deregister_mem_under_a_posted_descriptor, "VipDeregisterMem",
        "a descriptor in it is posted: VIP_ERROR_RESOURCE, until it is done")
{
    VIP_VI_HANDLE vi = vi_create(n, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    VIP_DESCRIPTOR *done;
    OK(VipPostRecv(vi, one_segment(n, 0, 0, 64), n->handle));
    GIVES(VipDeregisterMem(n->nic, n->memory, n->handle), VIP_ERROR_RESOURCE);
    OK(VipDisconnect(vi));
    OK(VipDeregisterMem(n->nic, n->memory, n->handle));
    GIVES(VipRecvDone(vi, &done), VIP_DESCRIPTOR_ERROR);
    CHECK(done == descriptor(n, 0));
    OK(VipDestroyVi(vi));
}

ROW_NIC(EARLY, deregister_mem_other_address, "VipDeregisterMem",
        "not the address of the registration: VIP_INVALID_PARAMETER")
{
    GIVES(VipDeregisterMem(n->nic, n->memory + 64, n->handle), VIP_INVALID_PARAMETER);
    GIVES(VipDeregisterMem(n->nic, n->memory - 64, n->handle), VIP_INVALID_PARAMETER);
}

ROW_NIC(EARLY, deregister_mem_made_up_handles, "VipDeregisterMem",
        "handles that were never given: VIP_INVALID_PARAMETER")
{
    GIVES(VipDeregisterMem(n->nic, n->memory, 0), VIP_INVALID_PARAMETER);
    GIVES(VipDeregisterMem(n->nic, n->memory, ~0u), VIP_INVALID_PARAMETER);
    GIVES(VipDeregisterMem(n->nic, n->memory, n->handle + 1), VIP_INVALID_PARAMETER);
    GIVES(VipDeregisterMem(n->nic, n->memory, n->handle + 0x10000), VIP_INVALID_PARAMETER);
}

ROW_NIC(EARLY, deregister_mem_of_another_handle_to_the_nic, "VipDeregisterMem",
        "a region of another open of the device: VIP_INVALID_PARAMETER")
{
    side_t other;
    side_open(&other, 0);
    GIVES(VipDeregisterMem(other.nic, n->memory, n->handle), VIP_INVALID_PARAMETER);
    side_close(&other);
}

ROW_NIC(EARLY, query_mem_anywhere_inside, "VipQueryMem", "any address in the region")
{
    VIP_MEM_ATTRIBUTES found;
    OK(VipQueryMem(n->nic, n->memory + MEMORY_BYTES - 1, n->handle, &found));
    CHECK(found.Ptag == n->tag && found.EnableRdmaWrite && found.EnableRdmaRead);
}

ROW_NIC(EARLY, query_mem_outside, "VipQueryMem", "an address outside: VIP_INVALID_PARAMETER")
{
    VIP_MEM_ATTRIBUTES found;
    GIVES(VipQueryMem(n->nic, n->memory + MEMORY_BYTES, n->handle, &found), VIP_INVALID_PARAMETER);
    GIVES(VipQueryMem(n->nic, n->memory - 1, n->handle, &found), VIP_INVALID_PARAMETER);
}

ROW_NIC(EARLY, set_mem_attributes_changes, "VipSetMemAttributes", "what is set can be queried")
{
    VIP_MEM_ATTRIBUTES attributes = plain(n), found;
    OK(VipCreatePtag(n->nic, &attributes.Ptag));
    OK(VipSetMemAttributes(n->nic, n->memory, n->handle, &attributes));
    OK(VipQueryMem(n->nic, n->memory, n->handle, &found));
    CHECK(found.Ptag == attributes.Ptag && !found.EnableRdmaWrite && !found.EnableRdmaRead);
}

ROW_NIC(EARLY, set_mem_attributes_bad_ptag, "VipSetMemAttributes",
        "tag NULL: VIP_INVALID_PTAG, and nothing has changed")
{
    VIP_MEM_ATTRIBUTES attributes = plain(n), found;
    attributes.Ptag = NULL;
    GIVES(VipSetMemAttributes(n->nic, n->memory, n->handle, &attributes), VIP_INVALID_PTAG);
    OK(VipQueryMem(n->nic, n->memory, n->handle, &found));
    CHECK(found.Ptag == n->tag && found.EnableRdmaWrite);
}

ROW_NIC(EARLY, set_mem_attributes_outside, "VipSetMemAttributes",
        "an address outside: VIP_INVALID_PARAMETER")
{
    VIP_MEM_ATTRIBUTES attributes = plain(n);
    GIVES(VipSetMemAttributes(n->nic, n->memory + MEMORY_BYTES, n->handle, &attributes),
          VIP_INVALID_PARAMETER);
}

ROW_CONNECTED(EARLY, set_mem_attributes_takes_rights_away, "VipSetMemAttributes",
              "the right to write taken away: an RDMA write is refused")
{
    VIP_MEM_ATTRIBUTES attributes = plain(&p->b);
    VIP_DESCRIPTOR *done;
    OK(VipSetMemAttributes(p->b.nic, p->b.memory, p->b.handle, &attributes));
    OK(VipPostSend(p->va, rdma(&p->a, 0, VIP_CONTROL_OP_RDMAWRITE, &p->b, 0, 0, 8), p->a.handle));
    GIVES(VipSendWait(p->va, LONG, &done), VIP_DESCRIPTOR_ERROR);
    CHECK(done->CS.Status & VIP_STATUS_RDMA_PROT_ERROR);
}
