package main

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
	"github.com/stockgate/stockgate/internal/test/auditor/shop"
)

// scenario is one way to attack.
type scenario struct {
	name  string
	about string // what is done, and what must hold, for bench/results/evidence.md
	short bool   // part of the run in CI
	asked bool   // needs more than others, and runs only where it is named
	run   func(a *attack)
}

// attack is one run of a scenario: what is attacked, and all that happened.
type attack struct {
	scenario
	seed    uint64
	long    bool
	caddies []string // the binaries that edges run, in turn
	dir     string
	dice    *rand.Rand // for the goroutine of the scenario only

	h       *auditor.History
	crowd   *crowd.Crowd
	shop    *shop.Shop
	redis   *rig.Redis
	at      map[string]*rig.Redis // where a sale is, if not there
	api     []string              // of each edge: where the shop's API is
	site    rig.Site
	sites   []rig.Site // of each edge, where they differ
	storage string     // of the edges that start; default: one for all of them
	edges   []*rig.Edge
	doors   []*crowd.Door
	sales   []string
	found   []auditor.Violation
	mu      sync.Mutex // of what goroutines count
	counts  map[string]int
	returns atomic.Int64 // that operators were told of
	marking []func()     // end what notes how far journals are
	cleanup []func()
}

// failure is what keeps a scenario from going on: the rig does not do what it must, or the
// product does not come back within all patience.
type failure struct{ error }

// perform runs a scenario to its end and judges it.
func perform(s scenario, seed uint64, long bool, caddies []string) (a *attack, err error) {
	sum := fnv.New64a()
	fmt.Fprint(sum, s.name)
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		return nil, err
	}
	h := &auditor.History{}
	a = &attack{scenario: s, seed: seed, long: long, caddies: caddies, dir: dir, dice: rand.New(rand.NewPCG(seed, sum.Sum64())),
		h: h, crowd: &crowd.Crowd{History: h}, counts: map[string]int{}, at: map[string]*rig.Redis{}}
	defer func() {
		for i := len(a.cleanup) - 1; i >= 0; i-- {
			a.cleanup[i]()
		}
		os.RemoveAll(dir)
	}()
	defer func() {
		if f, ok := recover().(failure); ok {
			err = f.error
			for _, e := range a.edges {
				err = fmt.Errorf("%w\n--- log of edge %s\n%s", err, e.Name, e.Log.Tail(15))
			}
		}
	}()
	s.run(a)
	a.judge()
	return a, nil
}

func (a *attack) must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// until waits for what must happen in the end.
func (a *attack) until(what string, done func() bool) { a.must(rig.Until(what, done)) }

// violated notes a broken promise that the scenario itself has seen.
func (a *attack) violated(promise, format string, args ...any) {
	a.found = append(a.found, auditor.Violation{Promise: promise, What: fmt.Sprintf(format, args...)})
}

// count adds to what the results tell.
func (a *attack) count(what string, n int) { a.counts[what] += n }

// size is the number for a long run, or that for a short one.
func (a *attack) size(short, long int) int {
	if a.long {
		return long
	}
	return short
}

// chance is a number from 0 to n-1 that depends on the seed and on what it is for, and
// on nothing else: goroutines may ask in any order.
func (a *attack) chance(n int, about ...any) int {
	sum := fnv.New64a()
	fmt.Fprint(sum, a.seed, a.name, about)
	return int(rand.New(rand.NewPCG(a.seed, sum.Sum64())).Uint64N(uint64(n)))
}

// judge reads every sale from Redis and gives the whole history to the auditor.
func (a *attack) judge() {
	for _, end := range a.marking {
		end()
	}
	for _, sale := range a.sales {
		s, err := rig.Collect(a.home(sale).Addr(), sale)
		a.must(err)
		a.count("movements", len(s.Movements))
		a.h.Shards = append(a.h.Shards, s)
	}
	a.found = append(a.found, auditor.Judge(a.h)...)
}

// home is the Redis that a sale is in.
func (a *attack) home(sale string) *rig.Redis {
	if r := a.at[sale]; r != nil {
		return r
	}
	return a.redis
}

// pause waits, unless it is time to stop; false: it is.
func pause(d time.Duration, stop <-chan struct{}) bool {
	select {
	case <-time.After(d):
		return true
	case <-stop:
		return false
	}
}
