package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/notify"
	"github.com/stockgate/stockgate/internal/store/lease"
	"github.com/stockgate/stockgate/internal/store/notices"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// lookEvery is how often an edge looks at itself and, where it tells for all, at the sales.
	lookEvery = time.Second
	// callFor bounds what Redis is asked in a round.
	callFor = 5 * time.Second
	// leaseName is what one edge has at a time, which tells for all.
	leaseName = "notices"
)

// teller tells operators what happens, for one configuration. Every edge reports what goes on at itself; the one that has
// the lease compares this and the sales with what was told, and sends.
type teller struct {
	app      *app.App
	config   *Notify
	runtime  *edgeruntime.Runtime
	receiver *notify.Receiver
	notices  *notices.Notices
	direct   *direct
	own      own
	lead     *leading // nil: another edge tells for all

	sender atomic.Pointer[notify.Courier] // nil: another edge sends
	stop   context.CancelFunc
	loops  sync.WaitGroup
	once   sync.Once
	log    *zap.Logger
}

// Start begins to look and to tell.
func (t *teller) Start(d *edgeruntime.Runtime) {
	t.log = caddy.Log().Named("stockgate.notify")
	t.runtime, t.receiver, t.notices = d, notify.NewReceiver(&t.config.target), notices.New(d.Client(), timing.NoticeGroup.Now())
	t.own.begin()
	t.direct = openDirect(t)
	ctx, cancel := context.WithCancel(context.Background())
	t.stop = cancel
	t.loops.Go(func() {
		loop.Every(ctx, lookEvery, nil, func() { t.round(ctx) })
		t.leave()
	})
}

// Stop ends that, and lets another edge tell.
func (t *teller) Stop() {
	if t.stop == nil {
		return
	}
	t.once.Do(func() {
		t.stop()
		t.loops.Wait()
		t.direct.close()
		t.receiver.Close()
	})
}

// round is one look.
func (t *teller) round(ctx context.Context) {
	if !t.runtime.Begin() {
		t.follow()
		return
	}
	defer t.runtime.End()
	call, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	now := time.Now()
	goesOn := t.own.look(t, now)
	report := t.direct.without(goesOn)
	err := t.say(call, report)
	t.direct.hear(t, goesOn, now, err == nil)
	if err != nil || t.runtime.Ready() != nil || t.isMoving(call) {
		t.follow() // what it sees may be wrong, and what it writes may be lost
		return
	}
	if t.lead == nil {
		t.acquire()
	} else if t.lead.over.Load() || !t.lead.lease.StillHeld() {
		t.follow()
	}
	if t.lead != nil {
		t.lead.judge(call, t)
	}
}

// say tells the other edges what goes on at this one.
func (t *teller) say(ctx context.Context, r *report) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return t.runtime.Client().NoteConditions(ctx, t.runtime.Leases().ID(), string(raw))
}

// isMoving reports whether the stock is being moved to another Redis, where nothing may be written here.
func (t *teller) isMoving(ctx context.Context) bool {
	m, err := t.runtime.Client().Move(ctx)
	return err != nil || m != nil && (m.Stage == shard.Leaving || m.Stage == shard.Left)
}

// acquire tells for all, if no other edge does.
func (t *teller) acquire() {
	if !t.runtime.Begin() { // until the lease is given up
		return
	}
	once, cancel := context.WithCancel(context.Background())
	cancel()
	l, err := lease.Acquire(once, t.runtime.Client(), leaseName, t.runtime.End)
	if err != nil {
		return
	}
	s := &notify.Courier{Notices: t.notices, Receiver: t.receiver, Log: t.log, Metrics: meter.NoticeEvents{}, Held: l.StillHeld}
	ctx, stop := context.WithCancel(context.Background())
	t.lead = newLeading(l, stop)
	lead := t.lead
	lead.sending.Go(func() {
		s.Run(ctx)
		lead.over.Store(true)
	})
	t.sender.Store(s)
}

// follow lets another edge tell for all.
func (t *teller) follow() {
	if t.lead == nil {
		return
	}
	t.sender.Store(nil)
	t.lead.stop()
	t.lead.sending.Wait()
	t.lead.lease.GiveUp()
	t.lead = nil
}

// leave takes back what this edge has said of itself: it stops, or a new configuration goes on.
func (t *teller) leave() {
	t.follow()
	if !t.runtime.Begin() {
		return
	}
	defer t.runtime.End()
	ctx, cancel := context.WithTimeout(context.Background(), callFor)
	defer cancel()
	if active := app.Active(); active == nil || active == t.app || active.Notifier() == nil {
		_ = t.runtime.Client().DropConditions(ctx, t.runtime.Leases().ID()) // else it is old soon
	}
}

// Trouble is why the receiver does not get what it should, as far as this edge knows.
func (t *teller) Trouble() string {
	if s := t.sender.Load(); s != nil {
		if err := s.Trouble(); err != nil {
			return err.Error()
		}
	}
	return ""
}

// Examine adds what the doctor says.
func (t *teller) Examine(ctx context.Context, d *adminapi.Diagnosis) {
	waits, err := t.notices.Waiting(ctx)
	why := t.Trouble()
	switch {
	case err != nil:
		d.Add(adminapi.LevelWarning, "notify", "what waits for the receiver of notices cannot be read: %v", err)
	case why != "":
		d.Add(adminapi.LevelError, "notify", "operators are not told what happens: %s; %d notices wait, the oldest for %v. 'caddy stockgate notify test' tries the receiver", why, waits.Waiting, waits.Oldest.Round(time.Second))
	case waits.Oldest > time.Minute:
		d.Add(adminapi.LevelError, "notify", "operators are not told what happens: %d notices wait for the receiver, the oldest for %v; the edge that sends them says why in its doctor", waits.Waiting, waits.Oldest.Round(time.Second))
	default:
		d.Add(adminapi.LevelOK, "notify", "the receiver of notices has all that operators were to be told")
	}
}

// Test sends a message at once.
func (t *teller) Test(ctx context.Context) (adminapi.NotifyTested, error) {
	began := time.Now()
	text := fmt.Sprintf("This is a test of %s: messages about sales will arrive here.", edgeName(t.runtime.Leases().ID()))
	m := notices.Digest{ID: fmt.Sprintf("ntc_test_%d", began.UnixNano()), Notices: []notices.Notice{{Kind: "test", State: "test", Text: text, At: began.UTC().Truncate(time.Millisecond)}}}
	a := t.receiver.Post(ctx, &m)
	meter.NoticeEvents{}.NoticePosted(a.Class())
	if err := notify.Fault(a); err != nil {
		return adminapi.NotifyTested{}, shard.Refused("%v", err)
	}
	return adminapi.NotifyTested{Form: string(t.receiver.Form), Answer: a.Status, TookMs: time.Since(began).Milliseconds()}, nil
}

// Interface guard
var _ app.Notifier = (*teller)(nil)
