-- Link frames of Viaduct, for Wireshark and tshark 3.0 and later:
--
--   cargo viaduct demo --pcap out.pcapng
--   wireshark -X lua_script:cosim/wireshark/viaduct.lua out.pcapng
--
-- Layout: hdl/nic-regs/src/frame.rs; meaning: docs/contract.md, sections 4 to 7, 11 and 12. The names
-- of fields are below; a test (cosim/cli/tests/capture.rs) compares them with what tshark shows.

local bits = bit32 or bit
local viaduct = Proto("viaduct", "Viaduct link frame")

local HEADER, CRC = 24, 8

local DATA, VI_REFUSE, MESSAGE, RDMA_WRITE, READ_REQUEST, READ_RESPONSE = 1, 3, 5, 6, 7, 8
local ACK, SYN, SYN_ACK, MESSAGE_REFUSED = 16, 17, 18, 20
local types = {
    [1] = "Data", [2] = "ViAck", [3] = "ViRefuse", [4] = "Fin", [5] = "Message", [6] = "RdmaWrite",
    [7] = "ReadRequest", [8] = "ReadResponse", [16] = "Ack", [17] = "Syn", [18] = "SynAck",
    [19] = "Rst", [20] = "MessageRefused",
}
local reasons = {
    [0] = "None", [1] = "Format", [2] = "Protection", [3] = "Length", [4] = "Descriptor",
    [5] = "HostRead", [6] = "ReceiveEmpty", [7] = "Refused", [8] = "PeerDown", [9] = "Disconnected",
    [10] = "RdmaWrite", [11] = "RdmaRead",
}
-- Messages of the connection manager: host-driver/src/connection/message.rs.
local kinds = {
    [1] = "Request", [2] = "Accept", [3] = "Reject", [4] = "NoMatch", [5] = "Confirm",
    [6] = "Cancel", [7] = "PeerRequest", [8] = "Mismatch", [9] = "Settled", [10] = "Void",
}

local FIRST, LAST, IMMEDIATE, SEQUENCED, RECEPTION, NAK = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
local flags = {
    { FIRST, "FIRST" }, { LAST, "LAST" }, { IMMEDIATE, "IMMEDIATE" }, { SEQUENCED, "SEQUENCED" },
    { RECEPTION, "RECEPTION" }, { NAK, "NAK" },
}

local f = {
    version = ProtoField.uint8("viaduct.version", "Version"),
    type = ProtoField.uint8("viaduct.type", "Type", base.DEC, types),
    length = ProtoField.uint16("viaduct.length", "Payload length"),
    source = ProtoField.uint8("viaduct.source", "Source node"),
    destination = ProtoField.uint8("viaduct.destination", "Destination node"),
    tag = ProtoField.uint16("viaduct.tag", "Tag", base.HEX),
    destination_vi = ProtoField.uint16("viaduct.destination_vi", "Destination VI"),
    domain = ProtoField.uint16("viaduct.domain", "Domain"),
    source_vi = ProtoField.uint16("viaduct.source_vi", "Source VI"),
    connection = ProtoField.uint16("viaduct.connection", "Connection id"),
    flags = ProtoField.uint8("viaduct.flags", "Flags", base.HEX),
    credit = ProtoField.uint8("viaduct.credit", "Credit limit"),
    sequence = ProtoField.uint16("viaduct.sequence", "Sequence number"),
    message = ProtoField.uint8("viaduct.message", "Message number"),
    fragment = ProtoField.uint8("viaduct.fragment", "Fragment number"),
    acknowledgement = ProtoField.uint16("viaduct.acknowledgement", "Acknowledgement"),
    link_payload = ProtoField.uint16("viaduct.link_payload", "Largest link payload"),
    word = ProtoField.uint32("viaduct.word", "Word", base.HEX),
    immediate = ProtoField.uint32("viaduct.immediate", "Immediate data", base.HEX),
    total = ProtoField.uint32("viaduct.total", "Message length"),
    remaining = ProtoField.uint32("viaduct.remaining", "Bytes that follow"),
    epoch = ProtoField.uint32("viaduct.epoch", "Epoch", base.HEX),
    reason = ProtoField.uint32("viaduct.reason", "Reason", base.DEC, reasons),
    rdma_address = ProtoField.uint64("viaduct.rdma.address", "Remote address", base.HEX),
    rdma_handle = ProtoField.uint32("viaduct.rdma.handle", "Remote handle", base.HEX),
    rdma_total = ProtoField.uint32("viaduct.rdma.total", "Message length"),
    cm_version = ProtoField.uint8("viaduct.cm.version", "Message version"),
    cm_kind = ProtoField.uint8("viaduct.cm.kind", "Kind", base.DEC, kinds),
    cm_fragment = ProtoField.uint8("viaduct.cm.fragment", "Fragment"),
    cm_fragments = ProtoField.uint8("viaduct.cm.fragments", "Fragments"),
    cm_exchange = ProtoField.uint32("viaduct.cm.exchange", "Exchange", base.HEX),
    cm_length = ProtoField.uint16("viaduct.cm.length", "Body length"),
    data = ProtoField.bytes("viaduct.data", "Data"),
    padding = ProtoField.bytes("viaduct.padding", "Padding"),
    crc = ProtoField.uint32("viaduct.crc", "CRC-32", base.HEX),
    crc_good = ProtoField.bool("viaduct.crc.good", "CRC is good"),
}
local flag_fields = {}
for _, flag in ipairs(flags) do
    local name = "viaduct.flags." .. flag[2]:lower()
    local field = ProtoField.bool(name, flag[2], 8, nil, flag[1])
    f["flag_" .. flag[2]] = field
    table.insert(flag_fields, field)
