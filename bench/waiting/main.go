// Command waiting measures what people who wait for units take of an edge's memory: with an idle connection after a
// request for their place, with a request that waits for news, and with a stream of events.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/stockgate/stockgate/bench/measure"
	"github.com/stockgate/stockgate/bench/peer"
)

type options struct {
	caddy        string
	people, runs int
	core         int
}

// row is what each of some people takes of an edge, in KiB.
type row struct {
	// Wrapper: with the listener wrapper and fast_refusals.
	Wrapper  bool           `json:"wrapper"`
	Protocol string         `json:"protocol"`
	Asks     string         `json:"asks"`
	People   int            `json:"people"`
	Resident measure.Spread `json:"rss_kib_each"`
	// Live is heap and stacks after a garbage collection.
	Live measure.Spread `json:"live_kib_each"`
}

// Where the edge listens, and its admin endpoint.
const (
	port  = 18621
	admin = "127.0.0.1:18622"
)

func main() {
	var o options
	flag.StringVar(&o.caddy, "caddy", "bin/caddy", "the Caddy with Stockgate")
	flag.IntVar(&o.people, "people", 5000, "people who wait, each with a connection; an edge lets 10,000 wait at most")
	flag.IntVar(&o.runs, "runs", 1, "how often each is measured, each time of an edge that has just started")
	flag.IntVar(&o.core, "core", 0, "core of the edge")
	results := flag.String("results", "", "file for the results, as JSON")
	flag.Parse()
	all, err := measureAll(o)
	if err != nil {
		log.Fatal(err)
	}
	if *results != "" {
		text, err := json.MarshalIndent(map[string]any{"machine": measure.ThisMachine(), "runs": o.runs, "rows": all}, "", "\t")
		if err == nil {
			err = os.WriteFile(*results, append(text, '\n'), 0o644)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}

func measureAll(o options) (all []row, err error) {
	for _, wrapper := range []bool{false, true} {
		for _, protocol := range protocols {
			for _, asks := range []string{idle, poll, stream} {
				r, err := measureOne(o, row{Wrapper: wrapper, Protocol: protocol, Asks: asks, People: o.people})
				if err != nil {
					return nil, fmt.Errorf("%s, %s, wrapper %t: %w", protocol, asks, wrapper, err)
				}
				fmt.Printf("%-17s wrapper %-5t %-6s %d people: resident %.1f KiB each (%.1f to %.1f), live %.1f\n",
					protocol, wrapper, asks, r.People, r.Resident.Median, r.Resident.Least, r.Resident.Most, r.Live.Median)
				all = append(all, r)
			}
		}
	}
	return all, nil
}

func measureOne(o options, r row) (row, error) {
	var resident, live []float64
	for range o.runs {
		rss, heap, err := once(o, r)
		if err != nil {
			return r, err
		}
		resident, live = append(resident, rss), append(live, heap)
	}
	r.Resident, r.Live = measure.Over(resident), measure.Over(live)
	return r, nil
}

// once lets people enter at an edge, starts it again, so that it has no garbage of theirs, and measures what their
// connections take.
func once(o options, r row) (rss, live float64, err error) {
	dir, err := os.MkdirTemp("", "waiting")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	shop, err := listen()
	if err != nil {
		return 0, 0, err
	}
	defer shop.Close()
	redis, err := peer.StartRedis("redis", 1-o.core, dir)
	if err != nil {
		return 0, 0, err
	}
	defer redis.Stop()
	file := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(file, caddyfile(dir, redis.Addr, shop.addr, r), 0o644); err != nil {
		return 0, 0, err
	}
	edge, err := start(o, dir, file)
	if err != nil {
		return 0, 0, err
	}
	c := newCrowd(r)
	defer c.leave()
	if err = sell(o.people); err == nil {
		err = c.enter()
	}
	edge.Stop()
	if err != nil {
		return 0, 0, err
	}
	if edge, err = start(o, dir, file); err != nil {
		return 0, 0, err
	}
	defer edge.Stop()
	if err := c.isKnown(); err != nil {
		return 0, 0, err
	}
	before, heap, err := memory(edge)
	if err != nil {
		return 0, 0, err
	}
	if err := c.open(); err != nil {
		return 0, 0, err
	}
	after, full, err := memory(edge)
	if err == nil {
		err = c.stillWaits()
	}
	n := 1024 * float64(r.People)
	return float64(after-before) / n, (full - heap) / n, err
}

func start(o options, dir, file string) (*peer.Process, error) {
	p, err := peer.Start("caddy", o.core, dir, nil, o.caddy, "run", "--config", file, "--adapter", "caddyfile")
	if err != nil {
		return nil, err
	}
	if err := p.Listens(fmt.Sprint("127.0.0.1:", port)); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// memory is resident memory, and the live heap and stacks after a garbage collection.
func memory(p *peer.Process) (resident int64, live float64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if live, err = peer.Live(ctx, admin); err != nil {
		return 0, 0, err
	}
	resident, err = p.Resident()
	return resident, live, err
}
