# iperf3, one stream each way, and two at once. Long enough that they move, which takes tens of milliseconds.
# needs: iperf3
# links: 4
source "${0%/*}/common.bash"
$RUN iperf3 -s -p "$PORT" >/dev/null &
listening "$PORT"
for options in "-n 1000M" "-n 1000M -R" "-n 500M -P 2"; do
    $RUN iperf3 -c 127.0.0.1 -p "$PORT" $options -J >"$FOLDER/out"
    python3 -c '
import json, sys
end = json.load(open(sys.argv[1]))["end"]
sent, got = end["sum_sent"]["bytes"], end["sum_received"]["bytes"]
print(sys.argv[2], "moved all" if sent >= 500 << 20 and got >= 0.9 * sent else [sent, got])
' "$FOLDER/out" "$options"
done
