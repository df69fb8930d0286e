#!/bin/sh
# Says to the edge what became of a reservation.
#
#   reservation.sh show    <id>
#   reservation.sh confirm <id>
#   reservation.sh release <id>
#   reservation.sh extend  <id> 10m
#   reservation.sh return  <id> <return id> [<sku> <quantity>]
#
# STOCKGATE_API_URL is where stockgate_api is mounted, STOCKGATE_API_KEY its key.
# Everything may be asked again: 503 is tried again, a return keeps its id.
set -eu

word=$1 id=$2 method=POST
case $word in
show) method=GET body= ;;
confirm | release) body='{}' ;;
extend) body="{\"hold_for\":\"$3\"}" ;;
return) body="{\"id\":\"$3\"${4:+,\"lines\":[{\"sku\":\"$4\",\"qty\":$5\}]}}" ;;
*) echo "there is no $word" >&2; exit 2 ;;
esac
[ "$word" = show ] && path="" || path="/$word"

# The key is not on the command line, where every user of the machine could read it.
printf 'header = "Authorization: Bearer %s"\n' "$STOCKGATE_API_KEY" |
	curl --config - --silent --show-error --fail-with-body --max-time 10 --retry 5 \
		--request "$method" ${body:+--header 'Content-Type: application/json' --data "$body"} \
		"$STOCKGATE_API_URL/reservations/$id$path"
