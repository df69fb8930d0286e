package dashboard_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// The items of the report are a CSV beside it, from the page, the admin endpoint and the command alike.
func TestReportCSV(t *testing.T) {
	s, shopper := open(t)
	for _, id := range []string{"a", "b", "c"} {
		shopper.Hold(id, "few", 1, time.Hour)
		shopper.Must(shopper.Confirm(t.Context(), "double11", id, "answer", "status_201"))
	}
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/pause", "")
	a := s.Get("/open/report?sale=double11&as=csv")
	if a.Status != http.StatusOK || a.Header.Get("Content-Disposition") != `attachment; filename="double11.csv"` || a.Header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Fatalf("%d %v %s", a.Status, a.Header, a.Body)
	}
	for _, want := range []string{"sku,region,stock,available,held,in_doubt,sold,returned,first_sale,last_sale,seconds_to_sell_out\n", "\nfew,,3,0,0,0,3,0,20", "\nplain,,100,100,0,0,0,0,,,\n", "\ntwo,beijing,40,40,"} {
		if !strings.Contains(a.Body, want) {
			t.Errorf("the CSV lacks %q:\n%s", want, a.Body)
		}
	}
	if admin := sitetest.Do[adminapi.SaleReport](s, "GET", "/stockgate/sales/double11/report", ""); admin.CSV != a.Body || !strings.Contains(admin.HTML, "paused</td>") {
		t.Errorf("the admin endpoint has another one: %s", admin.CSV)
	}
	if a := s.Get("/open/report?sale=double11&as=pdf"); a.Status != http.StatusBadRequest {
		t.Errorf("as=pdf: %d %s", a.Status, a.Body)
	}
	dir := t.TempDir()
	page, items := filepath.Join(dir, "r.html"), filepath.Join(dir, "r.csv")
	run := func(args ...string) sitetest.Ran {
		t.Helper()
		return sitetest.Run(t, "", append([]string{"report", "double11", "--address", s.AdminAddress()}, args...)...)
	}
	if ran := run("--out", page, "--csv", items); ran.Status != 0 || ran.Out != "wrote "+page+"\nwrote "+items+"\n" {
		t.Errorf("the command: %+v", ran)
	}
	if file, err := os.ReadFile(items); err != nil || string(file) != a.Body {
		t.Errorf("the command wrote another CSV: %s %v", file, err)
	}
	if ran := run("--out", page, "--csv", "-"); ran.Status != 0 || ran.Out != a.Body || ran.Errors != "wrote "+page+"\n" {
		t.Errorf("on the standard output: %+v", ran)
	}
	for want, args := range map[string][]string{
		"--csv " + items + " writes its items as CSV": {"--out", items},
		"the same file":              {"--out", page, "--csv", page},
		"only one of":                {"--out", "-", "--csv", "-"},
		"leave --out and --csv out":  {"--json", "--csv", items},
		"flag needs an argument":     {"--csv"},
		"the file cannot be written": {"--out", page, "--csv", filepath.Join(dir, "none", "r.csv")},
	} {
		if ran := run(args...); ran.Status == 0 || !strings.Contains(ran.Errors, want) {
			t.Errorf("%v: %+v, want %q", args, ran, want)
		}
	}
}
