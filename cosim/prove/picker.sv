// Fair choice among 64 peers (hdl/src/channel/picker.rs), by its page.

// One peer that waits and another one, chosen freely once and for all.
reg [5:0] client;
reg [5:0] other;
always @(posedge clock) begin client <= client; other <= other; end
wire asks = want[client];

// What was wanted one and two cycles ago, and whether there was a choice.
reg [63:0] want_1;
reg [63:0] want_2;
reg any_1;
// How often the other one was chosen while the client waited.
reg [2:0] passed;
// The client counted in the last cycle's search.
reg sought;
// What was offered and not taken.
reg [6:0] offer;
// Cycles for which the client waited with nobody chosen.
reg [4:0] idle;
initial begin want_1 = 0; want_2 = 0; any_1 = 0; passed = 0; sought = 0; offer = 0; idle = 0; end
always @(posedge clock) begin
   want_1 <= want;
   want_2 <= want_1;
   any_1 <= any$q;
   sought <= asking[client];
   offer <= reset | took ? 0 : {valid, peer};
   if (reset | ~asks | (left$q & index$q == client)) passed <= 0;
   else if (left$q & index$q == other) passed <= passed + 1;
   if (reset | ~asks | any$q) idle <= 0;
   else idle <= idle + 1;
end

// Only what was offered is taken.
wire given_took = ~took | valid;
// Two different ones.
wire given_other = client != other;

// Who is chosen wanted it when the search began, two cycles ago.
wire rule_wanted = ~any$q | any_1 | want_2[peer];
// A choice stays until it is taken.
wire rule_stays = ~offer[6] | offer == {valid, peer};
// Nobody passes another one by more than twice.
wire rule_fair = passed <= 2;
// While somebody waits, there is a choice after at most six cycles.
wire rule_soon = idle <= 6 & (any$q | idle < 6);

// Who was taken is who was offered.
wire lemma_left = ~left$q | any$q;
// Who is offered is of this round.
wire lemma_any = ~any$q | round$q[index$q];
wire [5:0] found = {group$index[2:0], lowest$q[{group$index[2:0], 2'b0} +: 3]};
// Who would be chosen now is of this round, and wanted it a cycle ago.
wire lemma_found = pause$q != 0 | ~group$found | (round$q[found] & want_1[found]);
// Whom the search counted is in what it found.
wire lemma_filled = ~sought | filled$q[client[5:3]];
// After a choice there is a pause.
wire lemma_pause = pause$q <= 3 & (pause$q == 0 | ~any$q);
wire left_other = round$q[other];
// A client of this round is passed once more by each that is left of it; one that is not, by those, and then by all.
wire lemma_passed = ~asks | (round$q[client] ? passed + left_other <= 2 & (sought | passed <= 1)
                                              : passed + left_other <= 1);
// The pause, a new round, a search.
wire lemma_idle = pause$q != 0 ? idle + pause$q <= 3 :
                  any$q | idle <= 3 | (idle == 4 & round$q[client]) | (idle == 5 & sought);
