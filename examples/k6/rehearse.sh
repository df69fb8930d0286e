#!/bin/sh
# Sends orders with k6, and exits with the verdict of Stockgate: 0 passed, 1 a promise is broken
# or a bound of k6 or of --require is not met, 2 something is wrong here, 3 Caddy does not answer.
#
#   URL=https://shop.test/api/order SKU=20002001 SALE=double11 ORDERS=http://10.0.0.7:9000/orders ./rehearse.sh
#
# ORDERS is a file or URL with the shop's orders; without it only the gate's books are judged.
# Arguments go to the verdict, such as --require 'sold>=100' or --json.
set -eu
: "${URL:?where orders go}" "${SKU:?what is bought}" "${SALE:?which sale is judged}"
export URL SKU
RUN=$(date +%s)-$$
export RUN

answers=$(mktemp)
trap 'rm -f "$answers"' EXIT
k6=0
k6 run --log-format raw --console-output "$answers" "$(dirname "$0")/order.js" >&2 || k6=$?
if [ "$k6" -ne 0 ] && [ "$k6" -ne 99 ]; then # 99: a threshold
	echo "rehearse.sh: k6 ended with $k6: nothing is judged" >&2
	exit 2
fi

verdict=0
caddy stockgate rehearse --sale "$SALE" --judge-only --answers "$answers" ${ORDERS:+--orders "$ORDERS"} "$@" || verdict=$?
if [ "$verdict" -eq 0 ] && [ "$k6" -eq 99 ]; then
	echo "rehearse.sh: every promise was kept, and a threshold of order.js was not met" >&2
	exit 1
fi
exit "$verdict"
