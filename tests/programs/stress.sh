# Connections that move at any time, each byte compared.
# needs: python3
# links: 20
# also: udp:
source "${0%/*}/common.bash"
# Other devices are slower.
count=60
[[ $RUN == *--device* ]] && count=12
$RUN python3 "${0%/*}/stress.py" processes $count
$RUN python3 "${0%/*}/stress.py" threads $count
