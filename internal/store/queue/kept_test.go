package queue_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// process is an edge with a queue, as a program has it. The test may cut it off, which is its end.
func process(t *testing.T, server *redistest.Server, change func(*shard.Options)) (*shop, *stocktest.Network) {
	t.Helper()
	n := &stocktest.Network{Addr: server.Addr()}
	o := stocktest.Options(server)
	o.Dialer = n.Dial
	if change != nil {
		change(&o)
	}
	e := stocktest.NewEdge(t, o, edge.Options{})
	s := quiet(t, e.Leases().ID(), e, one)
	s.queue.Kept = e.Leases().Kept
	return s, n
}

// begins starts the edge of a process, and has it read the sale.
func (s *shop) begins() {
	s.t.Helper()
	s.Start()
	stocktest.Look(s.t, s.Edge)
}

// meta is a field of what Redis knows of the sale.
func (s *shop) meta(server *redistest.Server, field string) string {
	s.t.Helper()
	return server.Client().HGet(stocktest.Soon(s.t), s.Store.Shard().ShardKeys("s")[shard.MetaKey], field).Val()
}

// pledges waits until Redis has heard how the edge keeps what it sends; empty: in no way.
func (s *shop) pledges(server *redistest.Server, how string) {
	s.t.Helper()
	stocktest.Eventually(s.t, "a pledge: "+how, func() bool {
		keeps := s.meta(server, "keeps")
		return how == "" && !strings.Contains(keeps, s.queue.Edge) || how != "" && strings.Contains(keeps, s.queue.Edge+" "+how)
	})
}

// sendsSecond ends the first order of a line, and sends the second one.
func (s *shop) sendsSecond(first, second string) {
	s.t.Helper()
	s.confirm(first)
	if got := s.ask(s.queue.Edge, one, time.Millisecond, "gate"); !slices.Equal(got, []string{second + " 1"}) {
		s.t.Fatalf("%q, want the turn of %s", got, second)
	}
	s.mustSend(second, 1)
}

// goesOn has an edge that has come after a loss give up the others, and looks at two orders of them. One
// was sent. The other one waits on, and is sent once, or is in doubt.
func (s *shop) goesOn(server *redistest.Server, sent, waited string, want record.State) {
	s.t.Helper()
	stocktest.GiveUp(s.t, s.Edge)
	s.over()
	turns := s.ask(s.queue.Edge, one, lease, "gate")
	// held: another edge has read that it was sent; it is in doubt at its deadline
	if got := s.place(sent).State; got != record.InDoubt && got != record.Held {
		s.t.Errorf("%s is %s, and was sent by an edge that is lost", sent, got)
	}
	if got := s.place(waited).State; got != want {
		s.t.Fatalf("%s is %s, want %s", waited, got, want)
	}
	if want == record.Waiting {
		stocktest.Eventually(s.t, "the turn of "+waited, func() bool {
			if !slices.Contains(turns, waited+" 1") {
				turns = s.ask(s.queue.Edge, one, lease, "gate")
				return false
			}
			return s.send(waited, 1) == nil // once the edge has a lease again
		})
		s.confirm(waited)
	}
	stocktest.Balanced(s.t, server.Client(), s.Store, "s")
}

// sqlLedger is how far a ledger has followed the sale.
type sqlLedger struct {
	epoch, seq int64 // at first: beside those of Redis
	err        error
	asked      atomic.Bool
}

func (l *sqlLedger) position(context.Context, string) (epoch, seq int64, err error) {
	l.asked.Store(true)
	return l.epoch, l.seq, l.err
}

