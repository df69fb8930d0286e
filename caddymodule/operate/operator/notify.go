package operator

import (
	"net/http"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// testNotify answers POST notify/test. It needs no Redis.
func testNotify(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	n := o.App.Notifier()
	if n == nil {
		return nil, shard.Refused("this edge has no `notify` in its configuration: write `notify {env.NOTIFY_URL}` in the block `stockgate` of the global options")
	}
	return n.Test(o.Ctx)
}
