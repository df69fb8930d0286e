"""Verifies reservation tokens of Stockgate. Copy this file into your shop. It needs Python 3.9 and, for tokens
that are signed with EdDSA, the package cryptography: the standard library has no Ed25519. With a shared secret
(HS256) it needs nothing else.

    verifier = Verifier("order-backend", jwks_url="https://shop.example.com/.well-known/jwks.json")
    reason, claims = verifier.verify(token, subject=buyer, lines=[{"sku": "7", "qty": 1}], known=has_order)

The reasons, and what the shop answers to each, are in docs/shop.md.
"""
import base64
import hashlib
import hmac
import json
import threading
import time
import urllib.request
from http.client import HTTPException

MAX_SIZE = 4096  # of a token
MAX_SET = 256 << 10  # of a JWKS
MAX_UNITS = 10**12
MAX_DEPTH = 16  # of values that are not known
FIRST_INTERVAL, INTERVAL, MAX_AGE = 1, 10, 3600  # of fetches, in seconds


class Refused(Exception):
    """Why a token is refused; claims are there if it is genuine."""

    def __init__(self, reason, claims=None):
        super().__init__(reason)
        self.reason, self.claims = reason, claims


class Verifier:
    """Give jwks_url, secret (as in `key hmac`) or both. leeway is how many seconds after exp a token still counts;
    keep it below the margin of the edge (1 s). now returns Unix seconds. It may be used by many threads."""

    def __init__(self, audience, jwks_url=None, secret=None, issuer="stockgate", leeway=0, timeout=5, now=time.time):
        if not audience or not 0 <= leeway <= 60 or not (jwks_url or secret):
            raise ValueError("give an audience, jwks_url or secret, and a leeway of 0 to 60 seconds")
        if jwks_url and not jwks_url.startswith(("http://", "https://")):
            raise ValueError("give a whole http or https URL")
        if jwks_url:
            import cryptography  # noqa: F401  without it the first order would fail
        self.audience, self.issuer, self.leeway, self.now = audience, issuer, leeway, now
        self.secrets = {}
        if secret:
            raw = secret.encode()
            if len(raw) < 32 or secret.strip() != secret:
                raise ValueError("the secret has less than 32 bytes, or white space around it")
            self.secrets[thumbprint({"k": encode(raw), "kty": "oct"})] = ("HS256", lambda message, mac: hmac.compare_digest(
                hmac.new(raw, message, hashlib.sha256).digest(), mac))
        self.remote = Remote(jwks_url, timeout, now) if jwks_url else None

    def verify(self, token, subject=None, any_subject=False, lines=None, known=None):
        """Returns (reason, claims): "ok" and the claims, or why the shop must not sell. token is the value of the
        header Stockgate-Token, None without one. subject is the buyer; lines are the order's, None is not compared;
        known(jti) reports whether the shop has answered that id before."""
        try:
            claims = self.genuine(token)
            if not subject and not any_subject or subject and subject != claims["sub"]:
                raise Refused("subject", claims)
            if lines is not None and not same(claims["lines"], lines):
                raise Refused("lines", claims)
            if known and known(claims["jti"]):
                raise Refused("known", claims)
            if self.now() - self.leeway >= claims["exp"]:
                raise Refused("expired", claims)
            return "ok", claims
        except Refused as err:
            return err.reason, err.claims

    def genuine(self, token):
        if not token:
            raise Refused("missing")
        if "," in token:
            raise Refused("repeated")
        parts = token.split(".") if len(token) <= MAX_SIZE else []
        if len(parts) != 3:
            raise Refused("malformed")
        header, body, signature = map(decode, parts)
        valid = self.key(read(header))
        if not valid(token[: token.rindex(".")].encode(), signature):
            raise Refused("signature")
        claims = check(read(body))
        if claims["iss"] != self.issuer:
            raise Refused("issuer")
        if claims["aud"] != self.audience:
            raise Refused("audience")
        return claims

    def key(self, header):
        need(header, {"typ": str, "alg": str, "kid": str})
        if "crit" in header:
            raise Refused("malformed")
        if header["typ"] != "stockgate+jwt":
            raise Refused("type")
        if header["alg"] not in ("EdDSA", "HS256"):
            raise Refused("algorithm")
        found = self.secrets.get(header["kid"]) or (self.remote and self.remote.find(header["kid"]))
        if not found:
            raise Refused("unknown_key")
        alg, valid = found
        if alg != header["alg"]:  # the algorithm belongs to the key, the token cannot choose it
            raise Refused("algorithm")
        return valid


