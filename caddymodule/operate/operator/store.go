package operator

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// errNoStore says why an edge has no backup.
var errNoStore = shard.Refused("this Caddy has no `store`: its stock is in a Redis that others run, and they make the backups of that")

// download is an answer that is a file.
type download struct {
	io.ReadCloser
	about adminapi.StoreBackup
}

// backupStore makes a backup. stage is told what it waits for.
func backupStore(o *serve.Operator, r *http.Request, stage func(what string)) (*download, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	if o.Runtime.OwnServer() == nil {
		return nil, errNoStore
	}
	ctx, cancel := context.WithTimeout(r.Context(), adminapi.BackupTimeout) // it changes nothing: it ends with its client
	defer cancel()
	sales, err := o.Runtime.Store.Journal().Sales(ctx)
	if err != nil {
		return nil, err
	}
	saved, err := o.Runtime.Backup(ctx, stage)
	if err != nil {
		return nil, err
	}
	about := adminapi.StoreBackup{At: saved.Time, Bytes: saved.Size, Server: saved.Writer}
	about.Name(sales)
	o.Log.Info("backup of the store", zap.String("by", o.By), zap.Time("at", about.At), zap.Int64("bytes", about.Bytes), zap.Int("sales", about.Sales))
	return &download{saved, about}, nil
}

// stages tells a client what its request waits for, before the answer.
func stages(w http.ResponseWriter) func(what string) {
	return func(what string) {
		w.Header().Set(adminapi.StageHeader, what)
		w.WriteHeader(http.StatusProcessing)
		w.Header().Del(adminapi.StageHeader)
	}
}

// serveBackup answers with a backup of the store. The stages before that are told in responses of status 102.
func serveBackup(w http.ResponseWriter, r *http.Request) error {
	o, err := serve.Of(w, r)
	if o == nil {
		return err
	}
	d, err := backupStore(o, r, stages(w))
	if err != nil {
		return serve.Refuse(w, err)
	}
	defer d.Close()
	about, err := json.Marshal(d.about)
	if err != nil {
		return err
	}
	w.Header().Set(adminapi.BackupHeader, string(about))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.FormatInt(d.about.Bytes, 10))
	_, _ = io.Copy(w, d) // the client sees by its length that it broke off
	return nil
}
