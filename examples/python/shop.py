"""A shop that sells only what is held: it verifies the reservation token, writes
the order, and says so to the edge. It needs the package cryptography.

  STOCKGATE_JWKS_URL   https://shop.example.com/.well-known/jwks.json
  STOCKGATE_API_URL    http://10.0.0.1:8444/stockgate, where stockgate_api is mounted
  STOCKGATE_API_KEY    its key
"""
import base64
import json
import os
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

lock = threading.Lock()
orders = {}  # reservation → pending, confirmed or refused: a table with a UNIQUE column
keys, fetched = {}, float("-inf")


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def decode(part):
    return base64.b64decode(part + "=" * (-len(part) % 4), altchars="-_", validate=True)


def key(kid):
    """The edge's public key; the set is fetched again for an unknown one, now and then."""
    global keys, fetched
    with lock:
        if kid not in keys and time.monotonic() - fetched > 10:
            fetched = time.monotonic()
            with urllib.request.urlopen(os.environ["STOCKGATE_JWKS_URL"], timeout=10) as answer:
                found = json.load(answer)["keys"]
            keys = {k["kid"]: Ed25519PublicKey.from_public_bytes(decode(k["x"])) for k in found if k.get("crv") == "Ed25519"}
        return keys[kid]


def verify(signed):
    """The claims of a genuine token, which may be past its exp."""
    try:
        head, body, signature = signed.split(".")
        header = json.loads(decode(head))
        # never what the token says: one algorithm, one type
        if header["alg"] != "EdDSA" or header["typ"] != "stockgate+jwt" or "crit" in header:
            raise ValueError("another kind of token")
        key(header["kid"]).verify(decode(signature), f"{head}.{body}".encode())
        claims = json.loads(decode(body))
        if claims["iss"] != "stockgate" or claims["aud"] != "order-backend":
            raise ValueError("a token for another buyer")
        return claims
    except (ValueError, KeyError, TypeError, InvalidSignature) as err:
        raise Refused(403, f"the token is not valid: {err!r}") from err


def order(headers, wanted):
    tokens = headers.get_all("Stockgate-Token", [])
    if len(tokens) != 1:
        raise Refused(403, "no reservation token")
    claims = verify(tokens[0])
    if claims["sub"] != headers.get("X-User-Id"):
        raise Refused(403, "the token is for another buyer")
    held = [(line["sku"], line["qty"], line.get("region")) for line in claims["lines"]]
    if held not in ([(wanted["sku"], wanted["quantity"], region)] for region in (None, wanted.get("region"))):
        raise Refused(403, "the token holds something else")
    jti = claims["jti"]
    with lock:
        # A genuine token that is late: an order that was written keeps its answer.
        if jti not in orders and claims["exp"] <= time.time():
            raise Refused(403, "the token has expired")
        state = orders.setdefault(jti, "pending")
    if state == "pending":
        state = orders[jti] = confirm(jti, tokens[0])
    if state == "refused":
        raise Refused(409, "the reservation has ended")
    return jti


def confirm(reservation, signed):
    """Tells the edge that the order is written. It may be asked again."""
    request = urllib.request.Request(
        f"{os.environ['STOCKGATE_API_URL']}/reservations/{reservation}/confirm",
        json.dumps({"token": signed}).encode(),
        {"Authorization": f"Bearer {os.environ['STOCKGATE_API_KEY']}", "Content-Type": "application/json"},
    )
    try:
        urllib.request.urlopen(request, timeout=10).close()
        return "confirmed"
    except urllib.error.HTTPError as err:
        reason = json.load(err).get("reason")
        if err.code == 409 or reason == "not_found":
            return "refused"  # refund_needed: give the money back
        raise Refused(502, f"the edge answers {err.code} {reason}") from err  # the order stays, to be confirmed later
    except OSError as err:
        raise Refused(502, "the edge does not answer") from err


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), 65536))
        try:
            if self.path != "/api/order":
                raise Refused(404, "not found")
            self.answer(201, order(self.headers, json.loads(body)))
        except Refused as err:
            self.answer(err.status, str(err))
        except (ValueError, KeyError, TypeError):
            self.answer(400, "the order cannot be read")

    def do_GET(self):
        self.answer(200, json.dumps(list(orders)))

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Shop).serve_forever()
