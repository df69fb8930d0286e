package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

//go:embed report.html
var page string

//go:embed report.css
var style string

// policy lets the file use its own style, and nothing else.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}()

// Policy is the content security policy under which the file may be served.
func Policy() string { return policy }

var layout = template.Must(template.New("report").Funcs(template.FuncMap{
	"count": func(n int64) string { return count(n) },
	"style": func() template.HTML { return template.HTML("<style>" + style + "</style>") }, // its own, by hash
	"in":    func(zone *time.Location, t time.Time) string { return t.In(zone).Format("2006-01-02 15:04:05 -0700") },
}).Parse(page))

// Row is a name and what is said of it.
type Row struct{ Name, Value string }

// view is what the layout shows.
type view struct {
	*Report
	Policy                          string
	Headline                        string
	Checks                          []Statement
	Charts                          []Chart
	Doubts                          []Doubt
	Stocks, Ends, Times, Refusals   []Row
	InShadow, Waiting               []Row
	Top                             []SoldItem
	Acts                            []Act
	MoreActs                        int64
	Movements, Buyers, Reservations string
}

// Statement is a statement that holds or does not.
type Statement struct {
	Good bool
	Text string
}

// WriteTo writes the report as one HTML file.
func (r *Report) WriteTo(w io.Writer) (int64, error) {
	counted := &counting{to: w}
	err := layout.Execute(counted, r.view())
	return counted.n, err
}

func (r *Report) view() *view {
	v := &view{Report: r, Policy: policy, Charts: r.Charts(), Doubts: r.Doubts(), Checks: r.checks(), Movements: count(r.movements),
		Buyers: count(int64(len(r.buyers))), Reservations: count(r.ended["confirmed"])}
	v.Headline = fmt.Sprintf("%s of %s units sold", count(r.Stock.Confirmed), count(r.Stock.Stock))
	if took, ok := r.SoldOut(); ok {
		v.Headline += ", the last one taken " + span(took) + " after the first"
	}
	v.Stocks = []Row{{"sold", count(r.Stock.Confirmed)}, {"in doubt", count(r.Stock.InDoubt)}, {"held", count(r.Stock.Held)}, {"available", count(r.Stock.Available)}}
	for _, end := range []struct{ kind, name string }{{"confirmed", "ordered"}, {"released", "released: the shop refused, or was not reached"},
		{"expired", "expired unpaid"}, {"unbacked", "ordered without stock"}} {
		v.Ends = append(v.Ends, Row{end.name, count(r.ended[end.kind])})
	}
	v.Ends = append(v.Ends, Row{"still open", count(int64(len(r.open)))})
	v.Times, v.InShadow, v.Waiting = r.times(), r.inShadow(), r.waits.rows()
	for _, name := range slices.SortedFunc(maps.Keys(r.Attempts), func(a, b string) int {
		if r.Attempts[a] != r.Attempts[b] {
			return int(math.Copysign(1, r.Attempts[b]-r.Attempts[a]))
		}
		return strings.Compare(a, b)
	}) {
		v.Refusals = append(v.Refusals, Row{name, count(int64(r.Attempts[name]))})
	}
	v.Top = r.top()
	v.Acts, v.MoreActs = r.Acts()
	return v
}

// inShadow says what would have been refused, and what the shop sold all the same.
func (r *Report) inShadow() (rows []Row) {
	for _, s := range r.Shadow {
		name := "would have passed: " + s.Outcome
		switch s.Outcome {
		case "would_refuse":
			name = "would have been refused: " + s.Reason
		case "sold_past":
			name = "would have been refused, and the shop sold it: " + s.Reason
		}
		rows = append(rows, Row{name, count(s.Attempts)})
	}
	if r.ShadowSold > 0 || r.ShadowPast > 0 {
		rows = append(rows, Row{"units that the shop sold and the gate would have sold", count(r.ShadowSold)},
			Row{"units that the shop sold past the gate", count(r.ShadowPast)})
	}
	return rows
}

func (r *Report) times() []Row {
	var rows []Row
	for _, of := range []struct {
		who string
		w   Waits
	}{{"winners", r.Won}, {"losers", r.Lost}} {
		if of.w.Attempts > 0 {
			rows = append(rows, Row{fmt.Sprintf("%s waited for their answer, p50 and p99 of %s attempts", of.who, count(of.w.Attempts)), pair(of.w.P50, of.w.P99)})
		}
	}
	if len(r.took) == 0 {
		return rows
	}
	rows = append(rows, []Row{
		{"half of the winners had their hold after", span(quantile(r.won, 0.5))},
		{"99 % of the winners had their hold after", span(quantile(r.won, 0.99))},
		{"from hold to order, half took at most", span(quantile(r.took, 0.5))},
		{"from hold to order, 99 % took at most", span(quantile(r.took, 0.99))},
		{"from hold to order, the longest took", span(slices.Max(r.took))},
	}...)
	if !math.IsNaN(r.P99) {
		rows = append(rows, Row{"a reserve, p50 and p99", pair(r.P50, r.P99)})
	}
	if !math.IsNaN(r.Memory) {
		rows = append(rows, Row{"“nothing left” that this edge answered from memory", fmt.Sprintf("%.4g %%", 100*r.Memory)})
	}
	return rows
}

// checks says what agrees and what does not.
func (r *Report) checks() []Statement {
	checks := []Statement{{r.Balanced, "In every cell, stock is available, held, in doubt and sold together."}}
	if !r.Balanced {
		checks[0].Text = "The stock does not balance: something else has changed keys in Redis. `caddy stockgate reconcile` says what."
	}
	switch {
	case r.Missing > 0:
		checks = append(checks, Statement{false, fmt.Sprintf("The first %s movements are in neither journal nor ledger: what follows begins after them.", count(r.Missing))})
	case r.Agrees():
		checks = append(checks, Statement{true, fmt.Sprintf("The %s movements of the journal lead to exactly the stock that Redis has.", count(r.movements))})
	default:
		checks = append(checks, Statement{false, "The movements do not lead to the stock that Redis has. Either the sale goes on, or `caddy stockgate reconcile` says what is wrong."})
	}
	checks = append(checks, Statement{r.LedgerAgrees != nil && *r.LedgerAgrees, r.Ledger})
	if r.Unbacked > 0 {
		checks = append(checks, Statement{false, fmt.Sprintf("%s orders were taken by the shop or paid for without stock: refund them, or add stock and confirm them.", count(r.Unbacked))})
	}
	if r.Stock.InDoubt > 0 {
		checks = append(checks, Statement{false, fmt.Sprintf("%s units are still in doubt: ask the shop, and confirm or release them.", count(r.Stock.InDoubt))})
	}
	return checks
}

// pair writes two quantiles, in ms.
func pair(p50, p99 float64) string { return milliseconds(p50) + " and " + milliseconds(p99) }

// milliseconds writes a time in ms with three digits, or with all that stand before the point.
func milliseconds(ms float64) string {
	if ms >= 100 {
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.3g ms", ms)
}

// count writes a number with commas.
func count(n int64) string { return humanize.Comma(n) }

// span writes a duration with three digits or so.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// counting counts what is written.
type counting struct {
	to io.Writer
	n  int64
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.n += int64(n)
	return n, err
}
