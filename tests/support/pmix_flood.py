"""Handshakes that no PMIx server expects: pmix_flood.py PORT COUNT SEED [UID]

Each is a header as PMIx's, with a size that fits or not, and bytes at random. Prints how many were answered by
more than a closed connection.
"""

import os
import random
import socket
import struct
import sys


def handshake(noise):
    size = noise.choice((0, 1, 7, 64, 300, 4096, 70000))
    body = bytes(noise.choice((0, 0, 1, 65, 255, noise.randrange(256))) for _ in range(min(size, 4096)))
    claimed = noise.choice((size, size, size, 0, 2**31, 2**63))
    return struct.pack("!iIQ", noise.choice((-1, 0, 1, 2**31 - 1)), noise.choice((0, 1, 2**32 - 1)), claimed) + body


def main(port, count, seed, uid=None):
    socket.getaddrinfo("127.0.0.1", port)  # loads what another user may not read
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    noise = random.Random(seed)
    heard = 0
    for _ in range(count):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                connection.sendall(handshake(noise))
                connection.shutdown(socket.SHUT_WR)
                heard += bool(connection.recv(1))
        except ConnectionRefusedError:
            break  # the server is gone
        except OSError:
            continue
    print(heard)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
