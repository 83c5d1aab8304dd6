# Connections that move at any time, each byte compared.
# needs: python3
# links: 40
# also: udp:
source "${0%/*}/common.bash"
$RUN python3 "${0%/*}/stress.py" processes 60
$RUN python3 "${0%/*}/stress.py" threads 60
