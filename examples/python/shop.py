"""A shop that sells only what is held: it verifies the reservation token, writes
the order, and says so to the edge. It needs stockgate_token.py and the package cryptography.

  STOCKGATE_JWKS_URL   https://shop.example.com/.well-known/jwks.json
  STOCKGATE_API_URL    http://10.0.0.1:8444/stockgate, where stockgate_api is mounted
  STOCKGATE_API_KEY    its key
"""
import json
import os
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from stockgate_token import Verifier

lock = threading.Lock()
orders = {}  # reservation → pending, confirmed or refused: a table with a UNIQUE column
verifier = Verifier("order-backend", jwks_url=os.environ["STOCKGATE_JWKS_URL"])


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def order(headers, wanted):
    signed = ", ".join(headers.get_all("Stockgate-Token", []))
    line = {"sku": wanted["sku"], "qty": wanted["quantity"], "region": wanted.get("region", "")}
    reason, claims = verifier.verify(signed, headers.get("X-User-Id"), lines=[line], known=orders.__contains__)
    if reason not in ("ok", "known"):  # an order that was written keeps its answer
        raise Refused(503 if reason == "keys_unavailable" else 403, reason)
    jti = claims["jti"]
    with lock:
        state = orders.setdefault(jti, "pending")
    if state == "pending":
        state = orders[jti] = confirm(jti, signed)
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
