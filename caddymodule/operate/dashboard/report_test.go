package dashboard_test

import (
	"fmt"
	"html"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// The report says what happened, from the page, the admin endpoint and the command alike, and
// needs no other file.
func TestReport(t *testing.T) {
	s, shopper := open(t)
	for _, id := range []string{"a", "b", "c"} {
		shopper.Hold(id, "few", 1, time.Hour)
	}
	ctx := t.Context()
	shopper.Must(shopper.Confirm(ctx, "double11", "a", "answer", "status_201"))
	shopper.Must(shopper.Doubt(ctx, "double11", "b", "timeout"))
	shopper.Must(shopper.Confirm(ctx, "double11", "b", "operator", "operator"))
	shopper.Must(shopper.Doubt(ctx, "double11", "c", "status_500"))
	shopper.Hold("d", "plain", 2, time.Hour)
	shopper.Must(shopper.Release(ctx, "double11", "d", "unsent", "client_left"))

	a := s.Get("/open/report?sale=double11")
	if a.Status != http.StatusOK || a.Header.Get("Content-Disposition") != `attachment; filename="double11.html"` {
		t.Fatalf("%d %v %s", a.Status, a.Header, a.Body)
	}
	text := regexp.MustCompile(`\s*<[^>]*>\s*`).ReplaceAllString(a.Body, "|")
	text = regexp.MustCompile(`\|+`).ReplaceAllString(text, "|")
	for _, want := range []string{
		"|double11|2 of 215 units sold|", "|In every cell, stock is available, held, in doubt and sold together.|",
		"movements of the journal lead to exactly the stock that Redis has.|", "|No ledger is kept", "|1 units are still in doubt",
		"|ordered|2|released: the shop refused, or was not reached|1|expired unpaid|0|", "|still open|1|",
		"|status_500|1|0|0|1|timeout|1|1|0|0|", "|few|2|", "|in doubt|1|", "|available|212|", "|From the first hold|",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %s:\n%s", want, text)
		}
	}
	for _, other := range []string{"<script", "<link", "src=", "url(", "@import", "<img"} {
		if strings.Contains(a.Body, other) {
			t.Errorf("the report needs another file: %s", other)
		}
	}
	if policy := a.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "style-src 'sha256-") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy: %s", policy)
	}
	made := regexp.MustCompile(`made [^<]*|-70 -12`) // the time differs
	admin := sitetest.Do[adminapi.SaleReport](s, "GET", "/stockgate/sales/double11/report", "")
	if made.ReplaceAllString(admin.HTML, "") != made.ReplaceAllString(a.Body, "") {
		t.Error("the admin endpoint has another report")
	}
	out := filepath.Join(t.TempDir(), "r.html")
	if ran := sitetest.Run(t, "", "report", "double11", "--out", out, "--address", s.AdminAddress()); ran.Status != 0 || ran.Out != "wrote "+out+"\n" {
		t.Errorf("the command: %+v", ran)
	}
	if file, err := os.ReadFile(out); err != nil || made.ReplaceAllString(string(file), "") != made.ReplaceAllString(a.Body, "") {
		t.Errorf("the command wrote another report: %v", err)
	}
	if ran := sitetest.Run(t, "", "report", "none", "--out", "-", "--address", s.AdminAddress()); ran.Status != 1 || !strings.Contains(ran.Errors, "none") {
		t.Errorf("an unknown sale: %+v", ran)
	}
	for path, status := range map[string]int{"none": 404, "": 400, "..": 400} {
		if a := s.Get("/open/report?sale=" + path); a.Status != status {
			t.Errorf("%q: %d %s", path, a.Status, a.Body)
		}
	}
}

// The report and the page tell times in the time zone of the sale, or in UTC.
func TestReportAndPageTellTheZone(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	s.Gates = []any{at("/open", page(object{"unprotected": true}))}
	s.Load(app)
	const file = "id: %s\nstarts_at: 2020-11-11T00:00:00+08:00\nends_at: 2090-11-12T00:00:00+08:00\n%sitems:\n  - {sku: plain, stock: 1}\n"
	for id, c := range map[string]struct{ line, zone, window string }{
		"zoned":   {"timezone: Asia/Shanghai\n", "Asia/Shanghai", "2020-11-11 00:00:00 +0800 to 2090-11-12 00:00:00 +0800 (Asia/Shanghai)"},
		"unzoned": {"", "UTC", "2020-11-10 16:00:00 +0000 to 2090-11-11 16:00:00 +0000 (UTC)"},
	} {
		sitetest.Do[any](s, "PUT", "/stockgate/sales/"+id, fmt.Sprintf(file, id, c.line))
		made := regexp.MustCompile(` · made \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \` + c.window[20:25] + `<`)
		a := s.Get("/open/report?sale=" + id)
		if text := html.UnescapeString(a.Body); a.Status != http.StatusOK || !strings.Contains(text, c.window) || !made.MatchString(text) {
			t.Errorf("%s: the report does not say %s: %s", id, c.window, a.Body)
		}
		until(t, listen(t, s, "/open/events?sale="+id), "the zone is "+c.zone, func(n news) bool { return n.Sale.ID == id && n.Sale.Timezone == c.zone })
	}
}
