package doctor_test

import (
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/stockgate/stockgate"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

func init() { sitetest.Quick() }
