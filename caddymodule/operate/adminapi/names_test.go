package adminapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// A file of orders is read as by the command, whatever is in it, and changes nothing.
func TestNamesInAFile(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	s.Load(app)
	s.OpenSale()
	for _, c := range []struct {
		text, column string
		status       int
		names        []string
		says         string
	}{
		{"a\nb\na\n", "", 200, []string{"a", "b"}, ""},
		{"\ufeffid;total\r\nr1;3\r\n;4\r\n", "", 200, []string{"r1"}, ""},
		{`{"ref":"o-1"}` + "\n" + `{"ref":7}`, "", 200, []string{"o-1", "7"}, ""},
		{"no,Order\n1,x\n", "order", 200, []string{"x"}, ""},
		{"no,Order\n1,x\n", "", 400, nil, "orders.csv: which column has the reservation ids or refs?"},
		{"no,Order\n1,x\n", "other", 400, nil, `it has no column \"other\"`},
		{"id\n<b>a b</b>\n", "", 400, nil, "orders.csv:2: "},
		{"", "", 400, nil, "orders.csv names no order"},
		{"id\n", "", 400, nil, "orders.csv names no order"},
		{"id\n\"a", "", 400, nil, "orders.csv"},
		{strings.Repeat("x", adminapi.MaxFileText+1), "", 400, nil, "larger than 2097152 bytes"},
	} {
		body, _ := json.Marshal(adminapi.OrderFile{Name: "orders.csv", Text: c.text, Column: c.column})
		a := s.Admin(http.MethodPost, "/stockgate/sales/double11/holds/names", string(body))
		var got adminapi.OrderNames
		_ = json.Unmarshal([]byte(a.Body), &got)
		if a.Status != c.status || !slices.Equal(got.Names, c.names) || !strings.Contains(a.Body, c.says) {
			t.Errorf("%.30q: %d %.200s, want %d %q %s", c.text, a.Status, a.Body, c.status, c.names, c.says)
		}
	}
	for _, body := range []string{"", "[]", `{"text":1}`, `{"text":"a","text":"b"}`, `{"other":""}`} {
		if a := s.Admin(http.MethodPost, "/stockgate/sales/double11/holds/names", body); a.Status != 400 {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
}

// The counts of all edges are JSON without null lists, also of a sale of which nothing was counted.
func TestCountsOfASale(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	s.Load(app)
	s.OpenSale()
	a := s.Admin(http.MethodGet, "/stockgate/sales/double11/counts", "")
	var c adminapi.SaleCounted
	if err := json.Unmarshal([]byte(a.Body), &c); err != nil || a.Status != 200 || strings.Contains(a.Body, `:null,"shadow"`) || len(c.Edges) != 1 || c.Edges[0].Live != 1 || !c.Edges[0].Sells || len(c.Edges[0].IDs) != 1 {
		t.Errorf("%d %s %v", a.Status, a.Body, err)
	}
	if a := s.Admin(http.MethodGet, "/stockgate/sales/other/counts", ""); a.Status != 404 {
		t.Errorf("no such sale: %d %s", a.Status, a.Body)
	}
	if a := s.Admin(http.MethodGet, "/stockgate/sales/double11/counts?x=1", ""); a.Status != 400 {
		t.Errorf("a parameter: %d %s", a.Status, a.Body)
	}
}
