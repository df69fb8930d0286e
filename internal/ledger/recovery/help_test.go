package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/ledger/sqlite"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
	"github.com/stockgate/stockgate/lua"
)

func TestMain(m *testing.M) { stocktest.Main(m) }

// market is a sale "s" that many buyers use.
type market struct {
	*reservation.Store
	t       testing.TB
	client  *redis.Client
	version int64
}

const tag = "stockgate:{s.0}:"

func newMarket(t testing.TB, on redistest.Backend) *market {
	t.Helper()
	m := newDraft(t, on)
	m.open()
	return m
}

// newDraft is a market whose sale is not open yet.
func newDraft(t testing.TB, on redistest.Backend) *market {
	t.Helper()
	o := shard.Options{Addresses: []string{on.Addr()}, Timeout: 10 * time.Second}
	if _, ok := on.(*redistest.EmbeddedServer); ok {
		o.Scripts = lua.Embedded()
	}
	store, err := reservation.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	m := &market{Store: store, t: t, client: on.Client()}
	m.load(1000)
	return m
}

// load applies the sale's file.
func (m *market) load(units int64) {
	m.t.Helper()
	now := time.Now().Truncate(time.Second)
	file := &sale.Sale{
		ID: "s", StartsAt: now.Add(-time.Hour), EndsAt: now.Add(24 * time.Hour), Timezone: "UTC",
		Items: []sale.Item{{SKU: "a", Stock: units}, {SKU: "b", Regions: map[string]int64{"n": units, "s": units}}, {SKU: "none"}},
	}
	if _, err := m.Apply(ledgertest.Soon(m.t), file, reservation.ApplyOptions{By: "test"}); err != nil {
		m.t.Fatal(err)
	}
}

func (m *market) open() {
	m.t.Helper()
	if err := m.SetStatus(ledgertest.Soon(m.t), "s", sale.Open, "test"); err != nil {
		m.t.Fatal(err)
	}
	m.version = 2
}

// buyer is one of many that use the sale in every way, by a seed.
type buyer struct {
	*market
	*rand.Rand
	name string
	made int
}

func (m *market) buyer(seed uint64) *buyer {
	return &buyer{m, rand.New(rand.NewPCG(seed, 1)), fmt.Sprintf("buyer%d", seed), 0}
}

// step does something; a refusal is fine.
func (b *buyer) step(ctx context.Context) error {
	known := fmt.Sprintf("%s-%d", b.name, max(0, b.made-b.IntN(9)))
	var err error
	switch b.IntN(20) {
	default:
		err = b.reserve(ctx)
	case 8, 9, 10, 11, 12:
		_, err = b.Confirm(ctx, "s", known, []reservation.Authority{reservation.SourceAnswer, reservation.SourceOperator}[b.IntN(2)], "status_201")
	case 13, 14:
		_, err = b.Release(ctx, "s", known, reservation.SourceShop, "status_409")
	case 15:
		_, err = b.Doubt(ctx, "s", known, "time\tout")
	case 16:
		r := reservation.Return{ID: fmt.Sprint("x", b.IntN(2)), Restock: b.IntN(2) == 0, Cause: "damaged"}
		if b.IntN(2) == 0 {
			r.Lines = []sale.Line{{SKU: "a", Quantity: 1}}
		}
		_, err = b.Return(ctx, "s", known, r)
	case 17:
		_, err = b.Extend(ctx, "s", known, 2*time.Hour, 5*time.Hour)
	case 18:
		_, err = b.Adjust(ctx, "s", fmt.Sprintf("%s-j%d", b.name, b.IntN(1000)), []string{"a", "b@n"}[b.IntN(2)], b.Int64N(5)-1, "test")
	case 19: // given up before it came
		_, err = b.Release(ctx, "s", fmt.Sprintf("%s-never%d", b.name, b.IntN(1000)), reservation.SourceUnsent, "unsent")
	}
	var conflict *reservation.ConflictError
	var many *reservation.TooManyError
	var refund *reservation.RefundNeededError
	if errors.As(err, &conflict) || errors.As(err, &many) || errors.As(err, &refund) || errors.Is(err, reservation.ErrNotFound) ||
		errors.Is(err, reservation.ErrReused) || errors.Is(err, shard.ErrRefused) {
		return nil
	}
	return err
}

