package operator

import (
	"net/http"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// testNotify answers POST notify/test. It needs no Redis.
func (o *operator) testNotify(r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	n := o.app.Notifier()
	if n == nil {
		return nil, shard.Refused("this edge has no `notify` in its configuration: write `notify {env.NOTIFY_URL}` in the block `stockgate` of the global options")
	}
	return n.Test(o.ctx)
}

// noteAct notes who has given a sale its status, for those who are told.
func (o *operator) noteAct(id string, status sale.Status) {
	if o.app.Notifier() == nil {
		return
	}
	if err := o.runtime.Client().NoteAct(o.ctx, id, string(status), o.by); err != nil {
		o.log.Warn("operators are not told by whom the status was set", zap.String("sale", id), zap.Error(err))
	}
}
