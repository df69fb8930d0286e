package app_test

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/edge/fence"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// An operator sees which edge a fenced sale waits for, and may go on without it. Where nothing is
// fenced, command and admin API say so.
func TestUnfence(t *testing.T) {
	server := redistest.Start(t, redistest.Config("appendonly yes", "appendfsync always"))
	s := openShop(t, map[string]any{"redis": map[string]any{"addresses": []string{server.Addr()}, "timeout": "1m", "fence_wait": "10m", "at_risk": "7"}}, nil)
	openToBidders(s)
	buy := bid{buyer: "Ann", skus: "plain"}
	becomes(s, "sold", buy)
	nothing := func() {
		t.Helper()
		if a := s.Admin("POST", "/stockgate/sales/double11/unfence", ""); a.Status != 200 || strings.TrimSpace(a.Body) != `{"id":"double11","was_fenced":false}` {
			t.Errorf("%+v", a)
		}
		if out := s.OK("sale", "unfence", "double11"); out != "double11 was not fenced: nothing was changed\n" {
			t.Error(out)
		}
	}
	nothing()
	if a := s.Admin("POST", "/stockgate/sales/other/unfence", ""); a.Status != 404 {
		t.Errorf("%+v", a)
	}

	store := stocktest.OpenStore(t, stocktest.Options(server))
	other := fence.New(store, zap.NewNop(), new(stocktest.Counter))
	alive, kill := context.WithCancel(t.Context())
	other.Start(alive)
	if err := store.Shard().Acquire(stocktest.Soon(t), "double11"); err != nil {
		t.Fatal(err)
	}
	kill()
	other.Wait()
	server.Kill()
	server.Restart()
	id := other.ID()
	s.Eventually("the edge that is waited for", func() (string, bool) {
		a := s.Admin("GET", "/stockgate/doctor", "").Body
		return a, strings.Contains(a, ": 1 edges have not said what they know ("+id+", last heard at ")
	})
	if out := s.OK("sale", "unfence", "double11"); !strings.HasPrefix(out, "double11 is sold again, without what redis has lost: ") {
		t.Error(out)
	}
	becomes(s, "sold", buy)
	text := s.Admin("GET", "/stockgate/doctor", "").Body
	if !strings.Contains(text, "1 edges did not come") || !strings.Contains(text, " (at_risk bounds what each sold to 7): "+id+", last heard at ") {
		t.Error(text)
	}
	s.UntilScraped(map[string]string{`stockgate_fence_lost_total{what="edge"}`: "1", `stockgate_fence_lost_total{what="movement"}`: "0", "stockgate_fenced_sales": "0"})
	nothing()
	if n := len(s.Logged("sale sold again without what redis has lost")); n != 1 {
		t.Errorf("the log says %d times that the sale was unfenced", n)
	}
}

// An address leads to the old primary again. The edge that knows its successor does not sell from
// it, and says why. It goes on with the successor, or once the old primary was restarted: then
// that has what was sold meanwhile.
func TestAnOldPrimaryIsNamed(t *testing.T) {
	old := redistest.Start(t, redistest.Config("appendonly yes", "appendfsync always"))
	successor := stocktest.Replica(t, old)
	proxy := redistest.NewProxy(t, old.Addr())
	s := openShop(t, map[string]any{"redis": map[string]any{"addresses": []string{proxy.Addr()}, "timeout": "1m"}}, nil)
	openToBidders(s)
	becomes(s, "sold", bid{buyer: "Ann", skus: "plain"})
	stocktest.Replicated(t, stocktest.OpenStore(t, stocktest.Options(old)).Shard())
	if err := successor.Client().Do(stocktest.Soon(t), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	proxy.Lead(successor.Addr())
	becomes(s, "sold", bid{buyer: "Bob", skus: "plain"})

	named := func() {
		t.Helper()
		proxy.Lead(old.Addr())
		s.Eventually("the doctor names an old primary", func() (string, bool) {
			a := s.Admin("GET", "/stockgate/doctor", "").Body
			return a, strings.Contains(a, "it may be a primary that has been replaced. Nothing of double11 is sold since ")
		})
		s.UntilScraped(map[string]string{"stockgate_fenced_sales": "1"})
		if got := bidFor(s, bid{buyer: "Eve", skus: "plain"}); got != "unavailable" {
			t.Errorf("from the old primary a buyer hears %s", got)
		}
	}
	named()
	proxy.Lead(successor.Addr())
	becomes(s, "sold", bid{buyer: "Cai", skus: "plain"})
	s.UntilScraped(map[string]string{"stockgate_fenced_sales": "0"})
	named()
	old.Kill()
	old.Restart()
	becomes(s, "sold", bid{buyer: "Dan", skus: "plain"})
	s.UntilScraped(map[string]string{"stockgate_fenced_sales": "0"})
	if got := s.StockOf("plain"); got != "1000 996 0 0 4" {
		t.Errorf("stock %s, want four that are sold", got)
	}
	if n := len(s.Logged("redis is older than what this edge knows: it may be a primary that has been replaced; not selling, see docs/failover.md")); n != 2 {
		t.Errorf("the log names the old primary %d times, want 2", n)
	}
}
