package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/report"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/shard"
)

func init() { caddy.RegisterModule(AdminReport{}) }

const (
	// reportWithin bounds the time to make a report: it reads every movement of the sale.
	reportWithin = 2 * time.Minute
	// reportPage is how many movements are read at a time.
	reportPage = 5_000
)

// AdminReport answers GET `/stockgate/sales/{id}/report` of the admin endpoint:
// `{"sale","html","csv"}`, where html is a whole page. Errors are those of the admin API.
type AdminReport struct{}

// CaddyModule returns the Caddy module information.
func (AdminReport) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.stockgate_report", New: func() caddy.Module { return new(AdminReport) }}
}

// Routes returns the route.
func (AdminReport) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{{Pattern: "GET /stockgate/sales/{id}/report", Handler: caddy.AdminHandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set(adminapi.ServedHeader, "1")
		html, csv, status, err := reportOf(r.Context(), r.PathValue("id"))
		if err != nil {
			return caddy.APIError{HTTPStatus: status, Err: err, Message: err.Error()}
		}
		return answer(w, http.StatusOK, adminapi.SaleReport{Sale: r.PathValue("id"), HTML: html, CSV: csv})
	})}}
}

// serveReport answers with the report of a sale as a file: a page, or with `as=csv` its items.
func (s *Dashboard) serveReport(w http.ResponseWriter, r *http.Request) error {
	id, as := r.URL.Query().Get("sale"), cmp.Or(r.URL.Query().Get("as"), "html")
	if as != "html" && as != "csv" {
		return answerError(w, http.StatusBadRequest, "as must be html or csv")
	}
	file, csv, status, err := reportOf(r.Context(), id)
	if err != nil {
		return answerError(w, status, err.Error())
	}
	if as == "csv" {
		file = csv
	}
	h := w.Header()
	h.Set("Content-Security-Policy", report.Policy()+"; frame-ancestors 'none'")
	h.Set("Content-Type", "text/"+as+"; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="`+id+`.`+as+`"`)
	h.Set("Content-Length", strconv.Itoa(len(file)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, file)
	}
	return nil
}

// reportOf makes the report of a sale, or says with which status it cannot.
func reportOf(ctx context.Context, id string) (html, csv string, status int, err error) {
	a := app.Active()
	if a == nil || a.Runtime() == nil {
		return "", "", http.StatusServiceUnavailable, errors.New("no stockgate app is running")
	}
	if !sale.IsID(id) {
		return "", "", http.StatusBadRequest, errors.New("sale must be the id of a sale")
	}
	ctx, cancel := context.WithTimeout(ctx, reportWithin)
	defer cancel()
	r, err := collectReport(ctx, a, a.Runtime(), id)
	if errors.Is(err, shard.ErrNoSale) {
		return "", "", http.StatusNotFound, edgeruntime.NoSale(id, err)
	}
	if err != nil {
		return "", "", http.StatusServiceUnavailable, err
	}
	var out bytes.Buffer
	if _, err := r.WriteTo(&out); err != nil {
		return "", "", http.StatusInternalServerError, err
	}
	return out.String(), r.CSV(), http.StatusOK, nil
}

// collectReport reads what a report says.
func collectReport(ctx context.Context, a *app.App, d *edgeruntime.Runtime, id string) (*report.Report, error) {
	r := report.New(id)
	head, err := d.Store.Journal().Head(ctx, id)
	if err != nil {
		return nil, err
	}
	history := a.Journals().History(d)
	for after := int64(0); after < head.Last; {
		movements, err := history.Read(ctx, id, head.Epoch, after, reportPage)
		if gap, ok := errors.AsType[*journal.GapError](err); ok && gap.Have > 0 && after == 0 {
			r.Missing = gap.Have - 1
			after = r.Missing
			continue
		}
		if err == nil && len(movements) == 0 {
			err = &journal.GapError{Sale: id, Want: after + 1}
		}
		if err == nil {
			err = r.Add(movements)
		}
		if err != nil {
			return nil, err
		}
		after = movements[len(movements)-1].Seq
	}
	stock, err := d.Store.SaleStock(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, c := range stock.Items {
		r.AddItem(sale.Cell(c.SKU, c.Region), c)
	}
	for _, b := range stock.Bundles {
		r.Bundles = append(r.Bundles, report.BundleRow{Name: sale.Cell(b.SKU, b.Region), Of: b.Of(), Stock: b.Stock, Available: b.Available})
	}
	r.Zone = adminapi.SaleZone(stock.Timezone)
	r.Status, r.StartsAt, r.EndsAt, r.Balanced, r.Unbacked, r.Made = string(stock.Status), stock.StartsAt, stock.EndsAt, stock.Balanced, stock.Unbacked, time.Now()
	r.Ledger, r.LedgerAgrees = ledgerSays(ctx, a, id, head)
	shadow, err := d.Store.Shadow(ctx, id)
	if err != nil {
		return nil, err
	}
	if shadow != nil {
		r.ShadowSold, r.ShadowPast = shadow.Sold, shadow.Past
	}
	return r, addCounts(ctx, r, d)
}

// addCounts adds what all edges have counted.
func addCounts(ctx context.Context, r *report.Report, d *edgeruntime.Runtime) error {
	all, err := d.Counts(ctx, r.Sale)
	if err != nil {
		return err
	}
	own := newCounter()
	own.read(time.Now())
	now, _ := own.last()
	reserves := all.Sum.Reserves()
	r.Attempts, r.Memory, r.P50, r.P99 = byName(all.Sum), now.memoryShare(nil), reserves.Quantile(histogram{}, 0.5), reserves.Quantile(histogram{}, 0.99)
	r.Won, r.Lost = reportWaits(all.Sum.Won()), reportWaits(all.Sum.Lost())
	for _, s := range shadowOf(all.Sum) {
		r.Shadow = append(r.Shadow, report.Shadowed{Outcome: s.Outcome, Reason: s.Reason, Attempts: s.Count})
	}
	return nil
}

func reportWaits(h histogram) report.Waits {
	return report.Waits{Attempts: int64(h.Total()), P50: h.Quantile(histogram{}, 0.5), P99: h.Quantile(histogram{}, 0.99)}
}

// ledgerSays compares the ledger with the journal.
func ledgerSays(ctx context.Context, a *app.App, id string, head journal.Head) (text string, agrees *bool) {
	books, good := a.Journals().Ledger(), false
	if books == nil {
		return "No ledger is kept, so only Redis knows what was sold: add `ledger sqlite FILE`, `ledger postgres DSN` or `ledger mysql DSN`.", nil
	}
	at, err := books.Position(ctx, id)
	switch {
	case err != nil:
		return fmt.Sprintf("The ledger does not answer: %v", err), &good
	case at.Epoch != head.Epoch || at.Seq < head.Last:
		return fmt.Sprintf("The ledger has the movements up to number %d, the journal up to %d.", at.Seq, head.Last), &good
	}
	good = true
	return fmt.Sprintf("The ledger has all movements, up to number %d.", at.Seq), &good
}

// Interface guards
var (
	_ caddy.Module      = (*AdminReport)(nil)
	_ caddy.AdminRouter = (*AdminReport)(nil)
)