end
viaduct.fields = f

local e = {
    crc = ProtoExpert.new("viaduct.bad_crc", "CRC is bad", expert.group.CHECKSUM, expert.severity.ERROR),
    length = ProtoExpert.new("viaduct.bad_length", "Another number of beats than the header states",
        expert.group.MALFORMED, expert.severity.ERROR),
    type = ProtoExpert.new("viaduct.bad_type", "Type does not exist", expert.group.MALFORMED,
        expert.severity.ERROR),
    version = ProtoExpert.new("viaduct.bad_version", "Another link version", expert.group.PROTOCOL,
        expert.severity.WARN),
    nak = ProtoExpert.new("viaduct.is_nak", "A sequenced frame is missing", expert.group.SEQUENCE,
        expert.severity.NOTE),
}
viaduct.experts = e

-- CRC-32 (IEEE 802.3), a byte at a time.
local crc_table = {}
for byte = 0, 255 do
    local state = byte
    for _ = 1, 8 do
        local odd = bits.band(state, 1) == 1
        state = bits.rshift(state, 1)
        if odd then state = bits.bxor(state, 0xedb88320) end
    end
    crc_table[byte] = state
end

local function crc32(bytes)
    local state = 0xffffffff
    for i = 0, bytes:len() - 1 do
        local index = bits.band(bits.bxor(state, bytes:get_index(i)), 0xff)
        state = bits.bxor(bits.rshift(state, 8), crc_table[index])
    end
    -- Not negative, whichever library this is.
    return bits.bnot(state) % 0x100000000
end

local function has(value, flag)
    return bits.band(value, flag) ~= 0
end

-- The word means something else in some frames; gives what the column shows of it.
local function add_word(tree, range, kind, flag)
    local field = f.word
    if kind == SYN or kind == SYN_ACK then
        field = f.epoch
    elseif kind == VI_REFUSE then
        field = f.reason
    elseif kind == READ_RESPONSE then
        field = f.remaining
    elseif (kind == DATA or kind == RDMA_WRITE) and has(flag, LAST) and has(flag, IMMEDIATE) then
        field = f.immediate
    elseif kind == DATA and has(flag, FIRST) and not has(flag, LAST) then
        field = f.total
    end
    tree:add_le(field, range)
    if kind ~= VI_REFUSE then return "" end
    return ", " .. (reasons[range:le_uint()] or string.format("reason %d", range:le_uint()))
end

local function add_rdma(tree, payload)
    local rdma = tree:add(viaduct, payload(0, 16), "RDMA header")
    rdma:add_le(f.rdma_address, payload(0, 8))
    rdma:add_le(f.rdma_handle, payload(8, 4))
    rdma:add_le(f.rdma_total, payload(12, 4))
    return 16, string.format(", %d bytes in all", payload(12, 4):le_uint())
end

local function add_connection(tree, payload)
    local kind = payload(1, 1):uint()
    local cm = tree:add(viaduct, payload(0, 12), "Connection message")
    cm:add(f.cm_version, payload(0, 1))
    cm:add(f.cm_kind, payload(1, 1))
    cm:add(f.cm_fragment, payload(2, 1))
    cm:add(f.cm_fragments, payload(3, 1))
    cm:add_le(f.cm_exchange, payload(4, 4))
    cm:add_le(f.cm_length, payload(8, 2))
    return 12, string.format(", %s %d/%d", kinds[kind] or kind, payload(2, 1):uint() + 1,
        payload(3, 1):uint())
end

-- The payload; gives what the column shows of it.
local function add_payload(tree, payload, kind)
    local length, at, text = payload:len(), 0, ""
    if (kind == RDMA_WRITE or kind == READ_REQUEST) and length >= 16 then
        at, text = add_rdma(tree, payload)
    elseif (kind == MESSAGE or kind == MESSAGE_REFUSED) and length >= 12 then
        at, text = add_connection(tree, payload)
    end
    if length > at then tree:add(f.data, payload(at)) end
    return text
