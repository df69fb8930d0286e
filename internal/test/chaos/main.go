// Chaos runs sales on real edges, Redis topologies and PostgreSQL while a nemesis breaks them,
// and judges what came out: the auditor from outside, and porcupine on the recorded history.
//
//	chaos -seed 1 -seeds 10 -configs all
//	chaos -short
//	chaos -configs sentinel-acks -seed 7 -print
//	chaos -list
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor/chaos"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

func main() { os.Exit(run()) }

type options struct {
	caddies []string
	out     string
	faults  int
	prefix  int
	tries   int
	abreast int
}

func run() int {
	var o options
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()%1e6), "the first seed: the same seed, the same schedule")
	seeds := flag.Int("seeds", 1, "how many seeds, from the first on")
	names := flag.String("configs", "all", "which configurations, separated by commas")
	short := flag.Bool("short", false, "the configurations of CI, with few faults")
	list := flag.Bool("list", false, "name the configurations, and do nothing else")
	show := flag.Bool("print", false, "print the schedules, and do nothing else")
	built := flag.String("caddy", "bin/caddy", "the built binary; of several, separated by commas, edges run one each, in turn")
	flag.StringVar(&o.out, "out", "bin/chaos", "directory for the results and the histories of failures")
	flag.IntVar(&o.faults, "faults", 16, "faults of a schedule")
	flag.IntVar(&o.prefix, "prefix", 0, "do only so many faults of each schedule; 0: all")
	flag.IntVar(&o.tries, "tries", 5, "how often the shortest prefix of a schedule that fails is tried; 0: it is not looked for")
	flag.IntVar(&o.abreast, "abreast", 2, "how many runs at the same time: most of a run is waiting")
	flag.Parse()
	if *list {
		for _, c := range chaos.Configs {
			fmt.Printf("%-18s (%s) %s\n", c.Name, c.Class, c.About)
		}
		return 0
	}
	if *show {
		o.abreast = 1
	}
	if *short {
		o.faults, o.tries = 6, 0
	}
	chosen, err := choose(*names, *short)
	if err == nil && !*show {
		o.caddies, err = rig.Binaries(*built)
	}
	if err == nil {
		err = os.MkdirAll(o.out, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 2
	}
	return o.runAll(chosen, *seed, *seeds, *show)
}

func choose(names string, short bool) (chosen []*chaos.Config, err error) {
	if names == "all" {
		for _, c := range chaos.Configs {
			if c.Short || !short {
				chosen = append(chosen, c)
			}
		}
		return chosen, nil
	}
	for _, name := range strings.Split(names, ",") {
		c := chaos.Find(name)
		if c == nil {
			return nil, fmt.Errorf("no configuration is called %q; chaos -list names them", name)
		}
		chosen = append(chosen, c)
	}
	return chosen, nil
}

// runAll runs every seed on every configuration, and returns the exit status.
func (o options) runAll(chosen []*chaos.Config, first uint64, seeds int, show bool) int {
	var (
		mu           sync.Mutex // of what follows, and of the output
		failed, runs int
		stopped      error
	)
	one := func(c *chaos.Config, seed uint64) {
		schedule := chaos.Draw(seed, c, o.faults)
		if o.prefix > 0 {
			schedule = schedule[:min(o.prefix, len(schedule))]
		}
		if show {
			fmt.Printf("%s, seed %d\n%v\n", c.Name, seed, schedule)
			return
		}
		r := o.trial(c, seed, schedule)
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(r)
		stopped = cmp.Or(stopped, o.record(r))
		if runs++; r.failed() {
			failed++
			o.explain(c, r)
		}
	}
	turns := make(chan func())
	var running sync.WaitGroup
	for range max(1, o.abreast) {
		running.Go(func() {
			for turn := range turns {
				turn()
			}
		})
	}
	for i := range seeds {
		for _, c := range chosen {
			turns <- func() { one(c, first+uint64(i)) }
		}
	}
	close(turns)
	running.Wait()
	switch {
	case stopped != nil:
		fmt.Fprintln(os.Stderr, "chaos:", stopped)
		return 2
	case show:
		return 0
	}
	fmt.Printf("\n%d runs, %d broke a promise\n", runs, failed)
	if failed > 0 {
		return 1
	}
	return 0
}
