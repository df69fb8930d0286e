package forward

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
)

// AnswerDoubt writes a problem document when the shop gave no answer, so that the client learns
// that its order may exist, under which reservation, and that it can ask again. Where the site
// has error routes, these answer, as for every other error. The refuser has the title.
func (f *Forwarding) AnswerDoubt(w http.ResponseWriter, r *http.Request, refuser *refuse.Refuser, hasErrorRoutes bool, err error) error {
	var failed caddyhttp.HandlerError
	if err == nil || !f.doubt || !errors.As(err, &failed) || failed.StatusCode != http.StatusGatewayTimeout && failed.StatusCode != http.StatusBadGateway {
		return err
	}
	if hasErrorRoutes {
		return err
	}
	about := refuser.Doubt
	body, e := json.Marshal(refuse.ProblemDocument{
		Type: refuse.TypeOf(sale.InDoubt), Title: about.Title(r.Header), Status: failed.StatusCode, Reason: sale.InDoubt,
		Detail: "the shop gave no answer in time", Reservation: f.Hold.ID,
	})
	if e != nil {
		return err
	}
	h := w.Header()
	about.Announce(r.Header, h)
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(failed.StatusCode)
	_, _ = w.Write(append(body, '\n'))
	return nil
}
