-- Packets of `udp:` and `eth:`, for Wireshark and tshark 3.0 and later:
--
--   VIADUCT_DEVICE='udp:10.0.0.1?pcap=out.pcapng' ./my-program
--   wireshark -X lua_script:cosim/wireshark/viaduct_net.lua out.pcapng
--
-- What tcpdump captures is decoded as well. Layout: docs/udp.md, section 4. The names of fields are
-- below; a test (cosim/cli/tests/capture.rs) compares them with what tshark shows.

local bits = bit32 or bit
local net = Proto("viaduct_net", "Viaduct over UDP or Ethernet")

local HEADER, DATA_HEADER, CODE = 32, 64, 16
local DATA, ACK, RESET, MESSAGE, CHALLENGE = 1, 2, 3, 4, 5
local DATA_STOP, DATA_SEND, DATA_WRITE, DATA_READ = 5, 1, 2, 3
local PORT, ETHER_TYPE = 22089, 0x88b5

local kinds = {
    [1] = "Data", [2] = "Ack", [3] = "Reset", [4] = "Message", [5] = "Challenge",
}
local operations = {
    [1] = "Send", [2] = "RdmaWrite", [3] = "ReadRequest", [4] = "ReadResponse", [5] = "Stop",
}
local reasons = {
    [1] = "Descriptor", [2] = "Unreachable", [3] = "NoReceive", [4] = "Disconnected", [5] = "Lost",
    [6] = "WriteRefused", [7] = "ReadRefused",
}
-- Messages of the connection manager, as in viaduct.lua.
local messages = {
    [1] = "Request", [2] = "Accept", [3] = "Reject", [4] = "NoMatch", [5] = "Confirm",
    [6] = "Cancel", [7] = "PeerRequest", [8] = "Mismatch", [9] = "Settled", [10] = "Void",
}

local f = {
    version = ProtoField.uint8("viaduct_net.version", "Version"),
    kind = ProtoField.uint8("viaduct_net.kind", "Kind", base.DEC, kinds),
    flags = ProtoField.uint16("viaduct_net.flags", "Flags", base.HEX),
    flag_wants_ack = ProtoField.bool("viaduct_net.flags.wants_ack", "Acknowledge at once", 16, nil, 1),
    flag_stopped = ProtoField.bool("viaduct_net.flags.stopped", "VI takes nothing any more", 16, nil, 2),
    vi = ProtoField.uint16("viaduct_net.vi", "Destination VI"),
    length = ProtoField.uint16("viaduct_net.length", "Packet length"),
    token = ProtoField.uint64("viaduct_net.token", "Token", base.HEX),
    sequence = ProtoField.uint32("viaduct_net.sequence", "Sequence number"),
    next = ProtoField.uint32("viaduct_net.next", "First packet that is missing"),
    received = ProtoField.uint32("viaduct_net.received", "Packets received"),
    window = ProtoField.uint16("viaduct_net.window", "Window"),
    bits = ProtoField.bytes("viaduct_net.bits", "Packets behind it that are here"),
    operation = ProtoField.uint8("viaduct_net.operation", "Operation", base.DEC, operations),
    part = ProtoField.uint8("viaduct_net.part", "Part", base.HEX),
    part_first = ProtoField.bool("viaduct_net.part.first", "First", 8, nil, 1),
    part_last = ProtoField.bool("viaduct_net.part.last", "Last", 8, nil, 2),
    part_immediate = ProtoField.bool("viaduct_net.part.immediate", "Immediate data", 8, nil, 4),
    reason = ProtoField.uint8("viaduct_net.reason", "Reason", base.DEC, reasons),
    message = ProtoField.uint32("viaduct_net.message", "Message number"),
    total = ProtoField.uint32("viaduct_net.total", "Message length"),
    offset = ProtoField.uint32("viaduct_net.offset", "Offset in the message"),
    immediate = ProtoField.uint32("viaduct_net.immediate", "Immediate data", base.HEX),
    handle = ProtoField.uint32("viaduct_net.handle", "Remote handle", base.HEX),
    address = ProtoField.uint64("viaduct_net.address", "Remote address", base.HEX),
    data = ProtoField.bytes("viaduct_net.data", "Data"),
    to = ProtoField.uint64("viaduct_net.to", "Receiver's instance", base.HEX),
    from = ProtoField.uint64("viaduct_net.from", "Sender's instance", base.HEX),
    counter = ProtoField.uint64("viaduct_net.counter", "Number"),
    cm_version = ProtoField.uint8("viaduct_net.cm.version", "Message version"),
    cm_kind = ProtoField.uint8("viaduct_net.cm.kind", "Message", base.DEC, messages),
    cm_fragment = ProtoField.uint8("viaduct_net.cm.fragment", "Fragment"),
    cm_fragments = ProtoField.uint8("viaduct_net.cm.fragments", "Fragments"),
    cm_exchange = ProtoField.uint32("viaduct_net.cm.exchange", "Exchange", base.HEX),
    cm_length = ProtoField.uint16("viaduct_net.cm.length", "Body length"),
    code = ProtoField.bytes("viaduct_net.code", "Authentication code"),
}
net.fields = f

local e = {
    length = ProtoExpert.new("viaduct_net.bad_length", "Another length than the kind has",
        expert.group.MALFORMED, expert.severity.ERROR),
    kind = ProtoExpert.new("viaduct_net.bad_kind", "Kind does not exist", expert.group.MALFORMED,
        expert.severity.ERROR),
    version = ProtoExpert.new("viaduct_net.bad_version", "Another version", expert.group.PROTOCOL,
        expert.severity.WARN),
}
net.experts = e

local function has(value, flag)
    return bits.band(value, flag) ~= 0
