package app_test

import (
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/stockgate/stockgate/caddymodule/command"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	_ "github.com/stockgate/stockgate/caddymodule/ledgers/sqlite"
)

func init() { sitetest.Quick() }
