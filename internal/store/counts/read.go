package counts

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/store/shard"
)

// SilentAfter is when an edge counts as silent that was not stopped.
const SilentAfter = time.Minute

// SaleCounts is what all edges have counted of a sale.
type SaleCounts struct {
	// Edges are by name, those that were heard last first.
	Edges []EdgeCounts
	// Sum is over all edges, also those that are not listed any more.
	Sum Counters
}

// EdgeCounts is what the edges of one name, of one machine, have counted.
type EdgeCounts struct {
	Name string
	// IDs name the processes that are live, or the last one if it is silent.
	IDs []string
	// Live is how many processes are heard, Processes how many there have been.
	Live, Processes int64
	// Sells: all live processes may sell.
	Sells bool
	// Silent: the last process was not stopped, and is not heard any more.
	Silent    bool
	Heard     time.Time // by Redis's own time
	PerMinute int64     // attempts in a minute, lately
	Sum       Counters
	// Each has the counts of processes that are listed, by the word that names them in Redis.
	Each map[string]ProcessCounts
}

// ProcessCounts is what one process has counted.
type ProcessCounts struct {
	Edge  string // its id
	Live  bool
	Heard time.Time
	Sum   Counters
}

// Read reads what all edges have counted of a sale.
func Read(ctx context.Context, c *shard.Client, sale string) (*SaleCounts, error) {
	fields, err := c.Counts(ctx, sale)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if ms, ok := c.Clock(sale).Now(); ok {
		now = time.UnixMilli(ms)
	}
	return summed(fields, now), nil
}

// summed sums up the fields of the hash.
func summed(fields map[string]string, now time.Time) *SaleCounts {
	s := &SaleCounts{Sum: make(Counters)}
	byName := make(map[string]*EdgeCounts)
	of := func(name string) *EdgeCounts {
		if byName[name] == nil {
			byName[name] = &EdgeCounts{Name: name, Sum: make(Counters), Each: make(map[string]ProcessCounts)}
		}
		return byName[name]
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		kind, key, _ := strings.Cut(field, "|")
		about, body, _ := strings.Cut(fields[field], "\n")
		words, sum := strings.Fields(about), parse(body)
		switch {
		case kind == "p" && len(words) == 8:
			of(words[7]).process(key, words, sum, now)
		case kind == "n" && len(words) >= 2:
			e := of(key)
			e.Heard = later(e.Heard, timeOf(words[0]))
			e.Processes += number(words[1])
			e.Sum.add(sum)
		}
		s.Sum.add(sum)
	}
	for _, e := range byName {
		s.Edges = append(s.Edges, *e)
	}
	slices.SortFunc(s.Edges, func(a, b EdgeCounts) int {
		return cmp.Or(-cmp.Compare(min(a.Live, 1), min(b.Live, 1)), cmp.Compare(flag(b.Silent), flag(a.Silent)), cmp.Compare(a.Name, b.Name))
	})
	return s
}

// process adds a process to the edges of its name. words are "heard version started ended ready per_minute edge name".
func (e *EdgeCounts) process(id string, words []string, sum Counters, now time.Time) {
	heard, ended := timeOf(words[0]), words[3] == "1"
	e.Processes++
	e.Sum.add(sum)
	live := !ended && now.Sub(heard) < SilentAfter
	e.Each[id] = ProcessCounts{words[6], live, heard, sum}
	if live {
		if e.Live == 0 {
			e.Sells, e.IDs = true, nil
		}
		e.Live++
		e.Silent = false
		e.IDs = append(e.IDs, words[6])
		e.Sells = e.Sells && words[4] == "1"
		e.PerMinute += number(words[5])
	} else if e.Live == 0 && !heard.Before(e.Heard) {
		if e.Silent, e.IDs = !ended, nil; !ended {
			e.IDs = []string{words[6]}
		}
	}
	e.Heard = later(e.Heard, heard)
}

func number(word string) int64 {
	n, _ := strconv.ParseInt(word, 10, 64)
	return n
}

func timeOf(word string) time.Time { return time.UnixMilli(number(word)) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
