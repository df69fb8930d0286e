package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

// result is what came out of a scenario. In the file of results runs, attempts and orders
// are of all runs of that commit, the rest is of the last one.
type result struct {
	Name     string              `json:"name"`
	About    string              `json:"about"`
	Commit   string              `json:"commit"`
	When     string              `json:"when"`
	Seed     uint64              `json:"seed"`
	Seconds  float64             `json:"seconds"`
	Runs     int                 `json:"runs"`
	Attempts int                 `json:"attempts"`
	Orders   int                 `json:"orders"`
	Broken   int                 `json:"broken"` // runs
	Counts   map[string]int      `json:"counts"`
	Found    []auditor.Violation `json:"found,omitempty"`
}

func resultOf(s scenario, seed uint64, a *attack, err error, began time.Time) result {
	r := result{Name: s.name, About: s.about, Commit: rig.Commit(), When: began.UTC().Format("2006-01-02"), Seed: seed,
		Seconds: time.Since(began).Round(100 * time.Millisecond).Seconds(), Runs: 1}
	if a != nil {
		r.Attempts, r.Counts, r.Found = len(a.h.Attempts), a.counts, a.found
		for what, n := range crowd.Tally(a.h.Attempts) {
			r.Counts[what] += n
		}
		for _, o := range a.h.Orders {
			if o.Taken && !o.Again {
				r.Orders++
			}
		}
	}
	if err != nil {
		r.Found = append(r.Found, auditor.Violation{Promise: "the scenario did not come to its end", What: err.Error()})
	}
	if len(r.Found) > 0 {
		r.Broken = 1
	}
	return r
}

func (r result) tally() string {
	words := []string{fmt.Sprintf("%d attempts, %d orders", r.Attempts, r.Orders)}
	for _, what := range slices.Sorted(maps.Keys(r.Counts)) {
		words = append(words, fmt.Sprintf("%s %d", what, r.Counts[what]))
	}
	return strings.Join(words, ", ")
}

func readResults(name string) (all []result, err error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}

// addResult puts a result in the place of the one before, and adds to it what was done on
// the same commit.
func addResult(name string, r result) error {
	all, err := readResults(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(r.Found) > 10 {
		r.Found = r.Found[:10]
	}
	i := slices.IndexFunc(all, func(old result) bool { return old.Name == r.Name })
	if i < 0 {
		all = append(all, r)
	} else {
		if old := all[i]; old.Commit == r.Commit {
			r.Runs, r.Attempts, r.Orders, r.Broken = r.Runs+old.Runs, r.Attempts+old.Attempts, r.Orders+old.Orders, r.Broken+old.Broken
		}
		all[i] = r
	}
	text, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}

// tableBegins and tableEnds stand in the page around the table.
const tableBegins, tableEnds = "<!-- table: make attack -->\n", "<!-- end of the table -->"

// writeTable puts the table of all results into the page, in the order of the scenarios.
func writeTable(page, name string) error {
	all, err := readResults(name)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for the table: %s…%s", page, tableBegins, tableEnds)
	}
	return os.WriteFile(page, []byte(before+tableBegins+table(all)+tableEnds+after), 0o644)
}

func table(all []result) string {
	place := func(r result) int {
		return slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == r.Name })
	}
	slices.SortStableFunc(all, func(x, y result) int { return place(x) - place(y) })
	var b strings.Builder
	b.WriteString("| scenario | what is done, and what must hold | runs | attempts | orders | what was found | last run | commit |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range all {
		fmt.Fprintf(&b, "| `%s` | %s | %d | %d | %d | %s | %s | %s |\n", r.Name, strings.ReplaceAll(r.About, "|", `\|`), r.Runs, r.Attempts, r.Orders, r.verdict(), r.When, r.Commit)
	}
	return b.String()
}

// verdict is what the table says was found.
func (r result) verdict() string {
	if r.Broken == 0 {
		return "every promise held"
	}
	text := fmt.Sprintf("**broken in %d of %d**", r.Broken, r.Runs)
	if len(r.Found) > 0 {
		what, _, _ := strings.Cut(r.Found[0].What, "\n")
		if len(what) > 160 {
			what = what[:160] + "…"
		}
		text += ": " + strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(what)
	}
	return text
}
