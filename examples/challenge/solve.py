"""Solves the challenge of a Stockgate edge for a client without a browser.

    python3 solve.py 1.29906640.12.my3teqoPEzIOwrFRd2GHQA

prints the value of the header Challenge-Solution. A task is four words with dots between:

    "1" . minute . bits . seed        minutes since 1970, 22 characters of base64url; use it unchanged

It is solved like this:

    hash = SHA-256(task)              the ASCII text
    four times:
        find a nonce, 1 to 16 decimal digits, such that
        SHA-256(hash || nonce) begins with bits - 2 zero bits
        hash = that hash              its 32 bytes; the nonce as ASCII
    solution = task . nonce . nonce . nonce . nonce

docs/filters.md#challenge has the headers, and how long a task is valid.
"""

import hashlib
import itertools
import secrets
import sys


def solve(task):
    version, _, bits, _ = task.split(".")
    if version != "1" or not 2 <= int(bits) <= 34:
        raise ValueError("unknown challenge")
    limit = 1 << 256 - (int(bits) - 2)
    solution, digest = task, hashlib.sha256(task.encode()).digest()
    for _ in range(4):
        # others behind the same address have the same task, and a solution serves one order
        for nonce in itertools.count(secrets.randbelow(1 << 52)):
            found = hashlib.sha256(digest + b"%d" % nonce).digest()
            if int.from_bytes(found, "big") < limit:
                break
        solution, digest = f"{solution}.{nonce}", found
    return solution


if __name__ == "__main__":
    print(solve(sys.argv[1]))
