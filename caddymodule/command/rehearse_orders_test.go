package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// A file of orders that is missing or wrong is found before anything is sent. One that is gone
// when the crowd is done is said, and the books are judged all the same.
func TestARehearsalReadsTheOrdersFirst(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	listed := s.File("orders.csv", "reservation\n")
	var asked atomic.Int64
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		os.Remove(listed)
		w.WriteHeader(http.StatusConflict)
	}))
	defer shop.Close()
	order := s.File("order.http", fmt.Sprintf("POST /api/order HTTP/1.1\nHost: %s\n\n{}\n", shop.Listener.Addr()))
	crowd := func(orders string) []string {
		return []string{"rehearse", "--sale", "double11", "--host", shop.URL, "--buyers", "1", "--orders", orders, order}
	}
	judge := func(orders string) []string {
		return []string{"rehearse", "--sale", "double11", "--judge-only", "--orders", orders}
	}
	for orders, says := range map[string]string{
		s.Path("missing.csv"):                 "missing.csv: no such file or directory\n",
		s.File("wrong.csv", "id,buyer\n1,\n"): "wrong.csv: it has no column reservation or ref; its first line has [\"id\" \"buyer\"]\n",
		s.Dir:                                 "is a directory\n",
	} {
		for _, args := range [][]string{crowd(orders), judge(orders)} {
			if r := s.Run(args...); r.Status != 2 || r.Out != "" || !strings.Contains(r.Errors, "rehearse: --orders: ") || !strings.HasSuffix(r.Errors, says) {
				t.Errorf("%q: %+v", args, r)
			}
		}
	}
	if r := s.Run("rehearse", "--sale", "nosuch", "--host", shop.URL, "--buyers", "1", order); r.Status != 2 || !strings.Contains(r.Errors, "nosuch") {
		t.Errorf("no such sale: %+v", r)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}

	r := s.Run(crowd(listed)...)
	if r.Status != 1 || !strings.HasSuffix(r.Errors, "not passed: the shop's orders cannot be read\n") {
		t.Errorf("%+v", r)
	}
	for _, says := range []string{"promises, by the books\n  kept       no oversell\n", "  answers                      1  ",
		"note: only the gate's books were judged: the shop's orders cannot be read: open " + listed + ": no such file or directory\n"} {
		if !strings.Contains(r.Out, says) {
			t.Errorf("it does not say %q:\n%s", says, r.Out)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("%d requests were sent", asked.Load())
	}
}

// A list of orders may name them by the shop's refs: a ref that no reservation has is an order that came past the
// gate.
func TestARehearsalFindsOrdersByTheirRefs(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	for id, ref := range map[string]string{"r1": "order-1", "r2": "order-2"} {
		p.HoldRef(id, ref, "plain")
		p.Must(p.Confirm(t.Context(), "double11", id, reservation.SourceShop, ""))
	}
	p.HoldRef("r3", "order-3", "plain")
	p.Must(p.Release(t.Context(), "double11", "r3", reservation.SourceUnsent, "x"))
	for text, want := range map[string]string{
		"ref\norder-1\norder-2\n":                              "",
		"Ref,order_no,sku\norder-1,1,plain\norder-2,2,plain\n": "",
		`[{"ref":"order-1"},{"reservation":"r2"}]`:             "",
		"ref\norder-1\n":                                       "units of plain are confirmed without an order",
		"ref,sku\norder-1,plain\norder-2,plain\nx,plain\n":     "has the ref x, and no reservation of the sale has it",
		"ref\norder-1\norder-2\norder-3\n":                     "is for the reservation r3, which is released",
		"ref,order_no\norder-1,1\norder-2,2\norder-2,3\n":      "",
	} {
		r := s.Run("rehearse", "--sale", "double11", "--judge-only", "--orders", s.File("orders", text))
		if (r.Status == 0) != (want == "") || !strings.Contains(r.Out, want) {
			t.Errorf("%q: %+v, want %q", text, r, want)
		}
	}
}
