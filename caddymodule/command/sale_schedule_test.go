package command_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// Acts are planned, listed, shown, done by the edge, told by log and journal, and taken back, by command and API.
func TestSaleSchedule(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	file := s.File("sale.yaml", strings.Replace(sitetest.SaleFile, "items:", "timezone: Asia/Shanghai\nitems:", 1))
	s.OK("sale", "apply", file)
	s.OK("sale", "open", "double11")
	says := func(want string, args ...string) {
		t.Helper()
		if out := s.OK(append([]string{"sale"}, args...)...); !strings.Contains(out, want) {
			t.Errorf("%q says %s, want %s", args, out, want)
		}
	}
	says("(none)", "schedule", "list", "double11")
	says("act 1 of double11: pause at 2088-06-01 12:00:00 +0800\n", "schedule", "add", "double11", "2088-06-01T12:00", "pause")
	says("act 1 of double11: pause at 2088-06-01 12:00:00 +0800, as it was before: nothing was changed", "schedule", "add", "double11", "2088-06-01T04:00:00Z", "pause")
	says("act 2 of double11: stock of two in beijing -5 at 2088-06-01", "schedule", "add", "double11", "2088-06-01T12:00:00", "stock", "two", "-5", "--region", "beijing")
	says("warning: it closes the sale for good before it ends", "schedule", "add", "double11", "2088-06-02T00:00:00+08:00", "close")
	says("to come", "schedule", "list", "double11")
	says("stock of two in beijing -5", "show", "double11")
	if shown := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); len(shown.Scheduled) != 3 || shown.Scheduled[1].Region != "beijing" || !strings.Contains(shown.Scheduled[1].By, "@") {
		t.Errorf("the API shows %+v", shown.Scheduled)
	}
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{2, "it takes a sale, a time and an act", []string{"add", "double11", "2088-06-01T12:00", "stock"}},
		{2, "it takes a sale, a time and an act", []string{"add", "double11", "2088-06-01T12:00"}},
		{2, "has passed: it is", []string{"add", "double11", "2020-01-01T00:00", "open"}},
		{2, "did you mean resume?", []string{"add", "double11", "2088-06-01T12:00", "resum"}},
		{2, "no change of stock", []string{"add", "double11", "2088-06-01T12:00", "stock", "plain", "many"}},
		{2, "takes no item", []string{"add", "double11", "2088-06-01T12:00", "open", "--region", "x"}},
		{1, "has ended by then", []string{"add", "double11", "2095-06-01T12:00", "open"}},
		{1, "no such sale", []string{"add", "other", "2088-06-01T12:00", "open"}},
		{2, "no number of an act", []string{"cancel", "double11", "first"}},
		{1, "has no act 9", []string{"cancel", "double11", "9"}},
		{2, "which command?", nil},
	} {
		if r := s.Run(append([]string{"sale", "schedule"}, c.args...)...); r.Status != c.status || !strings.Contains(r.Errors, c.says) {
			t.Errorf("%q: %+v, want %d and %q", c.args, r, c.status, c.says)
		}
	}
	if a := s.Admin("POST", "/stockgate/sales/double11/schedule", `{"at":"2088-06-01T12:00","act":"pause","when":"later"}`); a.Status != 400 {
		t.Errorf("an unknown field: %+v", a)
	}

	without := strings.Replace(sitetest.SaleFile, "  - {sku: two, regions: {beijing: 40, shanghai: 60}}\n", "", 1)
	says("warning: act 2, stock of two@beijing -5 at 2088-06-01 12:00:00 +0800, fails: the sale does not have that item any more", "apply", "--dry-run",
		s.File("without.yaml", strings.Replace(without, "items:", "timezone: Asia/Shanghai\nitems:", 1)))
	says("act 3 of double11 is taken back: close at 2088-06-02", "schedule", "cancel", "double11", "3")
	says("act 2 of double11 is taken back: stock of two in beijing -5", "schedule", "cancel", "double11", "2")

	s.Load(app) // as at a reload
	store := func() *reservation.Store {
		opened, err := reservation.Open(shard.Options{Addresses: []string{server.Addr()}, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { opened.Close() })
		return opened
	}()
	due(t, store, reservation.PlannedAct{Act: "stock", SKU: "plain", Change: "=70"})
	due(t, store, reservation.PlannedAct{Act: "stock", SKU: "few", Change: "-4"})
	s.Eventually("two acts that are done", func() (string, bool) {
		shown := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
		return fmt.Sprint(shown.Performed), len(shown.Performed) == 2
	})
	says("FAILED: only 3 units were available", "show", "double11")
	if out := s.Run("doctor").Out; !strings.Contains(out, "act 5 of double11, stock of few -4") || !strings.Contains(out, "has failed: only 3 units were available") {
		t.Errorf("the doctor says %s", out)
	}
	if a := s.Admin("GET", "/stockgate/sales/double11/journal/movements?after=0&limit=100", ""); !strings.Contains(a.Body, "ann@unix act 4") {
		t.Errorf("the journal has %s", a.Body)
	}
	if len(s.Logged("act scheduled")) == 0 || len(s.Logged("a scheduled act is done")) != 1 || len(s.Logged("scheduled act cancelled")) != 2 {
		t.Error("the log does not tell of the acts")
	}
	says("act 5 of double11 had failed, and is forgotten", "schedule", "cancel", "double11", "5")
	if out := s.Run("doctor").Out; strings.Contains(out, "act 5") {
		t.Errorf("the doctor says %s", out)
	}
	if out := s.OK("stock", "undo", "double11"); !strings.Contains(out, "plain has 100 units after +30 (id undo-act-4-") {
		t.Errorf("the change is taken back as %s", out)
	}
	if got := sitetest.Do[adminapi.SaleSchedule](s, "GET", "/stockgate/sales/double11/schedule", ""); len(got.Scheduled) != 1 || len(got.Performed) != 1 {
		t.Errorf("the API lists %+v", got)
	}
}

// due plans an act for a moment that has not passed yet, however slow the machine is.
func due(t *testing.T, s *reservation.Store, act reservation.PlannedAct) {
	t.Helper()
	for n := time.Duration(1); ; n++ {
		act.At = s.Now("double11").Add(n * 200 * time.Millisecond).UTC().Format(time.RFC3339Nano)
		_, _, _, err := s.Schedule(t.Context(), "double11", act, "ann@unix")
		if err == nil {
			return
		}
		if _, late := errors.AsType[*reservation.ActError](err); !late {
			t.Fatal(err)
		}
	}
}
