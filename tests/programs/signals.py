"""Signals in calls that wait, which end as the kernel's calls do, as `sockets.py` has cases.

`python3 signals.py`
"""

import ctypes
import errno
import select
import signal
import socket
import struct
import time

from sockets import data, digest, main, rest, take

libc = ctypes.CDLL(None, use_errno=True)


class Timeval(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("micros", ctypes.c_long)]


def called(call, bound=0.05):
    """What a call of the C library gives that a signal interrupts."""
    signal.setitimer(signal.ITIMER_REAL, bound)
    result = call()
    code = ctypes.get_errno()
    signal.setitimer(signal.ITIMER_REAL, 0)
    return errno.errorcode.get(code, code) if result < 0 else "done"


def interrupted(sock, restarts):
    place = ctypes.create_string_buffer(16)
    number = sock.fileno()
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    full = [socket.create_connection(listener.getsockname())]
    pollfd = struct.pack("ihh", number, select.POLLIN, 0)
    events = ctypes.create_string_buffer(12)
    epoll = select.epoll()
    epoll.register(sock, select.EPOLLIN)
    reads = (ctypes.c_ulong * 16)()

    def selects():
        reads[number // 64] |= 1 << number % 64
        return libc.select(number + 1, reads, None, None, None)

    waits = {
        "poll": lambda: libc.poll(pollfd, 1, -1),
        "timed poll": lambda: libc.poll(pollfd, 1, 5000),
        "ppoll": lambda: libc.ppoll(pollfd, 1, None, None),
        "select": selects,
        "epoll": lambda: libc.epoll_wait(epoll.fileno(), events, 1, -1),
    }
    calls = {
        "recv": lambda: libc.recv(number, place, 1, 0),
        "read": lambda: libc.read(number, place, 1),
    }
    seen = {}
    for name, call in waits.items():
        seen[name] = called(call)
    if not restarts:
        for name, call in calls.items():
            seen[name] = called(call)
        empty = socket.create_server(("127.0.0.1", 0))
        seen["accept"] = called(lambda: libc.accept(empty.fileno(), None, None))
        late = socket.socket()
        address = struct.pack("=H", socket.AF_INET) + struct.pack(
            "!H4s8x", listener.getsockname()[1], socket.inet_aton("127.0.0.1")
        )
        seen["connect"] = called(lambda: libc.connect(late.fileno(), address, 16))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 5, 0))
    seen["limited recv"] = called(calls["recv"])
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 0))
    return seen


def signals_server(sock):
    assert take(sock, 1) == b"r"
    time.sleep(0.2)
    sock.sendall(b"late")
    assert take(sock, 1) == b"w"
    time.sleep(0.5)
    return digest(rest(sock))


def signals_client(sock):
    count = []
    # Python's own handler of SIGINT wants calls to end, also where that of SIGALRM has them go on.
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGALRM, lambda *_: count.append(1))
    seen = [interrupted(sock, False)]
    signal.siginterrupt(signal.SIGALRM, False)
    seen.append(interrupted(sock, True))
    seen.append(len(count))
    # A handler that has calls go on: what comes is what the call gives.
    place = ctypes.create_string_buffer(16)
    sock.sendall(b"r")
    seen.append([called(lambda: libc.recv(sock.fileno(), place, 16, 0)), place.value])
    # Sends: what was sent before the signal counts.
    signal.siginterrupt(signal.SIGALRM, True)
    sock.sendall(b"w")
    content, sent = data("interrupted", 30 << 20), 0
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    stops = 0
    while sent < len(content):
        part = content[sent : sent + (4 << 20)]
        result = libc.send(sock.fileno(), part, len(part), 0)
        if result < 0:
            assert ctypes.get_errno() == errno.EINTR
        else:
            sent += result
        stops += result < len(part)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return [*seen, "interrupted" if stops else "never interrupted", digest(content)]


if __name__ == "__main__":
    main(globals(), __file__, side_by_side=True)
