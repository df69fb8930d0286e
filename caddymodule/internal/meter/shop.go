package meter

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// answerClasses are the labels of an answer, by the first digit of its status.
var answerClasses = [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}

// shopAnswers counts what the shop says to orders. The map is replaced, never changed.
type shopAnswers struct {
	vec    *prometheus.CounterVec
	bySale atomic.Pointer[map[string]*[len(answerClasses)]prometheus.Counter]
	adding sync.Mutex
}

func (s *shopAnswers) open() {
	s.vec = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stockgate_shop_answers_total",
		Help: "Answers of the shop to orders: 2xx, 3xx, 4xx, 5xx or none (a timeout, a broken connection).",
	}, []string{"sale", "answer"})
	s.bySale.Store(new(map[string]*[len(answerClasses)]prometheus.Counter))
}

// CountShopAnswer counts the shop's answer to an order; status 0: there was none. saleID must be in the catalogue.
func CountShopAnswer(saleID string, status int) {
	s := &All().shop
	counters, ok := (*s.bySale.Load())[saleID]
	if !ok {
		counters = s.resolve(saleID)
	}
	counters[min(max(status/100, 0), len(answerClasses)-1)].Inc()
}

// resolve finds the counters of a sale for the first time.
func (s *shopAnswers) resolve(saleID string) *[len(answerClasses)]prometheus.Counter {
	s.adding.Lock()
	defer s.adding.Unlock()
	next := maps.Clone(*s.bySale.Load())
	if next == nil {
		next = make(map[string]*[len(answerClasses)]prometheus.Counter)
	}
	counters := new([len(answerClasses)]prometheus.Counter)
	for i, class := range answerClasses {
		if i != 1 { // no answer ends with an interim one
			counters[i] = s.vec.WithLabelValues(saleID, class)
		}
	}
	counters[1] = counters[0]
	next[saleID] = counters
	s.bySale.Store(&next)
	return counters
}

// ShopCount is how many orders of a sale this process has sent to the shop, and how many of them got 5xx or no answer.
type ShopCount struct{ Sent, Failed float64 }

// ShopCounts returns the counts of all sales since the process began.
func ShopCounts() map[string]ShopCount {
	all := make(map[string]ShopCount)
	for saleID, counters := range *All().shop.bySale.Load() {
		var n ShopCount
		for i, c := range counters {
			if i == 1 {
				continue
			}
			v := valueOf(c)
			if n.Sent += v; i == 0 || i == 5 {
				n.Failed += v
			}
		}
		all[saleID] = n
	}
	return all
}

// CountChallenge counts an attempt that a gate has asked for a solution.
func CountChallenge(gate string) { All().challenges.WithLabelValues(gate).Inc() }

// Challenges returns how many attempts each gate of this process has asked for a solution.
func Challenges() map[string]float64 {
	all, series := make(map[string]float64), make(chan prometheus.Metric)
	go func() {
		All().challenges.Collect(series)
		close(series)
	}()
	for s := range series {
		var m dto.Metric
		if s.Write(&m) == nil {
			all[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return all
}

func valueOf(c prometheus.Counter) float64 {
	var m dto.Metric
	_ = c.Write(&m)
	return m.GetCounter().GetValue()
}
