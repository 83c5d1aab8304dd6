# Processes that stop, are many, or reach a limit; signals; programs that close what they have not opened.
# needs: python3
# links: 40
source "${0%/*}/common.bash"
# Nothing is left in the source tree.
export PYTHONDONTWRITEBYTECODE=1
parts=(faults closing signals)
for part in "${parts[@]}"; do
    $RUN python3 "${0%/*}/$part.py" > "$FOLDER/$part" &
done
for job in $(jobs -p); do
    wait "$job"
done
for part in "${parts[@]}"; do
    cat "$FOLDER/$part"
done