// Redis and the edges that have sold are lost together, and Redis starts again. What waits was not sent
// where Redis keeps what it acknowledges, and has all that an edge or the ledger has seen.
func TestWhatWaitsAfterARestart(t *testing.T) {
	always := []string{"appendonly yes", "appendfsync always"}
	tests := map[string]struct {
		config   []string
		before   func(*testing.T, *redistest.Server) // the edges begin
		ledger   *sqlLedger                          // nil: none
		copied   bool                                // Redis starts from a copy of its files
		snapshot bool                                // Redis starts from an earlier snapshot
		lives    bool                                // another edge has seen all, and lives
		two      bool                                // two edges are lost
		replica  bool                                // one follows before and after
		how      string
		want     record.State
	}{
		"one edge":  {config: always, how: "disk", want: record.Waiting},
		"two edges": {config: always, how: "disk", two: true, want: record.Waiting},
		"everysec":  {config: []string{"appendonly yes", "appendfsync everysec"}, want: record.InDoubt},
		"a file that it does not start from": {want: record.InDoubt, how: "disk", snapshot: true, before: func(t *testing.T, s *redistest.Server) {
			for _, set := range [][2]string{{"appendfsync", "always"}, {"appendonly", "yes"}} {
				if err := s.Client().ConfigSet(stocktest.Soon(t), set[0], set[1]).Err(); err != nil {
					t.Fatal(err)
				}
			}
			stocktest.Eventually(t, "the file", func() bool {
				info := s.Client().Info(stocktest.Soon(t), "persistence").Val()
				return strings.Contains(info, "aof_rewrite_in_progress:0") && strings.Contains(info, "aof_rewrite_scheduled:0")
			})
		}},
		"not while it is rewritten":         {config: append([]string{"no-appendfsync-on-rewrite yes"}, always...), want: record.InDoubt},
		"a replica could take over":         {config: always, replica: true, want: record.InDoubt},
		"a ledger that has no more":         {config: always, how: "disk", want: record.Waiting, ledger: &sqlLedger{}},
		"a ledger of an earlier life":       {config: always, how: "disk", want: record.Waiting, ledger: &sqlLedger{epoch: -1, seq: 9}},
		"a ledger that does not answer":     {config: always, how: "disk", want: record.InDoubt, ledger: &sqlLedger{err: errors.New("it is away")}},
		"a copy, and the ledger has more":   {config: always, how: "disk", copied: true, want: record.InDoubt, ledger: &sqlLedger{}},
		"a copy, and an edge has seen more": {config: always, how: "disk", copied: true, lives: true, want: record.InDoubt},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redistest.Config(test.config...))
			stocktest.Load(t, stocktest.OpenStore(t, stocktest.Options(server)), stocktest.OpenSale("s", 100))
			if test.before != nil {
				test.before(t, server)
			}
			if test.replica {
				stocktest.Replica(t, server)
			}
			a, toA := process(t, server, nil)
			next, toNext := process(t, server, nil)
			a.begins()
			if test.two || test.lives {
				next.begins()
			}
			a.line("a1", "a2", "a3")
			a.pledges(server, test.how)
			var copied string
			if test.copied {
				copied = filepath.Join(t.TempDir(), "copy")
				if err := os.CopyFS(copied, os.DirFS(server.Client().ConfigGet(stocktest.Soon(t), "dir").Val()["dir"])); err != nil {
					t.Fatal(err)
				}
			}
			if test.snapshot {
				if err := server.Client().Save(stocktest.Soon(t)).Err(); err != nil {
					t.Fatal(err)
				}
			}
			dir := server.Client().ConfigGet(stocktest.Soon(t), "dir").Val()["dir"]
			a.sendsSecond("a1", "a2")
			if test.two {
				next.line("b1")
				next.pledges(server, test.how)
			}
			if test.lives {
				next.line("b1")
			}
			seq, err := server.Client().HGet(stocktest.Soon(t), a.Store.Shard().ShardKeys("s")[shard.MetaKey], "seq").Int64()
			if err != nil {
				t.Fatal(err)
			}
			epoch := a.Store.Shard().Clock("s").Known().Term.Epoch
			toA.Cut()
			if !test.lives {
				toNext.Cut()
			}
			server.Kill()
			if test.copied {
				for _, err := range []error{os.RemoveAll(filepath.Join(dir, "appendonlydir")), os.CopyFS(filepath.Join(dir, "appendonlydir"), os.DirFS(filepath.Join(copied, "appendonlydir")))} {
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			server.Restart()
			if test.replica {
				stocktest.Followed(t, server)
			}
			last := next
			if !test.lives {
				last, _ = process(t, server, nil)
				if test.ledger != nil {
					test.ledger.epoch, test.ledger.seq = test.ledger.epoch+epoch, test.ledger.seq+seq
					last.Leases().UseLedger(test.ledger.position)
				}
				last.Start()
				if test.ledger != nil {
					stocktest.Eventually(t, "what the ledger has", func() bool {
						return test.ledger.asked.Load() && (test.ledger.err != nil || last.meta(server, "asks") == "")
					})
				}
			}
			last.goesOn(server, "a2", "a3", test.want)
			if test.two {
				if got := last.place("b1").State; got != record.Waiting {
					t.Errorf("b1 is %s, and waited", got)
				}
			}
		})
	}
}

