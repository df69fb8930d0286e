package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

func unitsOf(sku, region, state string) string {
	return fmt.Sprintf("stockgate_units{region=%q,sale=\"double11\",sku=%q,state=%q}", region, sku, state)
}

func TestScrapeReportsTheStock(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	for i, id := range []string{"held", "doubt", "sold"} {
		p.Hold(id, "plain", int64(i)+1, time.Hour)
	}
	p.Must(p.Doubt(t.Context(), "double11", "doubt", "timeout"))
	p.Must(p.Confirm(t.Context(), "double11", "sold", reservation.SourceAnswer, "2xx"))
	p.Hold("gone", "few", 3, time.Hour)
	p.Must(p.Release(t.Context(), "double11", "gone", reservation.SourceShop, "4xx"))
	p.Hold("other", "few", 1, time.Hour)
	p.Must(p.Confirm(t.Context(), "double11", "gone", reservation.SourceAnswer, "2xx"))

	known := map[string]string{
		unitsOf("plain", "", "stock"):                   "100",
		unitsOf("plain", "", "available"):               "94",
		unitsOf("plain", "", "held"):                    "1",
		unitsOf("plain", "", "in_doubt"):                "2",
		unitsOf("plain", "", "confirmed"):               "3",
		unitsOf("two", "beijing", "available"):          "40",
		unitsOf("a/b%c?d#e", "", "stock"):               "5",
		`stockgate_balanced{sale="double11"}`:           "1",
		`stockgate_unbacked{sale="double11"}`:           "1",
		`stockgate_clock_lead_seconds{sale="double11"}`: "0",
		`stockgate_backlog`:                             "0",
		`stockgate_ready`:                               "1",
	}
	series := s.UntilScraped(known)
	for series[`stockgate_oldest_in_doubt_seconds{sale="double11"}`] == "0" { // it is a few ms old, or will be
		series = s.Scrape()
	}
	if age := series[`stockgate_oldest_in_doubt_seconds{sale="double11"}`]; age == "" || strings.HasPrefix(age, "-") {
		t.Errorf("the doubt is %q seconds old", age)
	}
	// it is as if Redis's clock had stepped back by half an hour
	if err := server.Client().HSet(t.Context(), sitetest.MetaOf, "clock", time.Now().Add(30*time.Minute).UnixMilli()).Err(); err != nil {
		t.Fatal(err)
	}
	const lead = `stockgate_clock_lead_seconds{sale="double11"}`
	for series[lead] == "0" {
		series = s.Scrape()
	}
	if !strings.HasPrefix(series[lead], "1") {
		t.Errorf("the lead is %q seconds", series[lead])
	}
	delete(known, lead)
	// a new configuration has a new registry
	s.Load(app)
	s.UntilScraped(known)
	// without Redis the last that is known is reported
	server.Stop()
	delete(known, `stockgate_ready`) // for some seconds
	s.Expect(s.Scrape(), known)
	// another Redis has other sales
	_, other := sitetest.Redis(t)
	s.Load(other)
	if got, ok := s.Scrape()[`stockgate_balanced{sale="double11"}`]; ok {
		t.Errorf("a sale of the other Redis is balanced: %s", got)
	}
	s.Load(nil)
	if got := s.Scrape(); len(got) != 0 {
		t.Errorf("without an app: %v", got)
	}
}

// A sale with more cells than get series of their own has sums only.
func TestScrapeSumsUpManyCells(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	file := strings.Builder{}
	file.WriteString("id: double11\nstarts_at: 2020-11-11T00:00:00+08:00\nends_at: 2090-11-12T00:00:00+08:00\nitems:\n")
	for i := range 1_000 {
		fmt.Fprintf(&file, "  - {sku: s%d, stock: 10}\n", i)
	}
	sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", file.String())
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/open", "")
	s.UntilScraped(map[string]string{unitsOf("s0", "", "available"): "10", unitsOf("s999", "", "stock"): "10"})
	file.WriteString("  - {sku: one, stock: 1}\n")
	sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", file.String())
	series := s.UntilScraped(map[string]string{
		unitsOf("*", "", "available"): "10001", unitsOf("*", "", "stock"): "10001", unitsOf("*", "", "held"): "0", `stockgate_balanced{sale="double11"}`: "1",
	})
	if units, ok := series[unitsOf("s0", "", "available")]; ok {
		t.Errorf("one of many cells has a series: %s", units)
	}
}

// An edge that Redis has never answered is not ready.
func TestScrapeWithoutRedis(t *testing.T) {
	server, app := sitetest.Redis(t)
	server.Stop()
	s := sitetest.Open(t, app)
	s.Expect(s.Scrape(), map[string]string{"stockgate_ready": "0", "stockgate_backlog": "0"})
}

// The metrics are the same on the embedded server.
func TestScrapeEmbedded(t *testing.T) {
	s := sitetest.Open(t, map[string]any{"redis": map[string]any{"embedded": true}})
	s.OpenSale()
	s.UntilScraped(map[string]string{unitsOf("plain", "", "available"): "100", "stockgate_ready": "1"})
}

// A sale has the series of a queue once one of its orders has come to one.
func TestScrapeQueue(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	series := s.UntilScraped(map[string]string{`stockgate_balanced{sale="double11"}`: "1"})
	for name := range series {
		if strings.HasPrefix(name, "stockgate_queue_") {
			t.Errorf("a sale without a queue has %s", name)
		}
	}
	p := sitetest.NewShopper(t, server)
	for i := range 4 {
		p.Order(fmt.Sprint("r", i), sitetest.Queue(1))
	}
	of := func(what string) string { return "stockgate_queue_" + what + `{sale="double11"}` }
	series = s.UntilScraped(map[string]string{of("waiting"): "3", of("at_shop"): "1", of("bytes"): "24", of("paused"): "0"})
	for _, name := range []string{of("oldest_seconds"), of("pace")} {
		if _, ok := series[name]; !ok {
			t.Errorf("there is no %s", name)
		}
	}
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/queue/pause", "")
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/queue/drain?most=2", "")
	s.UntilScraped(map[string]string{of("waiting"): "1", of("at_shop"): "1", of("bytes"): "8", of("paused"): "1"})
}
