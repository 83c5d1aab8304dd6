// Merging of reads and writes (hdl/src/pcie/rq.rs), by its page.
//
// The three buffers are taken out: what they promise is the proof `skid`. So a beat `moves` when it
// goes from an input's buffer into that of the output.
wire read_enters = read$valid & read$ready;
wire write_enters = write$valid & write$ready;
wire read_moves = read_skid$out_valid & read_skid$out_ready;
wire write_moves = write_skid$out_valid & write_skid$out_ready;
wire enters_out = skid$in_valid & skid$in_ready;
wire last = skid$in_data[64];

// A TLP has begun on its way out, and of which side; the same for the side of the last one.
reg under_way, side;
// A TLP has begun to come in.
reg read_open_in, write_open_in;
// Last cycle's beats at the buffers' outputs, if they were not taken; and what says `idle`.
reg read_waits, write_waits;
reg [64:0] read_then, write_then;
reg none;
initial begin
   under_way = 0; side = 0; read_open_in = 0; write_open_in = 0; read_waits = 0; write_waits = 0;
   none = 0;
end
always @(posedge clock) begin
   if (enters_out) begin under_way <= ~last; side <= write_moves; end
   if (read_enters) read_open_in <= ~read$last;
   if (write_enters) write_open_in <= ~write$last;
   read_waits <= read_skid$out_valid & ~read_moves & ~reset;
   write_waits <= write_skid$out_valid & ~write_moves & ~reset;
   read_then <= read_skid$out_data; write_then <= write_skid$out_data;
   none <= ~reset & hold & ~under_way & ~read_open_in & ~write_open_in
      & ~read_skid$out_valid & ~write_skid$out_valid & ~skid$out_valid;
   if (reset) begin under_way <= 0; side <= 0; read_open_in <= 0; write_open_in <= 0; end
end

// A buffer's beat stays until it is taken (proof `skid`).
wire given_stays = (~read_waits | (read_skid$out_valid & read_skid$out_data == read_then))
   & (~write_waits | (write_skid$out_valid & write_skid$out_data == write_then));

// A TLP is never mixed with one of the other side.
wire rule_whole = ~(enters_out & under_way) | write_moves == side;
// Each beat goes out once: the one that leaves its buffer, unchanged.
wire rule_once = enters_out == (read_moves | write_moves) & ~(read_moves & write_moves)
   & (~read_moves | skid$in_data == read_skid$out_data)
   & (~write_moves | skid$in_data == write_skid$out_data);
// Reads and writes take turns when both wait.
wire rule_turns = ~(enters_out & ~under_way & read_skid$out_valid & write_skid$out_valid)
   | write_moves == ~side;
// Nobody waits for nothing: a TLP that is there goes when nothing is under way.
wire rule_busy = ~((read_skid$out_valid | write_skid$out_valid) & ~under_way & skid$in_ready)
   | enters_out;
// With `hold` no TLP begins to come in, and what has begun goes on.
wire rule_hold = (~hold | ((~read_enters | read_open_in) & (~write_enters | write_open_in)))
   & (~read_open_in | read$ready == read_skid$in_ready)
   & (~write_open_in | write$ready == write_skid$in_ready);
// With `hold`, `idle` says that no TLP is under way: none has begun on any side, none is inside.
wire rule_idle = idle == none;

// The registers say the same.
wire lemma_registers = in_tlp$q == under_way & writing$q == side & quiet$q == none
   & read_begun$q == read_open_in & write_begun$q == write_open_in;
