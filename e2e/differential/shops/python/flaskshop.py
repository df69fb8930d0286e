"""Flask on the server of Werkzeug."""
import logging
import os

from flask import Flask, request
from werkzeug.serving import WSGIRequestHandler

from read import merged, reading

logging.getLogger("werkzeug").setLevel(logging.ERROR)
app = Flask(__name__)


def answer(**params):
    json = request.get_json(force=True, silent=True)
    flat = request.form.to_dict()
    return {
        "method": request.method, "path": request.path, "token": request.headers.get("Stockgate-Token", ""),
        "readings": [
            reading("request.args", "query", request.args),
            reading("request.form", "body", request.form),
            reading("request.get_json(force=True)", "body", json if is_json() else None),
            reading("request.values", "merged", request.values),
            reading("{**args, **form, **json}", "merged", merged(request.args.to_dict(), flat, json if is_json() else None)),
            reading("request.cookies", "cookie", request.cookies),
            reading("request.headers", "header", {
                "sku": request.headers.get("X-Sku"), "quantity": request.headers.get("X-Quantity"), "user": request.headers.get("X-User-Id")}),
            reading("the route", "path", params or None),
        ],
    }


def is_json():
    return "json" in (request.content_type or "").lower() or "text/plain" in (request.content_type or "").lower()


METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
app.add_url_rule("/path/<sku>/<quantity>", "path", answer, methods=METHODS)
app.add_url_rule("/<path:rest>", "all", lambda rest: answer(), methods=METHODS)

WSGIRequestHandler.protocol_version = "HTTP/1.1"
app.run("127.0.0.1", int(os.environ["PORT"]), threaded=True)
