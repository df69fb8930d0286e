// Command caddy is Caddy with Stockgate compiled in.
package main

import (
	"os"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/stockgate/stockgate"
)

func main() {
	if os.Getenv("GOGC") == "" {
		collectSeldom()
	}
	caddycmd.Main()
}
