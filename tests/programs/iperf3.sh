# iperf3, one stream each way, two at once, and one whose receiver counts every byte.
# needs: iperf3
# links: 4
source "${0%/*}/common.bash"
$RUN iperf3 -s -p "$PORT" >/dev/null &
listening "$PORT"
for options in "-n 200M" "-n 200M -R" "-n 100M -P 2"; do
    $RUN iperf3 -c 127.0.0.1 -p "$PORT" $options -J >"$FOLDER/out"
    python3 -c '
import json, sys
end = json.load(open(sys.argv[1]))["end"]
sent, got = end["sum_sent"]["bytes"], end["sum_received"]["bytes"]
print(sys.argv[2], "moved all" if sent >= 100 << 20 and got >= 0.9 * sent else [sent, got])
' "$FOLDER/out" "$options"
done
