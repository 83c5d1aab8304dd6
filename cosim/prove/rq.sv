// Merging of reads and writes (hdl/src/pcie/rq.rs), by its page.
//
// The two buffers are taken out: what they promise is the proof `skid`. A beat `moves` when it goes
// from its buffer out of the block.
wire read_enters = read$valid & read$ready;
wire write_enters = write$valid & write$ready;
wire read_moves = read_skid$out_valid & read_skid$out_ready;
wire write_moves = write_skid$out_valid & write_skid$out_ready;
wire goes_out = rq_valid & rq_ready;
wire [64:0] beat_out = {rq_last, rq_data};

// A TLP has begun on its way out, and of which side; the same for the side of the last one.
reg under_way, side;
// Last cycle's beat, if it was offered and not taken; its side.
reg waiting, offered;
reg [64:0] out_then;
// A TLP has begun to come in.
reg read_open_in, write_open_in;
// Last cycle's beats at the buffers' outputs, if they were not taken; and what says `idle`.
reg read_waits, write_waits;
reg [64:0] read_then, write_then;
reg none;
initial begin
   under_way = 0; side = 0; waiting = 0; read_open_in = 0; write_open_in = 0; read_waits = 0; write_waits = 0;
   none = 0;
end
always @(posedge clock) begin
   if (goes_out) begin under_way <= ~rq_last; side <= write_moves; end
   waiting <= rq_valid & ~rq_ready & ~reset; offered <= choose_write; out_then <= beat_out;
   if (read_enters) read_open_in <= ~read$last;
   if (write_enters) write_open_in <= ~write$last;
   read_waits <= read_skid$out_valid & ~read_moves & ~reset;
   write_waits <= write_skid$out_valid & ~write_moves & ~reset;
   read_then <= read_skid$out_data; write_then <= write_skid$out_data;
   none <= ~reset & hold & ~under_way & ~read_open_in & ~write_open_in
      & ~read_skid$out_valid & ~write_skid$out_valid;
   if (reset) begin under_way <= 0; side <= 0; read_open_in <= 0; write_open_in <= 0; end
end

// A buffer's beat stays until it is taken (proof `skid`).
wire given_stays = (~read_waits | (read_skid$out_valid & read_skid$out_data == read_then))
   & (~write_waits | (write_skid$out_valid & write_skid$out_data == write_then));

// A TLP is never mixed with one of the other side.
wire rule_whole = ~(goes_out & under_way) | write_moves == side;
// Each beat goes out once: the one that leaves its buffer, unchanged.
wire rule_once = goes_out == (read_moves | write_moves) & ~(read_moves & write_moves)
   & (~read_moves | beat_out == read_skid$out_data)
   & (~write_moves | beat_out == write_skid$out_data);
// A beat that is offered stays until it is taken.
wire rule_stays = ~waiting | (rq_valid & beat_out == out_then);
// Reads and writes take turns when both wait, but that what was offered goes first.
wire rule_turns = ~(goes_out & ~under_way & ~waiting & read_skid$out_valid & write_skid$out_valid)
   | write_moves == ~side;
// Nobody waits for nothing: a TLP that is there goes when nothing is under way.
wire rule_busy = ~((read_skid$out_valid | write_skid$out_valid) & ~under_way & rq_ready)
   | goes_out;
// With `hold` no TLP begins to come in, and what has begun goes on.
wire rule_hold = (~hold | ((~read_enters | read_open_in) & (~write_enters | write_open_in)))
   & (~read_open_in | read$ready == read_skid$in_ready)
   & (~write_open_in | write$ready == write_skid$in_ready);
// With `hold`, `idle` says that no TLP is under way: none has begun on any side, none is inside.
wire rule_idle = idle == none;

// What was offered is what its buffer held, and belongs to the TLP under way.
wire lemma_offered = ~waiting
   | ((offered ? write_waits : read_waits) & out_then == (offered ? write_then : read_then)
      & (~under_way | offered == side));

// The registers say the same.
wire lemma_registers = in_tlp$q == under_way & waits$q == waiting & quiet$q == none
   & writing$q == (waiting ? offered : side)
   & read_begun$q == read_open_in & write_begun$q == write_open_in;
