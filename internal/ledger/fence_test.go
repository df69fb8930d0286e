package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// A replica takes over that lacks what the edges and the ledger have, and the fence waits for one edge.
// Nothing is lost, so nothing says that it is: neither the trimmer, which advises to pause the sale, nor
// the drainer; and reconcile, which would advise a rebuild, answers that the sale is fenced. When the
// edges have given everything back, all three go on.
func TestFenceThatGivesEverythingBack(t *testing.T) {
	primary := redistest.Start(t)
	replica := stocktest.Replica(t, primary)
	leads := func(s *redistest.Server) (o shard.Options, lead func(*redistest.Server)) {
		var at atomic.Pointer[string]
		lead = func(s *redistest.Server) { addr := s.Addr(); at.Store(&addr) }
		lead(s)
		o = stocktest.Options(s)
		o.FenceWait = 10 * time.Minute // for the edge that comes late
		o.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, *at.Load())
		}
		return o, lead
	}
	start := func(o shard.Options) *edge.Edge {
		e := stocktest.NewEdge(t, o, edge.Options{})
		e.Start()
		if err := e.Refresh(stocktest.Soon(t)); err != nil {
			t.Fatal(err)
		}
		stocktest.Eventually(t, "an edge that follows the journal", func() bool { s, ok := e.Catalogue().Sale("s"); return ok && s.IsFollowed() })
		return e
	}
	o, lead := leads(primary)
	stocktest.Load(t, stocktest.OpenStore(t, o), stocktest.OpenSale("s", 1000))
	a := start(o)
	o, leadLate := leads(primary)
	late := start(o)
	stocktest.MustHold(t, a, "before", "Ann", 1)
	stocktest.MustHold(t, late, "before too", "Bob", 1)
	stocktest.Replicated(t, a.Store.Shard())

	core, logs := observer.New(zap.WarnLevel)
	log := zap.New(core)
	counts := ledgertest.NewCounts()
	l := ledgertest.OpenFile(t, filepath.Join(t.TempDir(), "ledger.db"))
	trimmer := ledger.NewTrimmer(a.Store.Journal(), a.Store, l, ledger.Retention{For: time.Hour, Most: 20_000, Ledger: true}, log, counts)
	draining, cancel := context.WithCancel(t.Context())
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		ledger.NewDrainer(a.Store.Journal(), a.Store, l, log, counts).Run(draining)
	}()
	defer func() { cancel(); <-drained }()
	if err := replica.Client().Do(stocktest.Soon(t), "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	for i := range 20 { // the replica lacks these
		stocktest.MustHold(t, a, fmt.Sprint("r", i), fmt.Sprint("buyer ", i), 1)
	}
	head, err := a.Store.Journal().Head(stocktest.Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	hasAll := func() bool {
		at, err := l.Position(stocktest.Soon(t), "s")
		return err == nil && at.Seq >= head.Last
	}
	stocktest.Eventually(t, "the ledger has all", hasAll)

	primary.Kill()
	if err := replica.Client().Do(stocktest.Soon(t), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	logs.TakeAll()
	lead(replica)
	stocktest.Eventually(t, "the fence, and its server has less", func() bool {
		h, err := a.Store.Journal().Head(stocktest.Soon(t), "s")
		return err == nil && h.Fenced && h.Last < head.Last && h.Lost == 0
	})
	trimmer.Look(stocktest.Soon(t))
	_, err = recovery.Reconcile(stocktest.Soon(t), a.Store, l, "s", recovery.Options{By: "test"})
	if !errors.Is(err, shard.ErrFenced) {
		t.Errorf("reconcile says %v", err)
	}
	leadLate(replica)
	stocktest.Eventually(t, "the sale goes on", func() bool {
		h, err := a.Store.Journal().Head(stocktest.Soon(t), "s")
		return err == nil && !h.Fenced && h.Last >= head.Last
	})
	trimmer.Look(stocktest.Soon(t))
	n := 0
	stocktest.Eventually(t, "the edge sells again", func() bool {
		n++
		_, no, err := stocktest.Hold(stocktest.Soon(t), a, fmt.Sprint("after ", n), "Cid", 1)
		return err == nil && no == nil
	})
	if head, err = a.Store.Journal().Head(stocktest.Soon(t), "s"); err != nil || head.Lost != 0 {
		t.Errorf("the journal is %+v, error %v", head, err)
	}
	stocktest.Eventually(t, "the ledger goes on", hasAll)
	for _, e := range logs.FilterLevelExact(zapcore.ErrorLevel).All() {
		if text := fmt.Sprint(e.Message, e.ContextMap()); strings.Contains(text, "has lost") || strings.Contains(text, "pause the sale") {
			t.Errorf("it logs %s", text)
		}
	}
	report, err := recovery.Reconcile(stocktest.Soon(t), a.Store, l, "s", recovery.Options{By: "test"})
	if err != nil || !report.Agrees {
		t.Errorf("at the end: %+v, error %v", report, err)
	}
}
