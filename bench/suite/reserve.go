package suite

import (
	"context"
	"fmt"

	"github.com/stockgate/stockgate/bench/drive"
	"github.com/stockgate/stockgate/bench/measure"
	"github.com/stockgate/stockgate/bench/peer"
)

// The rows of the case reserve that goals name.
const (
	plainRow   = "plain script"
	singleRow  = "gate, one by one"
	edgeRow    = "gate, 64 at once"
	confirmRow = "gate, 64 at once, and confirm"
)

// ways are the rows, and how the driver makes each. The first is what others are compared
// with.
var ways = []struct {
	name string
	way  drive.Way
	at   int
}{
	{plainRow, drive.Plain, 64},
	{"plain script with a limit", drive.Limited, 64},
	{singleRow, drive.OneByOne, 64},
	{edgeRow, drive.Together, 64},
	{"gate, 256 at once", drive.Together, 256},
	{confirmRow, drive.Confirmed, 64},
}

// reserve measures what Redis does for a reservation. Here Redis has the core of the server, and
// the driver that of the load: no HTTP is in the way.
func reserve(ctx context.Context, b *bench, s scenario, out *measure.Case) error {
	dir, err := b.dir(s.name)
	if err != nil {
		return err
	}
	results := make([][]reserved, len(ways))
	for range b.Runs {
		for i, w := range ways {
			r, err := b.reserveOnce(ctx, dir, w.way, w.at)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			results[i] = append(results[i], r)
		}
	}
	for i, w := range ways {
		values := func(of func(reserved) float64) measure.Spread {
			var all []float64
			for _, r := range results[i] {
				all = append(all, of(r))
			}
			return measure.Over(all)
		}
		out.Rows = append(out.Rows, measure.Row{
			Peer:    w.name,
			Rate:    values(func(r reserved) float64 { return float64(r.Reservations) / r.Seconds }),
			P50:     values(func(r reserved) float64 { return r.P50.Seconds() * 1e3 }),
			P99:     values(func(r reserved) float64 { return r.P99.Seconds() * 1e3 }),
			Micros:  values(func(r reserved) float64 { return r.cpu * 1e6 / float64(r.Reservations) }),
			Busy:    values(func(r reserved) float64 { return r.cpu / r.Seconds }),
			Calls:   values(func(r reserved) float64 { return float64(r.calls.Scripts) / float64(r.Reservations) }),
			PerCore: values(func(r reserved) float64 { return float64(r.Reservations) / r.cpu }),
			Bytes:   values(func(r reserved) float64 { return float64(r.bytes) / float64(r.Reservations) }),
		})
	}
	return nil
}

// reserved is one run of the driver.
type reserved struct {
	drive.Result
	cpu   float64 // of Redis, while reservations were made
	calls measure.Calls
	bytes int64 // that Redis has received and sent
}

// reserveOnce drives an empty Redis.
func (b *bench) reserveOnce(ctx context.Context, dir string, way drive.Way, at int) (reserved, error) {
	r, err := peer.StartRedis("redis", b.Server, dir)
	if err != nil {
		return reserved{}, err
	}
	defer r.Stop()
	d, err := startDriver(ctx, b, "drive", drive.Plan{Redis: r.Addr, Way: way, AtOnce: at, For: b.For})
	if err != nil {
		return reserved{}, err
	}
	// it has set everything up, and waits
	cpuBefore, err := r.CPU()
	if err != nil {
		return reserved{}, err
	}
	callsBefore, err := r.Calls(ctx)
	if err != nil {
		return reserved{}, err
	}
	bytesBefore, err := r.NetBytes(ctx)
	if err != nil {
		return reserved{}, err
	}
	var result drive.Result
	if err := d.measure(&result); err != nil {
		return reserved{}, err
	}
	cpu, err := r.CPU()
	if err != nil {
		return reserved{}, err
	}
	calls, err := r.Calls(ctx)
	if err != nil {
		return reserved{}, err
	}
	bytes, err := r.NetBytes(ctx)
	if err != nil {
		return reserved{}, err
	}
	if err := d.end(); err != nil {
		return reserved{}, err
	}
	return reserved{result, cpu - cpuBefore, calls.Minus(callsBefore), bytes - bytesBefore}, nil
}
