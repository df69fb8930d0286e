package edge_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// BenchmarkFence compares an edge that keeps a fence with one that has `fence off`, on one
// server, in pairs of rounds whose order alternates. Each operation is a call of its own, so
// that the fence costs as much as it can. It reports medians of processor time per operation
// with `fence off`, and of the pairs' ratios: how many percent more the fence takes, of Redis's
// time and of the edge's. Processor time hardly depends on what else the machine does.
func BenchmarkFence(b *testing.B) {
	server := redistest.Start(b, redistest.Config("save ''"))
	var edges [2]*edge.Edge // without and with
	for i := range edges {
		o := stocktest.Options(server)
		o.NoFence, o.Prefix = i == 0, fmt.Sprint("p", i)
		edges[i] = stocktest.NewEdge(b, o, edge.Options{})
		stocktest.Load(b, edges[i].Store, stocktest.OpenSale("s", 1_000_000_000))
		edges[i].Start()
		if err := edges[i].Refresh(stocktest.Soon(b)); err != nil {
			b.Fatal(err)
		}
	}
	reserve := func(e *edge.Edge, id string) { stocktest.MustHold(b, e, id, id, 1) }
	for name, kind := range map[string]struct{ before, do func(e *edge.Edge, id string) }{
		"reserve": {nil, reserve},
		"confirm": {reserve, func(e *edge.Edge, id string) {
			if _, err := e.Store.Confirm(stocktest.Soon(b), "s", id, reservation.SourceAnswer, ""); err != nil {
				b.Fatal(err)
			}
		}},
		"lookup": {nil, func(e *edge.Edge, id string) {
			l, _ := e.Catalogue().Sale("s")
			a := &sale.Attempt{Sale: "s", Buyer: id, Lines: stocktest.UnitsOfA(1), Key: id, Print: "print"}
			if found, err := e.Lookup(stocktest.Soon(b), l, a, a.Lines); found != nil || err != nil {
				b.Fatal(found, err)
			}
		}},
	} {
		b.Run(name, func(b *testing.B) {
			const n = 200
			var off, more [2][]float64 // of Redis, of the edge
			for round := range b.N {
				var took [2][2]float64
				for k := range edges {
					i := (k + round) % 2
					if kind.before != nil {
						for j := range n {
							kind.before(edges[i], fmt.Sprint(name, b.N, "-", round, "-", j))
						}
					}
					redis, own := redisTime(b, server), ownTime(b)
					for j := range n {
						kind.do(edges[i], fmt.Sprint(name, b.N, "-", round, "-", j))
					}
					took[i] = [2]float64{redisTime(b, server) - redis, ownTime(b) - own}
				}
				for of := range off {
					off[of] = append(off[of], took[0][of]/n)
					more[of] = append(more[of], 100*(took[1][of]/took[0][of]-1))
				}
			}
			for of, whose := range []string{"redis", "edge"} {
				b.ReportMetric(median(off[of]), "us-"+whose)
				b.ReportMetric(median(more[of]), "%more-"+whose)
			}
		})
	}
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

var usedTime = regexp.MustCompile(`(?m)^used_cpu_(?:user|sys):([0-9.]+)`)

// redisTime is the processor time of a server, in µs.
func redisTime(b *testing.B, s *redistest.Server) (sum float64) {
	b.Helper()
	info, err := s.Client().Info(stocktest.Soon(b), "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range usedTime.FindAllStringSubmatch(info, -1) {
		seconds, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += seconds * 1e6
	}
	return sum
}

// ownTime is the processor time of this process, in µs.
func ownTime(b *testing.B) float64 {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1000
}