func (b *buyer) reserve(ctx context.Context) error {
	b.made++
	lines := []sale.Line{{SKU: "a", Quantity: 1 + b.Int64N(2)}}
	if b.IntN(3) == 0 {
		lines = append(lines, sale.Line{SKU: "b", Region: []string{"n", "s"}[b.IntN(2)], Quantity: 1})
	}
	c := &reservation.ReserveRequest{
		ID: fmt.Sprintf("%s-%d", b.name, b.made), Sale: "s", Version: b.version, Buyer: b.name, Lines: lines, HoldFor: time.Hour, Margin: time.Minute,
		Mode: []record.Mode{record.ModeResponse, record.ModeBackend}[b.IntN(2)], Gate: "main",
		Charges: []reservation.Charge{{Field: "buyer:sale:units|-|" + b.name, Amount: lines[0].Quantity, To: 1 << 52}},
	}
	c.Charges[0].Limit = &sale.Limit{Max: 1e9}
	if b.IntN(2) == 0 {
		c.Unpaid = reservation.Owed{Fields: []string{"buyer|" + b.name, "ip|" + b.name[:6]}[:1+b.IntN(2)], AtOnce: 100, Ended: 100, Within: time.Hour}
	}
	if b.IntN(2) == 0 {
		c.Ref = fmt.Sprintf("order-%s-%d", b.name, b.made-b.IntN(3))
	}
	if b.IntN(2) == 0 {
		c.Binding = reservation.Binding{Field: fmt.Sprintf("k|%s-%d", b.name, b.made-b.IntN(3)), Print: "p", TTL: time.Hour}
	} else {
		c.Binding = reservation.Binding{Field: fmt.Sprintf("d|%s-%d", b.name, b.made)}
	}
	_, refusal, err := b.Reserve(ctx, c)
	if _, ok := errors.AsType[*reservation.AlreadyBound](err); ok || refusal != nil {
		return nil
	}
	return err
}

