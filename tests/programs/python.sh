# Python's own tests of sockets, both ends in one process: each test has the same verdict.
# needs: python3 libpython3.11-testsuite
# links: 50
source "${0%/*}/common.bash"
cd "$FOLDER"
tests="test_socket test_selectors test_ftplib test_ssl test_asyncio.test_streams
    test_asyncio.test_sock_lowlevel test_asyncio.test_sendfile test_asyncio.test_server"
for test in $tests; do
    # Without those that need a virtual machine's sockets.
    $RUN /usr/bin/python3 -m test -i '*VSOCK*' --junit-xml "$FOLDER/$test.xml" "test.$test" >"$test.log" &
done
for job in $(jobs -p); do
    wait "$job" || echo "a test failed"
done
for test in $tests; do
    /usr/bin/python3 - "$test.xml" <<'END' | sort
import sys, xml.etree.ElementTree as tree
for case in tree.parse(sys.argv[1]).iter("testcase"):
    print(case.get("name"), case.get("result"), *sorted(part.tag for part in case if "out" not in part.tag))
END
done
