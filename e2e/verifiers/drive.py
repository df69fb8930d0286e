"""Verifies what the test says, a JSON line each, with examples/python/stockgate_token.py."""
import json
import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor

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
    with ThreadPoolExecutor(step["times"]) as pool:
        calls = [pool.submit(verifier.verify, step["token"], step["subject"], step["any_subject"], step["lines"], known) for _ in range(step["times"])]
    reason, claims = calls[0].result()
    reason = "|".join(sorted({call.result()[0] for call in calls}))
    print(json.dumps({"reason": reason, "id": claims["jti"] if claims else ""}), flush=True)
