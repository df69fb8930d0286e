package sale_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

func TestMaxHold(t *testing.T) {
	for text, test := range map[string]struct {
		longest time.Duration
		json    string // of max_hold; empty: left out
	}{
		"":                     {time.Hour, ""},
		"max_hold: 1h\n":       {time.Hour, ""},
		"max_hold: 60m\n":      {time.Hour, ""},
		"max_hold: 30m\n":      {30 * time.Minute, "30m"},
		"max_hold: \"90s\"\n":  {90 * time.Second, "1m30s"},
		"max_hold: 3s\n":       {3 * time.Second, "3s"},
		"max_hold: 168h\n":     {168 * time.Hour, "168h"},
		"max_hold: 1h0m30s\n":  {time.Hour + 30*time.Second, "1h0m30s"},
		"max_hold: 10080m\n":   {168 * time.Hour, "168h"},
		"max_hold: 00002h5m\n": {2*time.Hour + 5*time.Minute, "2h5m"},
	} {
		s := mustParse(t, head+oneItem+text)
		if s.LongestHold() != test.longest {
			t.Errorf("%q is read as %v, want %v", text, s.LongestHold(), test.longest)
		}
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		want := `"max_hold":"` + test.json + `"`
		if test.json == "" {
			want = "]}" // the items end the document
		}
		if !strings.Contains(string(data), want) || strings.Contains(string(data), "max_hold") != (test.json != "") {
			t.Errorf("%q is written as %s", text, data)
		}
		again, err := sale.Decode(data)
		if err != nil || again.LongestHold() != test.longest || !again.Equal(s) {
			t.Errorf("%s is decoded as %v, %v", data, again, err)
		}
	}
	short, long := mustParse(t, head+oneItem+"max_hold: 30m\n"), mustParse(t, head+oneItem)
	if short.Equal(long) {
		t.Error("another max_hold is the same sale")
	}
	for _, hold := range []time.Duration{-1, 1, time.Second, 168*time.Hour + 1, time.Minute + 1} {
		if s, err := sale.New(sale.Sale{ID: "s", StartsAt: long.StartsAt, EndsAt: long.EndsAt, Items: long.Items, MaxHold: sale.Span(hold)}); err == nil {
			t.Errorf("max_hold %v is taken: %+v", hold, s)
		}
	}
	change, err := sale.Plan(nil, "", short, false)
	if err != nil || change.Notes[len(change.Notes)-1] != "max_hold 30m" {
		t.Errorf("a new sale: %+v, %v", change, err)
	}
}