end

-- What is in front of every packet of a connection.
local function add_header(tree, packet)
    local flags = tree:add_le(f.flags, packet(2, 2))
    flags:add_le(f.flag_wants_ack, packet(2, 2))
    flags:add_le(f.flag_stopped, packet(2, 2))
    tree:add_le(f.vi, packet(4, 2))
    tree:add_le(f.token, packet(8, 8))
    tree:add_le(f.sequence, packet(16, 4))
    tree:add_le(f.next, packet(20, 4))
    tree:add_le(f.received, packet(24, 4))
    tree:add_le(f.window, packet(28, 2))
    return string.format(", VI %d", packet(4, 2):le_uint())
end

local function add_data(tree, packet)
    local text = add_header(tree, packet)
    local operation, part = packet(32, 1):uint(), packet(33, 1):uint()
    tree:add(f.operation, packet(32, 1))
    local parts = tree:add(f.part, packet(33, 1))
    parts:add(f.part_first, packet(33, 1))
    parts:add(f.part_last, packet(33, 1))
    parts:add(f.part_immediate, packet(33, 1))
    tree:add_le(f.message, packet(36, 4))
    text = string.format("%s%s, seq %d, ack %d", operations[operation] or operation, text,
        packet(16, 4):le_uint(), packet(20, 4):le_uint())
    if operation == DATA_STOP then
        tree:add(f.reason, packet(34, 1))
        return text .. ", " .. (reasons[packet(34, 1):uint()] or "?")
    end
    tree:add_le(f.total, packet(40, 4))
    tree:add_le(f.offset, packet(44, 4))
    if has(part, 4) then tree:add_le(f.immediate, packet(48, 4)) end
    if operation ~= DATA_SEND then
        tree:add_le(f.handle, packet(52, 4))
        tree:add_le(f.address, packet(56, 8))
    end
    local length = packet:len() - DATA_HEADER
    if length > 0 then tree:add(f.data, packet(DATA_HEADER)) end
    return string.format("%s, message %d, %d bytes at %d of %d", text, packet(36, 4):le_uint(), length,
        packet(44, 4):le_uint(), packet(40, 4):le_uint())
end

local function add_ack(tree, packet)
    local text = add_header(tree, packet)
    if packet:len() > HEADER then tree:add(f.bits, packet(HEADER)) end
    return string.format("Ack%s, ack %d", text, packet(20, 4):le_uint())
end

local function add_envelope(tree, packet)
    tree:add_le(f.to, packet(8, 8))
    tree:add_le(f.from, packet(16, 8))
    tree:add_le(f.counter, packet(24, 8))
    tree:add(f.code, packet(packet:len() - CODE))
end

local function add_message(tree, packet)
    add_envelope(tree, packet)
    local kind = packet(33, 1):uint()
    tree:add(f.cm_version, packet(32, 1))
    tree:add(f.cm_kind, packet(33, 1))
    tree:add(f.cm_fragment, packet(34, 1))
    tree:add(f.cm_fragments, packet(35, 1))
    tree:add_le(f.cm_exchange, packet(36, 4))
    tree:add_le(f.cm_length, packet(40, 2))
    return string.format("Message %s %d/%d", messages[kind] or kind, packet(34, 1):uint() + 1,
        packet(35, 1):uint())
end

-- For each kind: what shows it, and the fewest bytes that it has.
local shows = {
    [DATA] = { add_data, DATA_HEADER },
    [ACK] = { add_ack, HEADER },
    [RESET] = { function(tree, packet)
        tree:add_le(f.token, packet(8, 8))
        return "Reset"
    end, 16 },
    [MESSAGE] = { add_message, 96 },
    [CHALLENGE] = { function(tree, packet)
        add_envelope(tree, packet)
        return "Challenge"
    end, 48 },
}

function net.dissector(buffer, pinfo, root)
    -- Behind a short packet an Ethernet frame is filled up.
    local length = buffer:len() >= 8 and buffer(6, 2):le_uint() or 0
    local is_whole = length >= 16 and length <= buffer:len()
    local packet = is_whole and buffer(0, length) or buffer
    local tree = root:add(net, packet(0))
    pinfo.cols.protocol = "Viaduct/net"
    local version = tree:add(f.version, buffer(0, 1))
    if buffer(0, 1):uint() ~= 1 then version:add_proto_expert_info(e.version) end
    if not is_whole then
        tree:add_proto_expert_info(e.length)
        pinfo.cols.info = "[bad length]"
        return buffer:len()
    end
    local kind = buffer(1, 1):uint()
    local kind_item = tree:add(f.kind, buffer(1, 1))
    local length_item = tree:add_le(f.length, buffer(6, 2))
    local show = shows[kind]
    if not show then
        kind_item:add_proto_expert_info(e.kind)
        pinfo.cols.info = string.format("kind %d", kind)
    elseif length < show[2] then
        length_item:add_proto_expert_info(e.length)
        pinfo.cols.info = (kinds[kind] or "") .. " [bad length]"
    else
        pinfo.cols.info = show[1](tree, packet)
    end
    return length
end

-- By any port: nodes on one host have ports of their own.
local function looks_like(buffer, pinfo, root)
    if buffer:len() < 16 or buffer(0, 1):uint() ~= 1 then return false end
    local kind, length = buffer(1, 1):uint(), buffer(6, 2):le_uint()
    local show = shows[kind]
    if not show or length < show[2] or length > buffer:len() then return false end
    net.dissector(buffer, pinfo, root)
    return true
end

net:register_heuristic("udp", looks_like)
DissectorTable.get("udp.port"):add(PORT, net)
DissectorTable.get("ethertype"):add(ETHER_TYPE, net)
