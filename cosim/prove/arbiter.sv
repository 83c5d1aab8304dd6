// Fair arbiter (hdl/src/leaf/arbiter.rs), by its page.
localparam COUNT = `COUNT;

// One client, chosen freely once and for all, and the grants to others while it asks.
reg [7:0] client;
reg [7:0] others;
initial others = 0;
wire asks = request[client];
always @(posedge clock) begin
   client <= client;
   if (reset | ~asks) others <= 0;
   else if (advance) others <= grant[client] ? 0 : others + 1;
end
// The client is one of them.
wire given_client = client < COUNT;

// grant: one-hot, or zero; no double grant.
wire rule_single = (grant & (grant - 1'b1)) == 0;
// Only who asks is granted.
wire rule_asked = (grant & ~request) == 0;
// valid: any request; then somebody is granted.
wire rule_valid = (valid == |request) & (valid == |grant);
// grant_index: the number of the grant, zero without.
wire rule_index = valid ? grant == ({{(COUNT - 1){1'b0}}, 1'b1} << grant_index) : grant_index == 0;
// A request that stays is granted after at most COUNT - 1 other grants.
wire rule_fair = others < COUNT;

wire [COUNT-1:0] below = ~above;
// `above` has ones from somewhere on.
wire lemma_above = (below & (below + 1'b1)) == 0;
reg [7:0] first;
integer index;
always @(*) begin
   first = 0;
   for (index = 0; index < COUNT; index = index + 1)
      if (~above[index]) first = index + 1;
   if (above == 0) first = 0;
end
wire [7:0] distance = client >= first ? client - first : client + COUNT - first;
// Whoever waits is overtaken only by those between the pointer and it.
wire lemma_distance = ~asks | others + distance < COUNT;
