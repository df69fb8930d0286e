package fence

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/shard"
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
}

// Read reads what Redis knows of a sale's fences.
func Read(ctx context.Context, c *shard.Client, sale string) (Report, error) {
	v, err := c.Redis.HMGet(ctx, c.ShardKeys(sale)[shard.MetaKey], "term", "fence", "fenced").Result()
	if err != nil {
		return Report{}, shard.Explain(err)
	}
	text := func(i int) string { s, _ := v[i].(string); return s }
	r := Report{Armed: text(0) != "", Fenced: text(1) != ""}
	words := strings.Fields(text(2))
	if len(words) != 6 {
		return r, nil
	}
	n := make([]int64, len(words))
	for i, w := range words {
		n[i], _ = strconv.ParseInt(w, 10, 64)
	}
	r.Began, r.Replayed, r.Missing, r.Absent = time.UnixMilli(n[1]), n[3], n[4], n[5]
	if n[2] > 0 {
		r.Ended = time.UnixMilli(n[2])
	}
	return r, nil
}
