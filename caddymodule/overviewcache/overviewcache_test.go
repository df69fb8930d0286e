package overviewcache

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// A cached overview stays usable for some seconds after Redis stops answering. The test
// runs in a synctest bubble because a real machine could stall between two clock reads.
func TestOverviewsGrowOld(t *testing.T) { synctest.Test(t, overviewsGrowOld) }

func overviewsGrowOld(t *testing.T) {
	away := errors.New("away")
	overview := new(reservation.Overview)
	for name, c := range map[string]struct {
		Cached
		readAgo, triedAgo time.Duration
		fresh             bool
		err               error
	}{
		"just read":               {Cached{Overview: overview}, 0, 0, true, nil},
		"read a second ago":       {Cached{Overview: overview}, time.Second, time.Second, false, nil},
		"large, two seconds ago":  {Cached{Overview: overview, pause: 3 * time.Second}, 2 * time.Second, 2 * time.Second, true, nil},
		"large, four seconds ago": {Cached{Overview: overview, pause: 3 * time.Second}, 4 * time.Second, 4 * time.Second, false, nil},
		"large, away for a while": {Cached{Overview: overview, pause: 3 * time.Second, err: away}, 7 * time.Second, 0, true, nil},
		"away for four seconds":   {Cached{Overview: overview, err: away}, 4 * time.Second, 0, true, nil},
		"away for six seconds":    {Cached{Overview: overview, err: away}, 6 * time.Second, 0, true, away},
		"not asked for a minute":  {Cached{Overview: overview}, time.Minute, time.Minute, false, ErrOld},
		"never read, just failed": {Cached{err: away}, 0, 0, true, away},
	} {
		c.pause = max(c.pause, timing.Overview.Now())
		c.good = c.pause + overviewStaleFor
		now := time.Now()
		c.read, c.tried = now.Add(-c.readAgo), now.Add(-c.triedAgo)
		if got := c.Cached.fresh(); got != c.fresh {
			t.Errorf("%s: fresh is %t", name, got)
		}
		got, err := c.usable()
		if !errors.Is(err, c.err) || (err == nil) != (got != nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Reads of all sales take at most a twentieth of the time. A sale that is read quickly, or
// whose read failed, does not wait for the others.
func TestOverviewsArePaced(t *testing.T) { synctest.Test(t, overviewsArePaced) }

func overviewsArePaced(t *testing.T) {
	b := &Cache{Options: Options{Most: 1000, Lines: true, Longest: 30 * time.Second}, sales: make(map[string]*Cached)}
	for i := range 10 {
		b.sales[fmt.Sprint("large", i)] = &Cached{tried: time.Now(), took: 100 * time.Millisecond}
	}
	b.sales["long ago"] = &Cached{tried: time.Now().Add(-overviewBusyFor), took: time.Minute}
	b.sales["small"] = &Cached{tried: time.Now(), took: time.Millisecond}
	b.sales["away"] = &Cached{tried: time.Now(), took: 100 * time.Millisecond, good: 27 * time.Second, err: ErrOld}
	b.sales["huge"] = &Cached{tried: time.Now(), took: time.Second}
	const busy = 13
	for id, want := range map[string][2]time.Duration{
		"large0": {20 * busy * 100 * time.Millisecond, 20*busy*100*time.Millisecond + overviewStaleFor},
		"small":  {time.Second, time.Second + overviewStaleFor},
		"away":   {time.Second, 27 * time.Second},
		"huge":   {30 * time.Second, 30*time.Second + overviewStaleFor},
	} {
		s := b.sales[id]
		b.pace(s)
		if got := [2]time.Duration{s.pause, s.good}; got != want {
			t.Errorf("%s: pause and good %v, want %v", id, got, want)
		}
	}
}

// A caller that looked before a read ended does not start another one: here it could not, because there is no edge.
func TestOverviewReadMeanwhile(t *testing.T) {
	b := &Cache{sales: map[string]*Cached{"flash": {tried: time.Now(), pause: time.Hour}}}
	<-b.read("flash", new(Cached))
}
