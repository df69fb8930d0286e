"""What the Python shops have in common: how a value is told to the harness."""
import decimal
import math
import re
import sqlite3
import threading

local = threading.local()


def value(v):
    if v is None:
        return None
    if isinstance(v, str):
        try:
            v.encode()
        except UnicodeEncodeError:
            return "x:not UTF-8"
        return "s:" + v
    if isinstance(v, (int, float)) and not isinstance(v, bool):
        return "n:" + repr(v)
    return "x:" + type(v).__name__


def casts(sku):
    """What programs make of a SKU that their database has as a number."""
    out = []
    for cast in (int, float, decimal.Decimal, lambda s: int(s, 0), lambda s: int(s, 10),
                 lambda s: round(float(s)), lambda s: math.ceil(float(s)), lambda s: int(float(s))):
        try:
            out.append(str(cast(sku)))
        except (ValueError, TypeError, ArithmeticError):
            pass
    if isinstance(sku, str) and "\x00" not in sku:
        try:
            db = getattr(local, "db", None)
            if db is None:
                db = local.db = sqlite3.connect(":memory:")
            row = db.execute("SELECT CAST(? AS INTEGER), CAST(? AS REAL), CAST(? AS NUMERIC), ? + 0, round(?)", [sku] * 5).fetchone()
            out += [str(v) for v in row]
        except (sqlite3.Error, UnicodeError):
            pass
    return out


def reading(how, source, got):
    r = {"how": how, "from": source}
    if got is None or not hasattr(got, "get"):
        return r
    sku = got.get("sku")
    r.update(sku=value(sku), quantity=value(got.get("quantity")), user=value(got.get("user")))
    if isinstance(sku, (str, int, float)):
        r["casts"] = casts(sku)
    order = got.get("order")
    items = order.get("items") if isinstance(order, dict) else None
    if isinstance(items, list):
        r["lines"] = [[value(l.get("sku")), value(l.get("count"))] if isinstance(l, dict) else ["x:line", None] for l in items]
    elif items is not None:
        r["lines"] = [["x:" + type(items).__name__, None]]
    r.setdefault("lines", form_lines(got))
    return r


def form_lines(got):
    """The lines in arrays of a form, which is a set of names for Python."""
    rows, lists = {}, {}
    for name in got:
        if not isinstance(name, str):
            continue
        if m := re.fullmatch(r"items\[(\d+)\]\[(sku|count)\]", name, re.ASCII):
            rows.setdefault(m[1], {})[m[2]] = got.get(name)
        elif m := re.fullmatch(r"qty\[([^\[\]]+)\]", name):
            rows[m[1]] = {"sku": m[1], "count": got.get(name)}
        elif name in ("skus[]", "counts[]") and hasattr(got, "getlist"):
            lists[name] = got.getlist(name)
    if "skus[]" in lists:
        counts = lists.get("counts[]", [])
        return [[value(sku), value(counts[i] if i < len(counts) else None)] for i, sku in enumerate(lists["skus[]"])]
    return [[value(row.get("sku")), value(row.get("count"))] for row in rows.values()] or None


def merged(*parts):
    out = {}
    for part in parts:
        if hasattr(part, "items"):
            out.update(part.items())
    return out
