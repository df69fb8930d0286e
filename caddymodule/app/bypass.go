package app

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// BypassSwitch is whether the orders of the gates with one name pass without a reservation. It is safe for concurrent use.
type BypassSwitch struct {
	gate          string
	now           atomic.Pointer[bypassPeriod] // nil: the gates decide
	orders, taken atomic.Int64
}

// bypassPeriod is never changed. The BypassSwitch has its counts.
type bypassPeriod struct {
	adminapi.Bypass
	ends time.Time // Until, by this process's own clock
}

func (p *bypassPeriod) isOn() bool { return !p.Ended && time.Now().Before(p.ends) }

// BypassState is what a gate does with orders.
type BypassState uint8

const (
	// BypassOff: it decides.
	BypassOff BypassState = iota
	// BypassOn: they pass.
	BypassOn
	// BypassEnding: orders have passed, and Redis does not know yet that the sales are paused.
	BypassEnding
)

// State says what a gate does with orders now.
func (b *BypassSwitch) State() BypassState {
	switch p := b.now.Load(); {
	case p == nil:
		return BypassOff
	case p.isOn():
		return BypassOn
	}
	return BypassEnding
}

// Passes counts an order that passes. taken is called when the shop has taken it.
func (b *BypassSwitch) Passes() (taken func()) {
	b.orders.Add(1)
	return func() { b.taken.Add(1) }
}

// period returns the period with its counts.
func (b *BypassSwitch) period() (adminapi.Bypass, bool) {
	p := b.now.Load()
	if p == nil {
		return adminapi.Bypass{}, false
	}
	told := p.Bypass
	told.Ended, told.Orders, told.Taken = !p.isOn(), b.orders.Load(), b.taken.Load()
	return told, true
}

// bypasses has all bypasses of this process. Reloads share it, and a file keeps them over a restart.
type bypasses struct {
	file string
	log  atomic.Pointer[zap.Logger]
	wake chan struct{} // settles at once
	// settling is held by the configuration that settles.
	settling  sync.Mutex
	elsewhere atomic.Pointer[[]adminapi.Bypass]

	mu      sync.Mutex
	all     map[string]*BypassSwitch
	read    bool
	unread  error  // why the file cannot be read
	written []byte // in the file; nil: there is none
}

// bypassPool has the bypasses by their file.
var bypassPool = caddy.NewUsagePool()

// openBypasses takes the bypasses of this process from the pool. It does not read their file.
func openBypasses() (*bypasses, error) {
	file := filepath.Join(caddy.AppDataDir(), "stockgate", "bypass.json")
	v, _, err := bypassPool.LoadOrNew(file, func() (caddy.Destructor, error) {
		return &bypasses{file: file, all: make(map[string]*BypassSwitch), wake: make(chan struct{}, 1)}, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*bypasses), nil
}

func (bs *bypasses) close() error {
	if bs == nil {
		return nil
	}
	_, err := bypassPool.Delete(bs.file)
	return err
}

// Destruct keeps the last counts.
func (bs *bypasses) Destruct() error {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return bs.save()
}

// Bypass returns the switch for the gates with a name.
func (a *App) Bypass(gate string) *BypassSwitch {
	bs := a.bypasses
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return bs.of(gate)
}

func (bs *bypasses) of(gate string) *BypassSwitch {
	b := bs.all[gate]
	if b == nil {
		b = &BypassSwitch{gate: gate}
		bs.all[gate] = b
	}
	return b
}

// BypassFor says what a bypass is to be.
type BypassFor struct {
	Gate, By, Reason string
	Sales            []string // that the gate sells; none: any
	Check            bool
	For              time.Duration
}

// BeginBypass lets the orders of a gate pass until a time. The bypass is kept in a file before any passes. One that is on
// gets another end, and keeps its counts.
func (a *App) BeginBypass(o BypassFor) (adminapi.Bypass, error) {
	bs := a.bypasses
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if err := bs.ours(); err != nil {
		return adminapi.Bypass{}, err
	}
	b, now := bs.of(o.Gate), time.Now()
	host, _ := os.Hostname()
	next := &bypassPeriod{ends: now.Add(o.For), Bypass: adminapi.Bypass{
		ID: uuid.NewString(), Gate: o.Gate, Edge: host, From: now.UTC().Truncate(time.Second), By: o.By, Reason: o.Reason, Sales: o.Sales, Check: o.Check,
	}}
	next.Until = next.ends.Round(0).UTC()
	before := b.now.Load()
	if before != nil {
		next.ID, next.From, next.Restarted, next.Reason = before.ID, before.From, before.Restarted, cmp.Or(o.Reason, before.Reason)
		if len(before.Sales) == 0 || len(o.Sales) == 0 {
			next.Sales = nil
		} else {
			next.Sales = slices.Compact(slices.Sorted(slices.Values(slices.Concat(before.Sales, o.Sales))))
		}
	}
	kept := next.Bypass
	kept.Orders, kept.Taken = b.orders.Load(), b.taken.Load()
	others := slices.DeleteFunc(bs.periods(), func(p adminapi.Bypass) bool { return p.Gate == o.Gate })
	if err := bs.write(append(others, kept)); err != nil {
		return adminapi.Bypass{}, fmt.Errorf("%w; a restart would forget the bypass, so nothing has changed", err)
	}
	b.now.Store(next)
	bs.settleSoon()
	told, _ := b.period()
	return told, nil
}

// EndBypass ends a bypass. false: none is on.
func (a *App) EndBypass(gate string) (adminapi.Bypass, bool, error) {
	bs := a.bypasses
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b := bs.of(gate)
	before := b.now.Load()
	if before == nil || !before.isOn() {
		return adminapi.Bypass{}, false, nil
	}
	next := *before
	next.Ended, next.Until = true, time.Now().UTC()
	b.now.Store(&next)
	bs.settleSoon()
	if err := bs.save(); err != nil {
		return adminapi.Bypass{}, true, fmt.Errorf("%w; the bypass has ended, and a restart before %s would go on with it", err, before.Until.Format(time.RFC3339))
	}
	told, _ := b.period()
	return told, true, nil
}

// OwnBypasses returns the bypasses of this edge that are on or not settled, and why their file cannot be read.
func (a *App) OwnBypasses() ([]adminapi.Bypass, error) {
	bs := a.bypasses
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return bs.periods(), bs.unread
}

// Bypassed returns the bypasses of all edges, as far as Redis has told about other edges. It reads memory.
func (a *App) Bypassed() []adminapi.Bypass {
	all, _ := a.OwnBypasses()
	if others := a.bypasses.elsewhere.Load(); others != nil {
		for _, other := range *others {
			own := func(b adminapi.Bypass) bool { return b.ID == other.ID }
			if (!other.Ended && other.Until.After(time.Now())) && !slices.ContainsFunc(all, own) {
				all = append(all, other)
			}
		}
	}
	return all
}

func (bs *bypasses) periods() (all []adminapi.Bypass) {
	for _, b := range bs.all {
		if p, ok := b.period(); ok {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b adminapi.Bypass) int { return strings.Compare(a.Gate, b.Gate) })
	return all
}

func (bs *bypasses) settleSoon() {
	select {
	case bs.wake <- struct{}{}:
	default:
	}
}

// errBypassFile begins errors about the file.
func errBypassFile(file, format string, args ...any) error {
	return shard.Refused("%s "+format, append([]any{file}, args...)...)
}
