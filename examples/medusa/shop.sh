#!/bin/sh
# A Medusa server on a database of its own: it makes the tables, fills them the first time,
# and serves. Nothing in it knows Stockgate.
#
#   DATABASE_URL  an empty PostgreSQL database, or one that this script has filled
#   PORT          9000 by default, on HOST, 127.0.0.1 by default
#   STOCK         SKU=UNITS,…: the products of an empty database, SNK-1=20,CAP-1=100000 by default
#   COUPON        a code that takes 100 % off an order; none by default
#   KEYS          a file for the keys of an empty database: {"publishable":"pk_…","secret":"sk_…"}
#
# GET /health answers 200 when it serves.
set -eu
cd "$(dirname "$0")"
export MEDUSA_DISABLE_TELEMETRY=true NODE_ENV=production
medusa=node_modules/.bin/medusa
$medusa db:migrate --skip-scripts --execute-safe-links
$medusa exec src/scripts/seed.js
exec $medusa start --host "${HOST:-127.0.0.1}" --port "${PORT:-9000}"