// live lets several buyers do so many things each.
func (m *market) live(seed uint64, buyers, steps int) {
	m.t.Helper()
	var all sync.WaitGroup
	for i := range buyers {
		b := m.buyer(seed*100 + uint64(i))
		all.Go(func() {
			for range steps {
				if err := b.step(ledgertest.Soon(m.t)); err != nil {
					m.t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// openFile opens a ledger in a file.
func openFile(t testing.TB, file string) ledger.Ledger {
	t.Helper()
	l, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if err := l.Migrate(ledgertest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	return l
}

// drain starts to copy the journal into a ledger, and returns what waits until all is
// there and what ends it.
func (m *market) drain(l ledger.Ledger) (wait, end func()) {
	counts := ledgertest.NewCounts()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ledger.NewDrainer(m.Store.Journal(), m.Store, l, counts.Log(), counts).Run(ctx)
	}()
	end = sync.OnceFunc(func() { cancel(); <-done })
	m.t.Cleanup(end)
	return func() {
		m.t.Helper()
		ledgertest.Eventually(m.t, "the ledger has everything", func() bool {
			h, err := m.Journal().Head(ledgertest.Soon(m.t), "s")
			if err != nil {
				m.t.Fatal(err)
			}
			at, err := l.Position(ledgertest.Soon(m.t), "s")
			return err == nil && at == ledger.Position{Epoch: h.Epoch, Seq: h.Last}
		})
	}, end
}

// run reconciles.
func (m *market) run(l ledger.Ledger, repair bool) *recovery.Report {
	m.t.Helper()
	report, err := recovery.Reconcile(ledgertest.Soon(m.t), m.Store, l, "s", recovery.Options{Repair: repair, By: "test@here"})
	if err != nil {
		m.t.Fatal(err)
	}
	return report
}

// agrees fails if anything differs.
func (m *market) agrees(l ledger.Ledger) {
	m.t.Helper()
	if report := m.run(l, false); !report.Agrees || report.Found != 0 {
		m.t.Fatalf("something differs: %s", texts(report))
	}
}

func texts(r *recovery.Report) string {
	var b strings.Builder
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "\n  %s %s repaired=%t: %s (%s; %s)", d.Kind, d.Name, d.Repaired, d.Text, d.Cause, d.Repair)
	}
	return fmt.Sprintf("%d found, %d repaired, against %s up to %d, notes %q%s", r.Found, r.Repaired, r.Against, r.Seq, r.Notes, b.String())
}

// shard is all that Redis keeps of the sale but the journal, without what a repair may
// leave otherwise.
func (m *market) shard() map[string]string {
	m.t.Helper()
	ctx, out := ledgertest.Soon(m.t), map[string]string{}
	for _, key := range []string{"meta", "cells", "limits", "records", "adjustments", "bindings", "returns", "unpaid"} {
		all, err := m.client.HGetAll(ctx, tag+key).Result()
		if err != nil {
			m.t.Fatal(err)
		}
		for field, text := range all {
			out[key+" "+field] = text
		}
	}
	for _, key := range []string{"deadlines", "in_doubt", "unbacked", "tombstones"} {
		all, err := m.client.ZRangeWithScores(ctx, tag+key, 0, -1).Result()
		if err != nil {
			m.t.Fatal(err)
		}
		for _, z := range all {
			out[fmt.Sprint(key, " ", z.Member)] = strconv.FormatInt(int64(z.Score), 10)
		}
	}
	for _, field := range []string{"seq", "clock", "repaired", "acked", "acked_at"} {
		delete(out, "meta "+field)
	}
	for name, text := range out {
		f := strings.Split(text, "\t")
		switch part, _, _ := strings.Cut(name, " "); {
		case part == "unpaid": // nor when holds ended unpaid
			if out[name], _, _ = strings.Cut(text, " "); out[name] == "0" {
				delete(out, name)
			}
		case len(f) != 20 && part == "records": // spoilt
		case part == "records" && f[0] == "tombstone": // why and when is nowhere else
			out[name] = f[0] + " " + f[1]
		case part == "records": // how often it was probed neither
			out[name] = strings.Join(append(f[:17], f[18]), "\t")
		}
	}
	return out
}

// same fails unless two shards are the same, but for bindings of attempts without a
// key, because no movement reports whether they were freed, and for what only finds the ended.
// What a ref alone finds has no order.
func same(t testing.TB, is, was map[string]string) {
	t.Helper()
	is, was = unordered(is), unordered(was)
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if is[name] != was[name] && !strings.HasPrefix(name, "bindings d|") && !strings.HasPrefix(name, "bindings "+record.EndField) {
			t.Errorf("%s is\n %q, it was\n %q", name, is[name], was[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, ok := was[name]; !ok {
			t.Errorf("%s is %q, and was not there", name, is[name])
		}
	}
}

// unordered puts the two fields of each ref together.
func unordered(shard map[string]string) map[string]string {
	out := make(map[string]string, len(shard))
	for name, text := range shard {
		if field, ok := strings.CutPrefix(name, "bindings "); ok {
			if ref, ok := record.NamedField(field); ok {
				first, others := (&record.ByName{Ref: ref}).Fields()
				ids := strings.Fields(shard["bindings "+first] + " " + shard["bindings "+others])
				slices.Sort(ids)
				name, text = "by ref "+ref, strings.Join(ids, " ")
			}
		}
		out[name] = text
	}
	return out
}
