// Pieces of DMA requests (hdl/src/pcie/cutter.rs), by nic.md's and PCIe's rules of memory requests
// (PCI Express Base 2.2.5 and 2.2.7): for every address, length and limit.
wire makes = state$q == 2;
wire cuts = state$q == 1;

// What is left of the request that was taken, and where it goes on, as a client sees it.
reg [63:0] at_next;
reg [12:0] left;
reg active;
wire [63:0] of_address = taken[0] ? address0 : taken[1] ? address1 : taken[2] ? address2 : address3;
wire [12:0] of_length = taken[0] ? length0 : taken[1] ? length1 : taken[2] ? length2 : length3;
reg [2:0] limit_before;
initial active = 0;
always @(posedge clock) begin
   limit_before <= limit;
   if (reset) active <= 0;
   else if (|taken) begin
      active <= 1; at_next <= of_address; left <= of_length;
   end else if (write) begin
      active <= ~shape_now[37];
      at_next <= at_next + shape_now[34:25]; left <= left - shape_now[34:25];
   end
end

// Clients ask for 1 to 4,096 bytes (hdl/src/ifs.rs).
wire given_length = ~|taken | (of_length != 0 & of_length <= 4096);
// The limit stays while there is a request: software sets it once.
wire given_limit = ~active | limit == limit_before;

reg [3:0] home_before;
always @(posedge clock) home_before <= home;
reg begun;
initial begun = 0;
always @(posedge clock) begun <= 1;
// One client has the turn when nobody asks, always the same (hdl/src/pcie/dma_write.rs: a constant).
wire given_home = (home == 1 | home == 2 | home == 4 | home == 8) & (~begun | home == home_before);

// The piece that is made.
wire [8:0] dwords = shape_now[8:0];
wire [3:0] first = shape_now[13:10];
wire [3:0] last = shape_now[17:14];
wire [6:0] words = shape_now[24:18];
wire [9:0] size = shape_now[34:25];
wire is_last = shape_now[37];
wire [9:0] most_bytes = limit == 0 ? 128 : limit == 1 ? 256 : 512;
wire [9:0] place = at_next[9:0] & (most_bytes - 1);
// Ends, in bytes from the dword, and from the 8-byte word, that it begins in.
wire [10:0] end_dword = at_next[1:0] + size;
wire [10:0] end_word = at_next[2:0] + size;
wire [10:0] start_last = 4 * (dwords - 1);

// Pieces follow each other without a gap, up to the end of the request.
wire rule_address = ~write | addresses$data_in == at_next;
// None is empty or goes beyond the request.
wire rule_size = ~write | (size != 0 & size <= left);
// The one that is marked ends it.
wire rule_end = ~write | is_last == (size == left);
// None crosses a multiple of the limit.
wire rule_limit = ~write | place + size <= most_bytes;
// None but the last stops before one.
wire rule_whole = ~write | is_last | place + size == most_bytes;
// The length in dwords.
wire rule_dwords = ~write | (dwords != 0 & start_last < end_dword & end_dword <= start_last + 4);
// The length in 8-byte words.
wire rule_words = ~write | (words != 0 & 8 * (words - 11'd1) < end_word & end_word <= 11'd8 * words);
wire [10:0] byte_0 = start_last;
wire [10:0] byte_1 = start_last + 1;
wire [10:0] byte_2 = start_last + 2;
wire [10:0] byte_3 = start_last + 3;
wire [3:0] within_first = {at_next[1:0] <= 3 & 3 < end_dword, at_next[1:0] <= 2 & 2 < end_dword,
                           at_next[1:0] <= 1 & 1 < end_dword, at_next[1:0] == 0};
wire [3:0] within_last = {byte_3 < end_dword, byte_2 < end_dword, byte_1 < end_dword, byte_0 < end_dword};
// Byte enables: exactly the bytes of the piece.
wire rule_first = ~write | first == within_first;
// Those of the last dword, only if it is another one.
wire rule_last = ~write | last == (dwords == 1 ? 4'b0 : within_last);
// What finds the FIFO empty is offered as it is made.
wire rule_offer = ~(write & addresses$empty)
   | (~empty & address == at_next & {ends, bytes, beats, last_be, first_be} ==
      {is_last, size, words, last, first} & length_dw == dwords);

wire [9:0] room = most_bytes - place;
// There is a request while pieces of it are cut.
wire lemma_active = active == (cuts | makes);
// One client has the turn.
wire lemma_turn = turn == 1 | turn == 2 | turn == 4 | turn == 8;
// Three states.
wire lemma_state = state$q != 3;
// The registers of the request.
wire lemma_at = ~active | (at$q == at_next & remaining$q == left & left != 0 & left <= 4096);
// The registers of the piece: whether it is the last one, and its bytes.
wire lemma_final = ~makes | final_piece$q == (left <= room);
// As above.
wire lemma_piece = ~makes | piece$q == (left <= room ? left : room);
// Its dwords, in the end's terms.
wire lemma_dwords = ~makes | dwords_at$q == ((end_dword + 3) >> 2);
// Its 8-byte words.
wire lemma_words = ~makes | beats_at$q == ((end_word + 7) >> 3);
// Whether one dword has it all.
wire lemma_lone = ~makes | lone$q == (end_dword <= 4);
// The last byte's place in its dword.
wire lemma_tail = ~makes | tail$q == ((end_dword + 3) & 3);
