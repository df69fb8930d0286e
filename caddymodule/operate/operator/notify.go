package operator

import (
	"net/http"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/internal/sale"
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

// noteAct notes who has given a sale its status, for those who are told.
func noteAct(o *serve.Operator, id string, status sale.Status) {
	if o.App.Notifier() == nil {
		return
	}
	if err := o.Runtime.Client().NoteAct(o.Ctx, id, string(status), o.By); err != nil {
		o.Log.Warn("operators are not told by whom the status was set", zap.String("sale", id), zap.Error(err))
	}
}
