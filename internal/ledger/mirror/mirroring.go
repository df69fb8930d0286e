package mirror

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// lease is how long the other edges wait for one that has died.
	lease = 3 * time.Second
	// lookEvery is how often a sale is asked whether it has changed.
	lookEvery = 200 * time.Millisecond
	// waitFor is how long an edge without the lease waits, and at most after failures.
	waitFor = time.Second
	// againEvery is how often all numbers are written, changed or not: so a key that something
	// else has written is right again, and is noticed.
	againEvery = 5 * time.Second
	// writeFor bounds a call of the shop's Redis; it is less than the lease.
	writeFor = time.Second
	// atOnce is how many keys one call writes.
	atOnce = 500
	// shownText bounds what is noted of a key and its value.
	shownText = 80
)

// redisNumber is one number in the shop's Redis.
type redisNumber struct{ key, field string }

// mirroring is the mirror of one sale.
type mirroring struct {
	*Mirror
	sale string

	ours    time.Time              // until when the lease certainly holds; zero: another edge has it
	epoch   int64                  // of the journal that was mirrored
	wrote   map[redisNumber]string // what this edge has written since it has the lease
	again   time.Time              // when all is written again
	retry   time.Time              // when what the shop's Redis has refused is written again
	pause   time.Duration          // how long to wait after the next failure
	state   journal.MirrorState
	noted   journal.MirrorState // the state without its time and number, as Redis has it
	trouble ledger.Trouble
}

func (m *mirroring) run(ctx context.Context) {
	defer m.metrics.NoMirror(m.sale)
	defer m.giveUp(ctx)
	for loop.Rest(ctx, m.poll(ctx), nil) {
	}
}

// giveUp lets another edge go on at once.
func (m *mirroring) giveUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitFor)
	defer cancel()
	if !m.ours.IsZero() {
		_, _ = m.journals.AcquireMirror(ctx, m.sale, m.owner, 0, nil) // else it ends by itself
	}
}

// poll writes what has changed, and returns how long to wait.
func (m *mirroring) poll(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, lease)
	defer cancel()
	if !time.Now().Before(m.ours) && !m.acquire(ctx) {
		return waitFor
	}
	pause := m.follow(ctx)
	m.acquire(ctx) // after the numbers: what it writes to Redis's disk delays none of them
	return pause
}

// follow writes what has changed, and returns how long to wait.
func (m *mirroring) follow(ctx context.Context) time.Duration {
	head, err := m.journals.Head(ctx, m.sale)
	if err != nil {
		return m.failed() // the lease ends if that lasts; selling itself reports Redis
	}
	if m.epoch != 0 && head.Epoch != m.epoch { // the lease was on the other shard
		m.ours, m.wrote, m.epoch = time.Time{}, nil, head.Epoch
		if !m.acquire(ctx) {
			return waitFor
		}
	}
	now := time.Now()
	due, changed := !now.Before(m.again), m.wrote == nil || m.epoch != head.Epoch || m.state.Seq != head.Last
	if !changed && !due && (m.state.Behind.IsZero() || now.Before(m.retry)) {
		return m.went()
	}
	stock, err := m.stock.SaleStock(ctx, m.sale)
	if err != nil {
		return m.failed()
	}
	if stock.Status == sale.Draft { // the shop's own script may still sell, and owns its keys
		return m.went()
	}
	err = m.write(ctx, m.numbers(stock), due || m.wrote == nil)
	m.report(head.Epoch, head.Last, err)
	m.retry = time.Time{}
	switch {
	case err == nil:
		return m.went()
	case isRefused(err): // a key that cannot be written delays no other
		m.retry = now.Add(waitFor)
		return m.went()
	}
	return m.failed()
}

// went and failed return how long to wait: after a failure not long at first, because most have
// passed by then.
func (m *mirroring) went() time.Duration {
	m.pause = lookEvery
	return lookEvery
}

func (m *mirroring) failed() time.Duration {
	pause := max(m.pause, lookEvery)
	m.pause = min(2*pause, waitFor)
	return pause
}

// acquire keeps the lease, and notes the state where it is another one.
func (m *mirroring) acquire(ctx context.Context) bool {
	state, now := m.state, time.Now()
	state.At, state.Seq = time.Time{}, 0
	if state == m.noted && now.Before(m.ours.Add(-lease/2)) {
		return true
	}
	m.state.At = now.UTC()
	ours, err := m.journals.AcquireMirror(ctx, m.sale, m.owner, lease, &m.state)
	switch {
	case err == nil && ours:
		m.ours, m.noted = now.Add(lease), state
		return true
	case err == nil || errors.Is(err, shard.ErrNoSale) || !now.Before(m.ours):
		// another edge may have written since: start over when this one has the lease again
		m.ours, m.wrote, m.state, m.noted = time.Time{}, nil, journal.MirrorState{}, journal.MirrorState{}
		m.metrics.NoMirror(m.sale)
		return false
	}
	return true
}

