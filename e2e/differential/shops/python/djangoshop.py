"""Django on its own server."""
import json
import os
import sys

import django
from django.conf import settings
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.wsgi import get_wsgi_application
from django.http import JsonResponse
from django.urls import re_path, path

from read import merged, reading


def answer(request, **params):
    kind = request.META.get("CONTENT_TYPE", "").lower()
    body = None
    raw = request.body
    if raw and ("json" in kind or "text/plain" in kind):
        try:
            body = json.loads(raw)
        except ValueError:
            return JsonResponse({"error": "no JSON"}, status=400)
    query, form = request.GET.dict(), request.POST.dict()
    return JsonResponse({
        "method": request.method, "path": request.path, "token": request.headers.get("Stockgate-Token", ""),
        "readings": [
            reading("request.GET", "query", request.GET),
            reading("request.POST", "body", request.POST),
            reading("json.loads(request.body)", "body", body),
            reading("{**GET, **POST, **json}", "merged", merged(query, form, body)),
            reading("{**json, **POST, **GET}", "merged", merged(body, form, query)),
            reading("request.COOKIES", "cookie", request.COOKIES),
            reading("request.META", "header", {
                "sku": request.META.get("HTTP_X_SKU"), "quantity": request.META.get("HTTP_X_QUANTITY"), "user": request.META.get("HTTP_X_USER_ID")}),
            reading("the route", "path", params or None),
        ],
    })


urlpatterns = [path("path/<str:sku>/<str:quantity>", answer), re_path("", answer)]


class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        pass


settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="differential", LOGGING_CONFIG=None)
django.setup()
sys.modules[__name__] = sys.modules["__main__"]
server = ThreadedWSGIServer(("127.0.0.1", int(os.environ["PORT"])), Quiet)
server.set_app(get_wsgi_application())
server.serve_forever()
