"""What becomes of connections when something is wrong: processes that stop, are many, or reach a limit, and
connections that do not come about. Case by case, as `sockets.py` has them.

`python3 faults.py [CASE...]` runs all cases side by side, or those.
"""

import errno
import hashlib
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from sockets import data, digest, in_thread, main, place_of, rest, take, warm

STOPPED = 3
BIG = 5 << 20


# A process that ends and leaves its connection open: the other end learns of it, and does not end before.


def leaves_open_server(sock):
    warm(sock, True)
    got = take(sock, BIG)
    began = time.monotonic()
    return digest(got), rest(sock), time.monotonic() - began < 1


def leaves_open_client(sock):
    warm(sock, False)
    sock.sendall(data("behind it", BIG))
    sock.detach()


# A process that is stopped: the other end waits, and nothing is lost.


def stop(process):
    """Stops a process, and has it go on after a while."""
    os.kill(process, signal.SIGSTOP)
    return in_thread(lambda: (time.sleep(STOPPED), os.kill(process, signal.SIGCONT)))


def tell_process(sock):
    sock.sendall(b"%08d" % os.getpid())


def stopped_client_server(sock):
    thread = stop(int(take(sock, 8)))
    sock.sendall(data("to a stopped one", BIG))
    sock.shutdown(socket.SHUT_WR)
    thread.join()
    return digest(rest(sock))


def stopped_client_client(sock):
    tell_process(sock)
    got = rest(sock)
    sock.sendall(got[:100000])
    return digest(got)


def stopped_server_server(sock):
    tell_process(sock)
    got = rest(sock)
    sock.sendall(got[:100000])
    return digest(got)


def stopped_server_client(sock):
    return stopped_client_server(sock)


def stopped_early_server(sock):
    """A new connection, whose other end stops while it moves."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sock.sendall(struct.pack("!H", listener.getsockname()[1]))
        other, _ = listener.accept()
    tell_process(other)
    for _ in range(6):
        other.sendall(take(other, 5))
    got = take(other, BIG)
    other.sendall(b"done")
    return digest(got)


def stopped_early_client(sock):
    [port] = struct.unpack("!H", take(sock, 2))
    other = socket.create_connection(("127.0.0.1", port))
    process = int(take(other, 8))
    for turn in range(6):
        other.sendall(b"%05d" % turn)
        assert take(other, 5) == b"%05d" % turn
    thread = stop(process)
    content = data("early", BIG)
    for at in range(0, BIG, 50000):
        other.sendall(content[at : at + 50000])
    thread.join()
    return take(other, 4)


# Connections that do not come about.


def never_accepted_server(sock):
    """A listener that never accepts, and then closes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sock.sendall(struct.pack("!H", listener.getsockname()[1]))
        take(sock, 1)
    sock.sendall(b"x")


def never_accepted_client(sock):
    [port] = struct.unpack("!H", take(sock, 2))
    other = socket.create_connection(("127.0.0.1", port))
    for _ in range(20):
        other.sendall(b"hello")
    other.settimeout(0.3)
    seen = []
    try:
        other.recv(1)
    except TimeoutError:
        seen.append("nothing comes")
    sock.sendall(b"x")
    take(sock, 1)
    other.settimeout(5)
    try:
        seen.append(other.recv(1))
    except ConnectionResetError:
        seen.append("reset")
    return seen


def backlog_server(sock):
    listener = socket.create_server(("127.0.0.1", 0), backlog=1)
    sock.sendall(struct.pack("!H", listener.getsockname()[1]))
    take(sock, 1)
    got = []
    for _ in range(3):
        other, _ = listener.accept()
        warm(other, True)
        got.append(digest(rest(other)))
    return got


def backlog_client(sock):
    """More connections than a listener has room for: those come later."""
    place = place_of(sock)
    accepted = [socket.create_connection(place) for _ in range(2)]
    late = socket.socket()
    late.setblocking(False)
    assert late.connect_ex(place) == errno.EINPROGRESS
    poll = select.poll()
    poll.register(late, select.POLLOUT)
    seen = [poll.poll(300)]
    sock.sendall(b"x")
    for other in accepted:
        warm(other, False)
        other.sendall(data("backlog", 300000))
        other.close()
    seen.append([event for _, event in poll.poll(10000)])
    late.setblocking(True)
    warm(late, False)
    late.sendall(data("late", 300000))
    late.close()
    return seen


def refused_server(sock):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sock.sendall(struct.pack("!H", listener.getsockname()[1]))
    sock.sendall(take(sock, 5))


