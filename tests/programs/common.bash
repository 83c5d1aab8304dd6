# For the programs of this folder. Each is run twice, by TCP and by VIA, and must say the same both times.
# It gets RUN, what is put before a program (nothing, or `viaduct run ...`), CLIENT, the same for programs
# that connect, where that may be another device, a PORT that is free, and a FOLDER of its own. `# needs:`
# names Debian packages, `# links:` how many ends of connections move to VIA at least, `# bytes:` how many
# bytes are received by VIA, `# also:` devices on which it runs as well; such scripts use CLIENT.
set -euo pipefail
trap 'kill $(jobs -p) 2>/dev/null || true; wait 2>/dev/null || true' EXIT

# Waits until somebody listens at a port.
listening() {
    local place
    place=$(printf ':%04X 0+:0000 0A' "$1")
    for _ in $(seq 200); do
        grep -qE "$place" /proc/net/tcp /proc/net/tcp6 && return
        sleep 0.05
    done
    echo "nobody listens at $1"
    exit 1
}

# A file of so many bytes, always the same ones.
content() {
    python3 -c 'import random, sys; sys.stdout.buffer.write(random.Random(1).randbytes(int(sys.argv[1])))' "$1"
}

# Less of what is large by default, on devices that are slower.
size() {
    [[ $RUN == *--device* ]] && echo "$2" || echo "$1"
}
