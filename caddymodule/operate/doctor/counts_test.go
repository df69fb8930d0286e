package doctor_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// The doctor names edges that are heard and do not sell, and, where there is no fence that knows, those that are not
// heard any more. An edge that was stopped is none of them.
func TestDoctorNamesOtherEdges(t *testing.T) {
	server, app := sitetest.Redis(t)
	app["redis"].(map[string]any)["fence_off"] = true
	s := sitetest.Open(t, nil)
	s.Load(app)
	s.OpenSale()
	key, now := "stockgate:{double11.0}:counts", time.Now()
	tell := func(edge string, heard time.Time, ended, ready string) {
		t.Helper()
		at := heard.UnixMilli()
		value := strings.Join([]string{strconv.FormatInt(at, 10), "7", strconv.FormatInt(at, 10), ended, ready, "60", edge + "-ID", edge + "\na|confirmed| 5"}, " ")
		if err := server.Client().HSet(t.Context(), key, "p|"+edge, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	tell("idle", now, "0", "0")
	tell("sells", now, "0", "1")
	tell("dead", now.Add(-10*time.Minute), "0", "1")
	tell("stopped", now.Add(-10*time.Minute), "1", "1")
	tell("odd name", now, "0", "0") // no edge writes so
	var found []string
	for _, f := range sitetest.Do[adminapi.Diagnosis](s, "GET", "/stockgate/doctor", "").Findings {
		if f.Check == "edges" && f.Level == adminapi.LevelWarning {
			found = append(found, f.Text)
		}
	}
	all := strings.Join(found, "\n")
	if len(found) != 2 || !strings.Contains(all, "edges that are heard do not sell, their gates answer 503: idle. Run") || !strings.Contains(all, "not heard any more: dead, since ") {
		t.Errorf("%s", all)
	}
	c := sitetest.Do[adminapi.SaleCounted](s, "GET", "/stockgate/sales/double11/counts", "")
	if len(c.Edges) != 5 || !c.Edges[len(c.Edges)-2].Silent {
		t.Errorf("%+v", c.Edges)
	}
}