// numbers are what the shop's Redis must have.
func (m *mirroring) numbers(stock *reservation.SaleStock) map[redisNumber]int64 {
	out := make(map[redisNumber]int64, len(stock.Items)*len(m.keys))
	for i := range stock.Items {
		c := &stock.Items[i]
		for j, key := range m.keys {
			t := &m.options.Targets[j]
			out[redisNumber{key.Fill("sku", c.SKU).Fill("region", c.Region).Fill("sale", m.sale).Text(), t.Field}] += number(c, t.Value)
		}
	}
	for j, key := range m.keys {
		t := &m.options.Targets[j]
		if t.Value == "confirmed" { // which units were sold in a bundle is not known
			continue
		}
		for _, c := range bundlesOf(stock, key.Has("region")) {
			out[redisNumber{key.Fill("sku", c.SKU).Fill("region", c.Region).Fill("sale", m.sale).Text(), t.Field}] += number(&c, t.Value)
		}
	}
	return out
}

func number(c *record.Cell, value string) int64 {
	switch value {
	case "available":
		return c.Available
	case "taken":
		return c.Stock - c.Available
	case "confirmed":
		return c.Confirmed
	default:
		return c.Stock
	}
}

// write writes the numbers that this edge has not written yet, then all others if it is time for
// them. What the shop's Redis refuses keeps nothing else from being written.
func (m *mirroring) write(ctx context.Context, numbers map[redisNumber]int64, all bool) error {
	if m.wrote == nil {
		m.wrote = make(map[redisNumber]string, len(numbers))
	}
	var lacking, others []redisNumber
	for at, n := range numbers {
		switch {
		case m.wrote[at] != strconv.FormatInt(n, 10):
			lacking = append(lacking, at)
		case all:
			others = append(others, at)
		}
	}
	var failed error
	for some := range slices.Chunk(append(lacking, others...), atOnce) {
		err := m.send(ctx, some, numbers)
		if err != nil && !isRefused(err) {
			return err
		}
		if failed == nil {
			failed = err
		}
	}
	if all {
		m.again = time.Now().Add(againEvery)
	}
	return failed
}

// send writes some numbers while the lease holds. What was there before is compared with what
// this edge has written, to say whether something else writes the keys; what is written does
// not depend on it.
func (m *mirroring) send(ctx context.Context, some []redisNumber, numbers map[redisNumber]int64) error {
	left := time.Until(m.ours)
	if left <= 0 {
		return errors.New("the lease has ended while the numbers were read")
	}
	ctx, cancel := context.WithTimeout(ctx, min(left, writeFor))
	defer cancel()
	some, failed := m.writable(ctx, some)
	if len(some) == 0 {
		return failed
	}
	pipe := m.client.Pipeline()
	before := make([]*redis.StringCmd, len(some))
	after := make([]redis.Cmder, len(some))
	for i, at := range some {
		if at.field == "" {
			before[i] = pipe.GetSet(ctx, at.key, numbers[at]) //nolint:staticcheck // SET with GET needs Redis 7
			after[i] = before[i]
			continue
		}
		before[i] = pipe.HGet(ctx, at.key, at.field)
		after[i] = pipe.HSet(ctx, at.key, at.field, numbers[at])
	}
	_, _ = pipe.Exec(ctx) // each command has its error
	drifted := 0
	for i, at := range some {
		was, known := m.wrote[at]
		if err := after[i].Err(); err != nil && !errors.Is(err, redis.Nil) {
			delete(m.wrote, at) // unknown
			failed = worse(failed, at, err)
			continue
		}
		m.wrote[at] = strconv.FormatInt(numbers[at], 10)
		have, err := before[i].Result()
		if known && have != was && (err == nil || errors.Is(err, redis.Nil)) {
			drifted++
			m.state.Drift++
			m.state.DriftAt, m.state.DriftKey, m.state.Had, m.state.Wrote = time.Now().UTC(), cut(at.key), cut(have), was
		}
	}
	if drifted > 0 {
		m.metrics.MirrorDrift(m.sale, drifted)
		m.log.Warn("something else writes keys of the shop's redis that the mirror writes: the mirror sets them right again, but whatever sells by them sells what stockgate sells",
			zap.String("sale", m.sale), zap.Int("keys", drifted), zap.String("key", m.state.DriftKey), zap.String("had", m.state.Had), zap.String("wrote", m.state.Wrote))
	}
	return failed
}

func cut(text string) string {
	if len(text) > shownText {
		text = text[:shownText]
	}
	return strconv.QuoteToASCII(text)
}

// report notes how a write went.
func (m *mirroring) report(epoch, seq int64, err error) {
	m.epoch, m.state.Seq = epoch, seq
	m.state.Error = ""
	switch {
	case err == nil:
		m.state.Behind = time.Time{}
	default:
		m.state.Error = err.Error()
		if m.state.Behind.IsZero() {
			m.state.Behind = time.Now().UTC()
		}
	}
	lag := time.Duration(0)
	if !m.state.Behind.IsZero() {
		lag = time.Since(m.state.Behind)
	}
	m.metrics.MirrorLag(m.sale, lag)
	switch wrong, right := m.trouble.Note(err); {
	case wrong:
		m.log.Error("the mirror cannot write the shop's redis: its readers see old numbers, and selling goes on", zap.String("sale", m.sale), zap.Error(err))
	case right:
		m.log.Info("the mirror has caught up", zap.String("sale", m.sale))
	}
}
