// Attack drives a built caddy with Stockgate against real Redis and PostgreSQL processes,
// breaks what can break, and judges from outside whether every promise held.
//
//	attack -seed 1 -scenarios all -long -out results.json
//	attack -list
//	attack -scenarios none -out bench/results/evidence.json -evidence bench/results/evidence.md
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

// scenarios are all ways to attack, in the order in which they run.
var scenarios = slices.Concat(promises, faults, buyersAndShops, operators, losses, upgrades)

func main() { os.Exit(run()) }

func run() int {
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()%1e6), "draws the schedule: the same seed, the same attack")
	names := flag.String("scenarios", "all", "which, separated by commas")
	long := flag.Bool("long", false, "all scenarios in full length; default: those of CI, short")
	built := flag.String("caddy", "bin/caddy", "the built binary; of several, separated by commas, edges run one each, in turn")
	out := flag.String("out", "", "file to add the results to")
	page := flag.String("evidence", "", "write the table of all results in -out into this page, also without a run (-scenarios none)")
	list := flag.Bool("list", false, "name the scenarios, and do nothing else")
	rounds := flag.Int("rounds", 1, "how often each scenario runs, with seeds that follow")
	flag.Parse()
	switch {
	case *list:
		for _, s := range scenarios {
			fmt.Printf("%-26s %s\n", s.name, s.about)
		}
		return 0
	case *page != "" && *names == "none":
		return report(writeTable(*page, *out))
	}
	chosen, err := choose(*names, *long)
	if err != nil {
		return report(err)
	}
	caddies, err := rig.Binaries(*built)
	if err != nil {
		return report(err)
	}
	bad := 0
	for _, s := range chosen {
		for i := range *rounds {
			r := trial(s, *seed+uint64(i), *long, caddies)
			if len(r.Found) > 0 {
				bad++
			}
			if *out != "" {
				if err := addResult(*out, r); err != nil {
					return report(err)
				}
			}
		}
	}
	if *page != "" {
		if err := writeTable(*page, *out); err != nil {
			return report(err)
		}
	}
	fmt.Printf("\n%d runs, %d broke a promise\n", len(chosen)**rounds, bad)
	if bad > 0 {
		return 1
	}
	return 0
}

func report(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		return 2
	}
	return 0
}

// choose finds the scenarios by name; all of a short run are those of CI.
func choose(names string, long bool) (chosen []scenario, err error) {
	for _, name := range strings.Split(names, ",") {
		found := false
		for _, s := range scenarios {
			if s.name == name || name == "all" && !s.asked && (long || s.short) {
				chosen, found = append(chosen, s), true
			}
		}
		if !found {
			return nil, fmt.Errorf("no scenario is called %q; attack -list names them", name)
		}
	}
	return chosen, nil
}

// trial runs a scenario, tells what came out, and returns it.
func trial(s scenario, seed uint64, long bool, caddies []string) result {
	began := time.Now()
	a, err := perform(s, seed, long, caddies)
	r := resultOf(s, seed, a, err, began)
	verdict := "held"
	if len(r.Found) > 0 {
		verdict = fmt.Sprintf("BROKEN (%d)", len(r.Found))
	}
	fmt.Printf("%-26s seed %-8d %6.1fs  %s  %s\n", s.name, seed, r.Seconds, verdict, r.tally())
	for _, f := range r.Found {
		fmt.Printf("  %s\n", f)
	}
	return r
}
