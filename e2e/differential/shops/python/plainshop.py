"""Python's own http.server, urllib, cgi and http.cookies."""
import io
import json
import os
import warnings
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit

from read import merged, reading

warnings.filterwarnings("ignore", category=DeprecationWarning)
import cgi  # noqa: E402


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def handle_order(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            status, out = 200, self.read(raw)
        except (ValueError, CookieError, RecursionError) as err:
            status, out = 400, {"error": type(err).__name__}
        data = json.dumps(out).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_order

    def read(self, raw):
        url = urlsplit("http://h" + self.path)
        query = {k: v[0] for k, v in parse_qs(url.query, keep_blank_values=True).items()}
        last = dict(parse_qsl(url.query, keep_blank_values=True))
        kind = (self.headers.get("Content-Type") or "").lower()
        form, body = {}, None
        if "json" in kind or "text/plain" in kind:
            body = json.loads(raw)
        elif "urlencoded" in kind:
            form = dict(parse_qsl(raw.decode("utf-8", "replace"), keep_blank_values=True))
        elif "multipart" in kind:
            fields = cgi.FieldStorage(io.BytesIO(raw), self.headers, environ={"REQUEST_METHOD": "POST", "QUERY_STRING": ""})
            form = {name: fields.getfirst(name) for name in fields}
        cookies = SimpleCookie(self.headers.get("Cookie", ""))
        steps = url.path.split("/")
        route = {"sku": unquote(steps[2]), "quantity": unquote(steps[3])} if steps[1] == "path" and len(steps) > 3 else None
        return {
            "method": self.command, "path": url.path, "token": self.headers.get("Stockgate-Token", ""),
            "readings": [
                reading("parse_qs, first", "query", query), reading("parse_qsl, last", "query", last),
                reading("form", "body", form), reading("json.loads", "body", body),
                reading("{**query, **form, **json}", "merged", merged(query, form, body)),
                reading("{**json, **form, **query}", "merged", merged(body, form, query)),
                reading("SimpleCookie", "cookie", {k: m.value for k, m in cookies.items()}),
                reading("headers", "header", {
                    "sku": self.headers.get("X-Sku"), "quantity": self.headers.get("X-Quantity"), "user": self.headers.get("X-User-Id")}),
                reading("the path", "path", route),
            ],
        }


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


Server(("127.0.0.1", int(os.environ["PORT"])), Shop).serve_forever()