end

local function add_vis(tree, buffer, kind)
    if kind >= ACK and kind ~= MESSAGE_REFUSED then return "" end
    if kind == MESSAGE or kind == MESSAGE_REFUSED then
        tree:add_le(f.domain, buffer(8, 2))
        return ""
    end
    tree:add_le(f.source_vi, buffer(10, 2))
    tree:add_le(f.destination_vi, buffer(8, 2))
    tree:add_le(f.connection, buffer(12, 2))
    return string.format(", VI %d > %d", buffer(10, 2):le_uint(), buffer(8, 2):le_uint())
end

local function add_flags(tree, range)
    local value, names = range:uint(), {}
    local item = tree:add(f.flags, range)
    for i, flag in ipairs(flags) do
        item:add(flag_fields[i], range)
        if has(value, flag[1]) and flag[1] ~= SEQUENCED then table.insert(names, flag[2]) end
    end
    return value, #names > 0 and " [" .. table.concat(names, " ") .. "]" or ""
end

local function add_numbers(tree, buffer, kind, flag)
    local text = ""
    if has(flag, SEQUENCED) then
        tree:add_le(f.sequence, buffer(16, 2))
        text = string.format(", seq %d", buffer(16, 2):le_uint())
    elseif kind == DATA or kind == RDMA_WRITE then
        tree:add(f.message, buffer(17, 1))
        tree:add(f.fragment, buffer(16, 1))
        text = string.format(", message %d.%d", buffer(17, 1):uint(), buffer(16, 1):uint())
    end
    if kind == SYN or kind == SYN_ACK then
        tree:add_le(f.link_payload, buffer(18, 2))
        return text
    end
    tree:add_le(f.acknowledgement, buffer(18, 2))
    return text .. string.format(", ack %d", buffer(18, 2):le_uint())
end

local function add_crc(tree, buffer)
    local at = buffer:len() - CRC
    local found, expected = buffer(at, 4):le_uint(), crc32(buffer(0, at):bytes())
    local item = tree:add_le(f.crc, buffer(at, 4))
    item:add(f.crc_good, buffer(at, 4), found == expected):set_generated()
    if found == expected then
        return ""
    end
    item:append_text(string.format(", should be 0x%08x", expected))
    item:add_proto_expert_info(e.crc)
    return " [bad CRC]"
end

function viaduct.dissector(buffer, pinfo, root)
    pinfo.cols.protocol = "Viaduct"
    local tree = root:add(viaduct, buffer())
    if buffer:len() < HEADER + CRC then
        tree:add_proto_expert_info(e.length)
        pinfo.cols.info = "[less than a header]"
        return
    end
    local kind, length = buffer(1, 1):uint(), buffer(2, 2):le_uint()
    local name = types[kind] or string.format("type %d", kind)
    pinfo.cols.src = string.format("node %d", buffer(4, 1):uint())
    pinfo.cols.dst = string.format("node %d", buffer(5, 1):uint())
    tree:append_text(string.format(", %s, node %d to %d", name, buffer(4, 1):uint(), buffer(5, 1):uint()))

    local version = tree:add(f.version, buffer(0, 1))
    if buffer(0, 1):uint() ~= 1 then version:add_proto_expert_info(e.version) end
    local type_item = tree:add(f.type, buffer(1, 1))
    if not types[kind] then type_item:add_proto_expert_info(e.type) end
    local length_item = tree:add_le(f.length, buffer(2, 2))
    tree:add(f.source, buffer(4, 1))
    tree:add(f.destination, buffer(5, 1))
    tree:add_le(f.tag, buffer(6, 2))
    local info = name .. add_vis(tree, buffer, kind)
    local flag, flag_text = add_flags(tree, buffer(14, 1))
    tree:add(f.credit, buffer(15, 1))
    info = info .. add_numbers(tree, buffer, kind, flag)
    info = info .. add_word(tree, buffer(20, 4), kind, flag)
    if has(flag, NAK) then tree:add_proto_expert_info(e.nak) end

    local room = buffer:len() - HEADER - CRC
    local wrong = ""
    if room ~= math.floor((length + 7) / 8) * 8 then
        length_item:add_proto_expert_info(e.length)
        wrong = " [bad length]"
    end
    local there = math.min(length, room)
    if there > 0 then
        info = info .. string.format(", %d bytes", there)
        info = info .. add_payload(tree, buffer(HEADER, there), kind)
    end
    if room > there then tree:add(f.padding, buffer(HEADER + there, room - there)) end
    pinfo.cols.info = info .. flag_text .. wrong .. add_crc(tree, buffer)
end

local encapsulations = wtap_encaps or wtap
DissectorTable.get("wtap_encap"):add(encapsulations.USER0, viaduct)
