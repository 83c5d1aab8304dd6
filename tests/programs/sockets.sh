# Every way to use sockets, case by case.
# needs: python3
# links: 20
source "${0%/*}/common.bash"
$RUN python3 "${0%/*}/sockets.py"