class Remote:
    """The keys of the edge: fetched when first needed, again for an unknown key and each hour, at a bounded rate.
    They stay while the edge is away."""

    def __init__(self, url, timeout, now):
        self.url, self.timeout, self.now = url, timeout, now
        self.lock = threading.Lock()
        self.keys, self.begun, self.fetched, self.failed = {}, None, None, False

    def find(self, kid):
        found = self.keys.get(kid)
        if found and abs(self.now() - self.fetched) < MAX_AGE:
            return found
        # Only one thread fetches; those that have a key do not wait for it.
        if self.lock.acquire(blocking=not found):
            try:
                if self.due(kid):
                    self.fetch()
                found = found or self.keys.get(kid)
                if not found and self.failed:
                    raise Refused("keys_unavailable")
            finally:
                self.lock.release()
        return found

    def due(self, kid):
        now = self.now()
        interval = FIRST_INTERVAL if self.fetched is None else INTERVAL
        if self.begun is not None and abs(now - self.begun) < interval:
            return False
        return kid not in self.keys or abs(now - self.fetched) >= MAX_AGE

    def fetch(self):
        self.begun, self.failed = self.now(), True
        try:
            opener = urllib.request.build_opener(NoRedirect)
            with opener.open(self.url, timeout=self.timeout) as answer:
                text = answer.read(MAX_SET + 1)
                if answer.status != 200 or len(text) > MAX_SET:
                    return
            keys = public_keys(json.loads(text)["keys"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError, HTTPException):
            return
        if keys:
            self.keys, self.fetched, self.failed = keys, self.now(), False


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """The URL decides which server is trusted; an answer does not."""

    def redirect_request(self, *_):
        return None


def public_keys(jwks):
    """The Ed25519 keys of a JWKS, by thumbprint; all others are passed over, above all secrets."""
    found = {}
    for jwk in jwks:
        if not isinstance(jwk, dict) or jwk.get("kty") != "OKP" or jwk.get("crv") != "Ed25519":
            continue
        if jwk.get("use") not in (None, "", "sig") or jwk.get("alg") not in (None, "", "EdDSA"):
            continue
        try:
            raw = decode(jwk.get("x"))
        except (Refused, TypeError):
            continue
        if len(raw) == 32:
            found[thumbprint({"crv": "Ed25519", "kty": "OKP", "x": jwk["x"]})] = ("EdDSA", ed25519(raw))
    return found


def ed25519(raw):
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = Ed25519PublicKey.from_public_bytes(raw)

    def valid(message, signature):
        try:
            key.verify(signature, message)
            return True
        except InvalidSignature:
            return False

    return valid


def thumbprint(members):
    """RFC 7638: the kid of a key."""
    return encode(hashlib.sha256(json.dumps(members, sort_keys=True, separators=(",", ":")).encode()).digest())


def encode(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(part):
    """base64url without padding, in the one spelling that the bytes have."""
    try:
        raw = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        raise Refused("malformed") from None
    if encode(raw) != part:
        raise Refused("malformed")
    return raw


def read(raw):
    """An object of I-JSON (RFC 7493): every reader sees the same in it."""
    try:
        value = json.loads(raw.decode(), object_pairs_hook=members, parse_int=integer, parse_constant=constant)
        texts(value)
    except (ValueError, RecursionError):
        raise Refused("malformed") from None
    if not isinstance(value, dict):
        raise Refused("malformed")
    return value


def members(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name comes twice")
    return found


def integer(text):
    """A number of 64 bits; others are no number that a claim may be."""
    value = int(text) if len(text) <= 20 else None
    return value if value is not None and -(2**63) <= value < 2**63 else None


def constant(name):
    raise ValueError(name + " is no JSON")


def texts(value):
    """Half of a surrogate pair is no text."""
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, dict):
        for name, inner in value.items():
            texts(name)
            texts(inner)
    elif isinstance(value, list):
        for inner in value:
            texts(inner)


def need(found, required, optional=()):
    """Members of these types; what else there is may nest MAX_DEPTH deep."""
    for name, kind in {**required, **dict(optional)}.items():
        if name not in found and name in required or name in found and type(found[name]) is not kind:
            raise Refused("malformed")
    for name, value in found.items():
        if required.get(name) is not list and height(value) > MAX_DEPTH:
            raise Refused("malformed")


def height(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(height, inner), default=0)


def check(claims):
    need(claims, {"iss": str, "aud": str, "sub": str, "jti": str, "iat": int, "exp": int, "ep": int, "sale": str, "lines": list}, {"ref": str})
    if not (claims["sub"] and claims["jti"] and claims["sale"] and claims["lines"]):
        raise Refused("malformed")
    if not 0 <= claims["iat"] < claims["exp"] or claims["ep"] < 0:
        raise Refused("malformed")
    for line in claims["lines"]:
        if not isinstance(line, dict):
            raise Refused("malformed")
        need(line, {"sku": str, "qty": int}, {"region": str})
        if not line["sku"] or not 1 <= line["qty"] <= MAX_UNITS:
            raise Refused("malformed")
    return claims


def same(held, order):
    """Whether the order takes exactly what is held: in any order, equal lines summed. Stock that is held without a
    region answers for any region."""
    left = {}
    for line in held:
        cell = line["sku"], line.get("region", "")
        left[cell] = left.get(cell, 0) + line["qty"]
    for line in order:
        cell = line["sku"], line.get("region") or ""
        if cell not in left:
            cell = line["sku"], ""
        if type(line["qty"]) is not int or not 1 <= line["qty"] <= left.get(cell, 0):
            return False
        left[cell] -= line["qty"]
    return not any(left.values())