def refused_client(sock):
    place = place_of(sock)
    sock.sendall(b"alive")
    seen = [take(sock, 5), sock.recv(1)]
    for _ in range(3):
        with socket.socket() as other:
            seen.append(errno.errorcode[other.connect_ex(place)])
            seen.append(errno.errorcode[failure(lambda: other.send(b"x"))])
    with socket.socket() as other:
        other.setblocking(False)
        code = other.connect_ex(place)
        select.select([], [other], [], 5)
        # Refused at once, or as soon as one looks.
        seen.append(errno.errorcode[code if code != errno.EINPROGRESS else option_error(other)])
    return seen


def failure(call):
    """The number of the error that a call ends with; 0: none."""
    try:
        call()
    except OSError as error:
        return error.errno
    return 0


def option_error(sock):
    return sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


def alone_server(sock):
    got = serve_new(sock, 2)
    sock.sendall(b"x")
    return got


def alone_client(sock):
    """The other end is a program without the library."""
    place = place_of(sock)
    code = f"import faults; [faults.ask_new({place!r}, seed) for seed in range(2)]"
    result = other_program(code, {"PATH": os.environ["PATH"]})
    return result, take(sock, 1)


# Limits.


def serve_new(sock, count):
    """A server of so many new connections, one after the other."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sock.sendall(struct.pack("!H", listener.getsockname()[1]))
        got = []
        for _ in range(count):
            other, _ = listener.accept()
            with other:
                warm(other, True)
                got.append(digest(rest(other)))
    return got


def ask_new(place, seed):
    with socket.create_connection(place) as other:
        warm(other, False)
        other.sendall(data(seed, 1 << 20))


def descriptors_server(sock):
    got = serve_new(sock, 3)
    sock.sendall(data("old", BIG))
    return got


def descriptors_client(sock):
    """The limit of descriptors is reached while a connection is open, and new ones come and go."""
    place = place_of(sock)
    free = os.dup(0)
    os.close(free)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 20, hard))
    opened = []
    fill = lambda: errno.errorcode[failure(lambda: [opened.append(os.dup(0)) for _ in range(100)])]
    seen = [fill(), len(opened), errno.errorcode[failure(socket.socket)]]
    for seed in range(3):
        # The library may want some as well.
        [os.close(opened.pop()) for _ in range(8)]
        ask_new(place, seed)
        seen.append(fill())
    seen.append(digest(rest(sock)))
    return seen


def descriptors_first_server(sock):
    return serve_new(sock, 2)


def descriptors_first_client(sock):
    """The same for a program that is at its limit before its first connection."""
    place = place_of(sock)
    return other_program(
        "import os, resource, sys, faults\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (8, hard))\n"
        "opened = []\n"
        "faults.failure(lambda: [opened.append(os.dup(0)) for _ in range(100)])\n"
        "os.close(opened.pop())\n"
        f"[faults.ask_new({place!r}, seed) for seed in range(2)]\n",
        os.environ,
    )


def other_program(code, environment):
    environment = {**environment, "PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}
    return subprocess.run([sys.executable, "-c", code], env=environment).returncode


MORE = 32 << 20


memory_server = descriptors_server


def memory_client(sock):
    """Address space ends while a connection is open, and new ones come and go."""
    place = place_of(sock)
    # The library has its share of what is left.
    pages = int(open("/proc/self/statm").read().split()[0])
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MORE, hard))
    for seed in range(3):
        ask_new(place, seed)
    got = hashlib.sha256()
    while part := sock.recv(65536):
        got.update(part)
    return got.hexdigest()[:12]


# Many processes.

CHILDREN = 100


def storm_server(sock):
    listener = socket.create_server(("127.0.0.1", 0), backlog=CHILDREN)
    sock.sendall(struct.pack("!H", listener.getsockname()[1]))
    got = [0]
    guard = threading.Lock()

    def serve(other):
        with other:
            for _ in range(30):
                other.sendall(take(other, 5))
            content = rest(other)
            other.sendall(content)
        with guard:
            got[0] += len(content)

    threads = [in_thread(serve, listener.accept()[0]) for _ in range(CHILDREN)]
    [thread.join() for thread in threads]
    return got


def storm_client(sock):
    """Children of a process that has a connection on VIA, each with one of its own."""
    place = place_of(sock)
    children = []
    for number in range(CHILDREN):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = storm_child(place, number)
            finally:
                os._exit(code)
        children.append(child)
    return sum(os.waitpid(child, 0)[1] != 0 for child in children)


def storm_child(place, number):
    with socket.create_connection(place) as other:
        for turn in range(30):
            other.sendall(b"%05d" % turn)
            assert take(other, 5) == b"%05d" % turn
        content = data(number, 50000)
        other.sendall(content)
        other.shutdown(socket.SHUT_WR)
        return 0 if rest(other) == content else 2


if __name__ == "__main__":
    main(globals(), __file__, side_by_side=True)
