package dashboard_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/lua"
)

// answerTimes are count and sum of stockgate_answer_seconds for a result.
func answerTimes(t *testing.T, s *sitetest.Site, result string) (count int, sum time.Duration) {
	t.Helper()
	text := s.Admin("GET", "/metrics", "").Body
	value := func(name string) float64 {
		m := regexp.MustCompile(`(?m)^stockgate_answer_seconds_` + name + `\{result="` + result + `"\} (\S+)$`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no %s of %s in\n%s", name, result, text)
		}
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return int(value("count")), time.Duration(value("sum") * float64(time.Second))
}

// While Redis does not answer, the page says how many requests wait for a call and how many are
// in the one under way. When it answers, the page says how many buyers got the goods and how
// many did not, and how long they waited: no longer than they measure themselves, no shorter
// than Redis was silent.
func TestQueueAndFairness(t *testing.T) {
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusCreated) }))
	defer shop.Close()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	app := object{"redis": object{"addresses": []string{proxy.Addr()}, "timeout": "1m"}}
	s := sitetest.Open(t, nil)
	s.Shop = shop.Listener.Addr().(*net.TCPAddr).String()
	s.Gate = object{"handler": "stockgate", "buyer": []string{"{header.X-User}"}, "lines": []any{object{"sku": []string{"{json.sku}"}}}}
	s.Gates = []any{at("/open", page(object{"unprotected": true}))}
	s.Load(app)
	s.OpenSale()
	next := listen(t, s, "/open/events?sale=double11")
	before := until(t, next, "the sale is there", func(n news) bool { return n.Sale.Stock[1] == 215 })
	won, wonTook := answerTimes(t, s, "won")
	lost, lostTook := answerTimes(t, s, "lost")

	proxy.HoldRequests("EVALSHA " + lua.Redis().Of(lua.Reserve).SHA)
	held := time.Now()
	var crowd sync.WaitGroup
	var mu sync.Mutex
	took := map[int]time.Duration{}
	statuses := map[int]int{}
	buy := func(buyer int) {
		crowd.Go(func() {
			began := time.Now()
			a := s.AskWith("http", "POST", "/order", `{"sku":"few"}`, map[string]string{"Content-Type": "application/json", "X-User": fmt.Sprint("buyer", buyer)})
			mu.Lock()
			defer mu.Unlock()
			took[a.Status] += time.Since(began)
			statuses[a.Status]++
		})
	}
	buy(0)
	until(t, next, "a call is under way", func(n news) bool { return n.Edge.Queue == queueNews{Calls: 1, Sending: 1} })
	for i := range 5 {
		buy(1 + i)
	}
	until(t, next, "five wait", func(n news) bool { return n.Edge.Queue == queueNews{Waiting: 5, Calls: 1, Sending: 1} })
	silent := time.Since(held)
	proxy.ReleaseRequests()
	crowd.Wait()
	if statuses[http.StatusCreated] != 3 || len(statuses) != 2 {
		t.Fatalf("the answers: %v", statuses)
	}
	after := until(t, next, "all are answered", func(n news) bool {
		return n.Edge.Queue == queueNews{} && n.Attempts.Won.Attempts == before.Attempts.Won.Attempts+3 && n.Attempts.Lost.Attempts == before.Attempts.Lost.Attempts+3
	})
	if w, l := after.Attempts.Won, after.Attempts.Lost; w.P50 <= 0 || w.P99 < w.P50 || l.P50 <= 0 || l.P99 < l.P50 {
		t.Errorf("won %+v, lost %+v", w, l)
	}
	delete(took, http.StatusCreated)
	for result, was := range map[string]struct {
		count int
		sum   time.Duration
	}{"won": {won, wonTook}, "lost": {lost, lostTook}} {
		count, sum := answerTimes(t, s, result)
		if count, sum = count-was.count, sum-was.sum; count != 3 {
			t.Errorf("%s: %d attempts", result, count)
		}
		if sum <= 0 || result == "lost" && sum > total(took) {
			t.Errorf("%s: they took %v, their buyers measured %v", result, sum, total(took))
		}
	}
	_, sumWon := answerTimes(t, s, "won")
	_, sumLost := answerTimes(t, s, "lost")
	if all := sumWon + sumLost - wonTook - lostTook; all < silent { // the first one waited all the time
		t.Errorf("all took %v, and Redis was silent for %v", all, silent)
	}
	report := s.Get("/open/report?sale=double11").Body
	for _, want := range []string{
		fmt.Sprintf("winners waited for their answer, p50 and p99 of %d attempts", after.Attempts.Won.Attempts),
		fmt.Sprintf("losers waited for their answer, p50 and p99 of %d attempts", after.Attempts.Lost.Attempts),
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
}

func total(took map[int]time.Duration) (sum time.Duration) {
	for _, d := range took {
		sum += d
	}
	return sum
}

// The page has the line of orders that wait for the shop, of a sale that has one.
func TestLine(t *testing.T) {
	s, shopper := open(t)
	next := listen(t, s, "/ops/events?sale=double11")
	until(t, next, "there is no line", func(n news) bool { return n.Sale.ID == "double11" && n.Sale.Line == nil })
	for _, id := range []string{"r1", "r2", "r3"} {
		shopper.Order(id, sitetest.Queue(1))
	}
	until(t, next, "two orders wait", func(n news) bool {
		l := n.Sale.Line
		return l != nil && l.Waiting == 2 && l.AtShop == 1 && l.Oldest > 0 && !l.Stopped
	})
	if _, err := queue.Pause(t.Context(), shopper.Store, "double11"); err != nil {
		t.Fatal(err)
	}
	if _, err := queue.Drain(t.Context(), shopper.Store, "double11", "test", 1); err != nil {
		t.Fatal(err)
	}
	until(t, next, "the line is stopped", func(n news) bool { return n.Sale.Line.Stopped && n.Sale.Line.Waiting == 1 })
}
