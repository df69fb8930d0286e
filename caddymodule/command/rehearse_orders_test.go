package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stockgate/stockgate/internal/test/sitetest"
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
		s.File("wrong.csv", "id,buyer\n1,\n"): "wrong.csv: it has no column reservation; its first line has [\"id\" \"buyer\"]\n",
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
