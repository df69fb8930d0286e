package app_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/edge/fence"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// An edge that is killed in a running sale is named once for all its sales, until an operator knows of it. One that
// is stopped is not named.
func TestADeadEdgeIsNamed(t *testing.T) {
	server := redistest.Start(t)
	s := openShop(t, map[string]any{"redis": map[string]any{"addresses": []string{server.Addr()}, "timeout": "1m"}}, nil)
	openToBidders(s)
	sitetest.Do[any](s, "PUT", "/stockgate/sales/none", sitetest.MoreSales["none"])
	sitetest.Do[any](s, "POST", "/stockgate/sales/none/open", "")
	becomes(s, "sold", bid{buyer: "Ann", skus: "plain"}) // an edge that sells is heard twice a second
	becomes(s, "sold", bid{buyer: "Ann", skus: "out"})
	store := stocktest.OpenStore(t, stocktest.Options(server))
	sales := []string{"double11", "none"}

	start := func() (*fence.Keeper, context.CancelFunc) {
		t.Helper()
		e := fence.New(store, zap.NewNop(), new(stocktest.Counter))
		alive, kill := context.WithCancel(t.Context())
		e.Start(alive)
		for _, sale := range sales {
			if err := store.Shard().Acquire(stocktest.Soon(t), sale); err != nil {
				t.Fatal(err)
			}
		}
		return e, kill
	}
	stopped, _ := start()
	stopped.Leave(stocktest.Soon(t))
	dead, kill := start()
	kill()
	dead.Wait()
	if strings.Contains(doctor(s), "not heard any more") {
		t.Error(doctor(s))
	}

	long := time.Now().Add(-12 * time.Minute).UnixMilli()
	for _, sale := range sales {
		key := store.Shard().FenceKeys(sale)
		if n, err := server.Client().HExists(t.Context(), key[len(key)-3], stopped.ID()).Result(); err != nil || n {
			t.Errorf("the stopped edge is known in %s: %v", sale, err)
		}
		if _, err := server.Client().TxPipelined(t.Context(), func(all redis.Pipeliner) error { // no heartbeat comes between
			all.HSet(t.Context(), key[len(key)-3], dead.ID(), long)
			all.HDel(t.Context(), key[0], "came") // else the site has come since
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		s.Eventually("the dead edge is noted", func() (string, bool) {
			silent := server.Client().HGet(t.Context(), key[0], "silent").Val()
			return silent, strings.HasSuffix(silent, " "+dead.ID())
		})
		if err := server.Client().HSet(t.Context(), key[0], "silent", fmt.Sprint(long, " ", long, " ", dead.ID())).Err(); err != nil {
			t.Fatal(err)
		}
	}
	named := regexp.MustCompile(`"warning","check":"edges","text":"edges that were not stopped are not heard any more: ` + dead.ID() + ` for 12m\d+s, since .* \(double11, none\)\. `)
	s.Eventually("the doctor names it", func() (string, bool) {
		text := doctor(s)
		return text, named.MatchString(text)
	})
	s.UntilScraped(map[string]string{"stockgate_silent_edges": "1"})

	if out := s.OK("edge", "forget", "other"); out != "no warning names the edge other: nothing was changed\n" {
		t.Error(out)
	}
	if out := s.OK("edge", "forget", dead.ID()); out != dead.ID()+" is forgotten\n" {
		t.Error(out)
	}
	if text := doctor(s); strings.Contains(text, "not heard any more") {
		t.Error(text)
	}
	s.UntilScraped(map[string]string{"stockgate_silent_edges": "0"})
	if n := len(s.Logged("silent edge forgotten")); n != 1 {
		t.Errorf("the log says it %d times", n)
	}
}

func doctor(s *sitetest.Site) string { return s.Admin("GET", "/stockgate/doctor", "").Body }
