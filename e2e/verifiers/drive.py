"""Verifies what the test says, a JSON line each, with examples/python/stockgate_token.py."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples" / "python"))
sys.dont_write_bytecode = True
from stockgate_token import Verifier  # noqa: E402

now = 0
for text in sys.stdin:
    step = json.loads(text)
    now = step["now_ms"] / 1000
    if step["first"]:
        try:
            verifier = Verifier(step["audience"], step["url"], step["secret"], step["issuer"], step["leeway_ms"] / 1000, now=lambda: now)
        except ValueError:
            print('{"reason":"options"}', flush=True)
            continue
    known = None if step["known"] is None else step["known"].__contains__
    reason, claims = verifier.verify(step["token"], step["subject"], step["any_subject"], step["lines"], known)
    print(json.dumps({"reason": reason, "id": claims["jti"] if claims else ""}), flush=True)
