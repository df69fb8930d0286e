// Package drive makes reservations without HTTP, to measure Redis's work for each: with
// the gate's own code, and with a plain script.
package drive

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Way is how reservations are made.
type Way string

// The ways.
const (
	Plain     Way = "plain"      // one call of a script that gets, checks and decrements
	Limited   Way = "limited"    // the same with a purchase limit
	OneByOne  Way = "one by one" // by as many edges as attempts at once: none can share a call
	Together  Way = "together"   // by one edge
	Confirmed Way = "confirmed"  // by one edge, and each is confirmed
)

// Plan is one run.
type Plan struct {
	Redis  string // address
	Way    Way
	AtOnce int
	For    time.Duration
}

// Result is the result of one run.
type Result struct {
	Reservations int64
	Seconds      float64
	P50, P99     time.Duration
}

// reserveFunc makes the n-th reservation; w is which of the many that go on at once.
type reserveFunc func(ctx context.Context, w int, n int64) error

// Main sets everything up, prints a line, waits for one, makes reservations, prints the
// result, and stays until its input ends.
func Main(ctx context.Context, plan string, in io.Reader, out io.Writer) error {
	var p Plan
	if err := json.Unmarshal([]byte(plan), &p); err != nil {
		return err
	}
	var reserve reserveFunc
	var end func() error
	var err error
	switch p.Way {
	case Plain, Limited:
		reserve, end, err = plain(ctx, p)
	case OneByOne, Together, Confirmed:
		reserve, end, err = edges(ctx, p)
	default:
		err = fmt.Errorf("there is no way %q", p.Way)
	}
	if err != nil {
		return err
	}
	err = func() error {
		if _, err := run(ctx, p, reserve, 0, time.Second); err != nil { // to warm up
			return err
		}
		fmt.Fprintln(out, "ready")
		lines := bufio.NewReader(in)
		if _, err := lines.ReadString('\n'); err != nil {
			return err
		}
		result, err := run(ctx, p, reserve, 1<<32, p.For)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(out).Encode(result); err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, lines)
		return err
	}()
	return errors.Join(err, end())
}

// run makes reservations for a time, some at once, numbered from a number on.
func run(ctx context.Context, p Plan, reserve reserveFunc, from int64, howLong time.Duration) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var number atomic.Int64
	number.Store(from)
	times := make([][]time.Duration, p.AtOnce)
	errs := make([]error, p.AtOnce)
	started := time.Now()
	var at sync.WaitGroup
	for w := range p.AtOnce {
		at.Go(func() {
			for last := started; last.Sub(started) < howLong && ctx.Err() == nil; {
				if err := reserve(ctx, w, number.Add(1)); err != nil {
					errs[w] = err
					cancel()
					return
				}
				now := time.Now()
				times[w] = append(times[w], now.Sub(last))
				last = now
			}
		})
	}
	at.Wait()
	took := time.Since(started)
	if err := errors.Join(errs...); err != nil {
		return Result{}, err
	}
	all := slices.Concat(times...)
	slices.Sort(all)
	return Result{int64(len(all)), took.Seconds(), all[len(all)/2], all[len(all)*99/100]}, nil
}