// The primary and the edge that has sold are lost together, and a replica is promoted. What waits was
// not sent where all replicas have what Redis acknowledges.
func TestWhatWaitsAfterAPromotion(t *testing.T) {
	acks := func(o *shard.Options) { o.ReplicaAcks, o.ReplicaAcksWait = 1, 30*time.Second }
	for name, test := range map[string]struct {
		change   func(*shard.Options)
		replicas int
		config   []string
		late     bool // the replica comes when the edge has pledged
		lives    bool // another edge lives
		how      string
		want     record.State
	}{
		"all replicas have it":                    {acks, 1, nil, false, false, "replicas", record.Waiting},
		"all replicas have it, and an edge lives": {acks, 1, nil, false, true, "replicas", record.Waiting},
		"replicas follow later":                   {nil, 1, nil, false, false, "", record.InDoubt},
		"one of two has it":                       {acks, 2, nil, false, false, "", record.InDoubt},
		"only the disk has it":                    {nil, 1, []string{"appendonly yes", "appendfsync always"}, true, false, "disk", record.InDoubt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary := redistest.Start(t, redistest.Config(test.config...))
			stocktest.Load(t, stocktest.OpenStore(t, stocktest.Options(primary)), stocktest.OpenSale("s", 100))
			var replica *redistest.Server
			follow := func() {
				for range test.replicas {
					replica = stocktest.Replica(t, primary)
				}
			}
			if !test.late {
				follow()
			}
			a, toA := process(t, primary, test.change)
			b, toB := process(t, primary, nil)
			a.begins()
			if test.lives {
				b.begins()
				b.line("b1")
				b.confirm("b1")
			}
			a.line("a1", "a2", "a3")
			a.pledges(primary, test.how)
			a.sendsSecond("a1", "a2")
			if test.late {
				follow()
			}
			stocktest.Replicated(t, b.Store.Shard())
			toA.Cut()
			primary.Kill()
			if err := replica.Client().Do(stocktest.Soon(t), "REPLICAOF", "NO", "ONE").Err(); err != nil {
				t.Fatal(err)
			}
			toB.Cut()
			toB.Lead(replica.Addr())
			if !test.lives {
				b.Start()
			}
			b.goesOn(replica, "a2", "a3", test.want)
		})
	}
}

// Redis does not keep any more what it acknowledges, while orders wait: none is sent before the edge has
// taken back what it has said of itself.
func TestNotSentWhereItIsNotKept(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Config("appendonly yes", "appendfsync always"))
	stocktest.Load(t, stocktest.OpenStore(t, stocktest.Options(server)), stocktest.OpenSale("s", 100))
	a, _ := process(t, server, nil)
	a.begins()
	a.line("a1", "a2")
	a.pledges(server, "disk")
	a.confirm("a1")
	a.gets(a.queue.Edge, "a2 1")
	if err := server.Client().ConfigSet(stocktest.Soon(t), "appendfsync", "everysec").Err(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan error, 1)
	go func() {
		_, err := a.queue.Send(ctx, queue.Turn{Sale: "s", ID: "a2", Try: 1}, time.Hour, time.Minute, record.ModeResponse)
		sent <- err
	}()
	a.pledges(server, "")
	cancel()
	if err := <-sent; !errors.Is(err, shard.ErrUnavailable) || errors.Is(err, queue.ErrNotYours) {
		t.Errorf("an order goes to the shop whose send may be lost: %v", err)
	}
}
