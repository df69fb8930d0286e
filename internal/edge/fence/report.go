package fence

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/store/shard"
)

// Report is what Redis knows of a sale's fences.
type Report struct {
	// Armed says that the sale has a fence.
	Armed bool
	// Fenced says that it waits now, since Began by Redis's own time.
	Fenced bool
	Began  time.Time
	// Ended is when the last fence ended, by Redis's own time; zero: none has, or it goes on.
	Ended time.Time
	// Replayed is how many movements were applied again, Missing how many were lost, Absent how
	// many edges did not say what they knew, in that fence.
	Replayed, Missing, Absent int64
	// Base is the newest number that the server had of itself when that fence began.
	Base int64
	// Edges are those that did not say what they knew, or have not yet.
	Edges []Absentee
}

// Absentee is one that did not come to a fence. It may know movements after the report's Base.
type Absentee struct {
	// ID begins with the name of its machine.
	ID string
	// Heard is when it was last heard, as far as the server knows, by Redis's own time.
	Heard time.Time
}

// Absentees names the edges that did not come, and when each was last heard, at most so many.
func (r *Report) Absentees(most int, format func(time.Time) string) string {
	var names []string
	for _, e := range r.Edges[:min(len(r.Edges), most)] {
		names = append(names, e.ID+", last heard at "+format(e.Heard))
	}
	if more := len(r.Edges) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, "; ")
}

// Read reads what Redis knows of a sale's fences.
func Read(ctx context.Context, c *shard.Client, sale string) (Report, error) {
	meta, err := c.Data(sale).Meta(ctx, "term", "fence", "fenced", "absent")
	if err != nil {
		return Report{}, err
	}
	r := readReport(meta.Text(2), meta.Text(3))
	r.Armed, r.Fenced = meta.Text(0) != "", meta.Text(1) != ""
	return r, nil
}

// readReport reads what lua/fence.lua calls fenced and absent.
func readReport(fenced, absent string) (r Report) {
	words := strings.Fields(fenced)
	if len(words) != 7 {
		return r
	}
	n := make([]int64, len(words))
	for i, w := range words {
		n[i], _ = strconv.ParseInt(w, 10, 64)
	}
	r.Began, r.Replayed, r.Missing, r.Absent, r.Base = time.UnixMilli(n[1]), n[3], n[4], n[5], n[6]
	if n[2] > 0 {
		r.Ended = time.UnixMilli(n[2])
	}
	for line := range strings.Lines(absent) {
		at, id, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		ms, _ := strconv.ParseInt(at, 10, 64)
		r.Edges = append(r.Edges, Absentee{id, time.UnixMilli(ms)})
	}
	return r
}
