// Command caddy is Caddy with Stockgate compiled in.
package main

import (
	"os"
	"runtime/debug"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
	_ "github.com/stockgate/stockgate"
)

// garbage is the GOGC that counts where the environment has none: a rush makes much
// garbage, and little of it lives.
const garbage = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	caddycmd.Main()
}
