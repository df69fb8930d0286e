package mysql_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/mariadbtest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// pair is a database with an asynchronous replica, under one address that leads to the primary.
type pair struct {
	t                *testing.T
	primary, replica *mariadbtest.Server
	link, name       string
}

func newPair(t *testing.T) *pair {
	t.Helper()
	dir, err := os.MkdirTemp("", "pair") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &pair{t: t, primary: mariadbtest.Start(t, mariadbtest.Primary...), replica: mariadbtest.Start(t, mariadbtest.Replica...), link: filepath.Join(dir, "sock")}
	p.replica.Follow(p.primary)
	address := p.primary.Database()
	p.name = address[strings.LastIndex(address, "/test")+1 : strings.Index(address, "?")]
	p.lead(p.primary)
	return p
}

// lead leads the address to a server.
func (p *pair) lead(to *mariadbtest.Server) {
	p.t.Helper()
	next := p.link + "2"
	if err := os.Symlink(to.Socket(), next); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(next, p.link); err != nil {
		p.t.Fatal(err)
	}
}

// promote promotes the replica with what it has.
func (p *pair) promote() {
	p.t.Helper()
	p.replica.Promote()
	p.lead(p.replica)
}

// behind drains a sale into a pair whose replica then stops, and returns where it has stopped.
func (p *pair) behind(l ledger.Ledger, s *ledgertest.Seller) ledger.Position {
	p.t.Helper()
	s.Sell(20)
	s.UntilDrained(l)
	at, err := l.Position(ledgertest.Soon(p.t), "s")
	if err != nil {
		p.t.Fatal(err)
	}
	copied := open(p.t, p.replica.Address(p.name))
	ledgertest.Eventually(p.t, "the replica has the same", func() bool {
		has, err := copied.Position(ledgertest.Soon(p.t), "s")
		return err == nil && has == at
	})
	p.replica.Exec("STOP SLAVE")
	s.Sell(20)
	s.UntilDrained(l)
	return at
}

// A replica that lacks the last movements is promoted. The journal still has them, so the ledger gets them again.
func TestFailoverToAReplicaThatIsBehind(t *testing.T) {
	p := newPair(t)
	l := open(t, "mysql://root@/"+p.name+"?socket="+p.link)
	s := ledgertest.NewSeller(t, redistest.Start(t), 1000)
	counts := ledgertest.NewCounts()
	s.Drain(l, counts)
	p.behind(l, s)
	p.primary.Kill()
	p.promote()
	s.Sell(5)
	s.UntilDrained(l)
	if n, _ := counts.Logged("the ledger has less than was acknowledged"); n != 1 {
		t.Errorf("it was logged %d times that the ledger has less", n)
	}
	head, err := s.Store.Journal().Head(ledgertest.Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Store.Journal().Movements(ledgertest.Soon(t), "s", 0, int(head.Last))
	if err != nil {
		t.Fatal(err)
	}
	ledgertest.Same(t, ledgertest.Read(t, l, "s", head.Epoch), all)
}

// The journal was trimmed on the word of the primary: the movements between are nowhere. The ledger stays as it is and
// says so, and once an operator has told it to go on it follows again.
func TestFailoverAfterTheJournalWasTrimmed(t *testing.T) {
	p := newPair(t)
	server := redistest.Start(t)
	l := open(t, "mysql://root@/"+p.name+"?socket="+p.link)
	s := ledgertest.NewSeller(t, server, 1000)
	counts := ledgertest.NewCounts()
	end := s.Drain(l, counts)
	at := p.behind(l, s)
	head, err := s.Store.Journal().Head(ledgertest.Soon(t), "s")
	if err != nil || head.Acked != head.Last || head.Acked <= at.Seq {
		t.Fatalf("the journal is %+v, error %v; the replica is at %+v", head, err, at)
	}
	ledgertest.Trim(t, server, head.Acked-1)
	p.primary.Kill()
	s.Sell(5)
	ledgertest.Eventually(t, "the drainer misses the database", func() bool { n, _ := counts.Logged(ledgertest.NotFollowing); return n == 1 })
	p.promote()
	want := fmt.Sprintf("the ledger has sale s up to entry %d, and the journal begins after entry %d", at.Seq, head.Acked-1)
	ledgertest.Eventually(t, "the drainer names the gap", func() bool {
		_, text := counts.Logged(ledgertest.NotFollowing)
		return strings.Contains(text, want)
	})
	if has, err := l.Position(ledgertest.Soon(t), "s"); err != nil || has != at {
		t.Errorf("the ledger is at %+v, error %v; it was at %+v", has, err, at)
	}
	now, err := s.Store.Journal().Head(ledgertest.Soon(t), "s")
	if err != nil || now.Acked != head.Acked {
		t.Errorf("the journal is %+v, error %v: it must be kept from %d", now, err, head.Acked)
	}
	_, err = ledger.Standing(ledgertest.Soon(t), s.Store.Journal(), l, "s", now) // as the doctor, the metrics and journal status ask
	if gap, ok := errors.AsType[*ledger.PositionError](err); !ok || gap.Have != at || gap.Want.Seq != head.Acked-1 {
		t.Errorf("the ledger's standing is %v", err)
	}
	end()

	sold := ledgertest.Raw(t, server.Client())["cells"]
	ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{Force: true, Open: true})
	if after := ledgertest.Raw(t, server.Client())["cells"]; fmt.Sprint(after) != fmt.Sprint(sold) {
		t.Errorf("the rebuild has changed what was sold: %v, was %v", after, sold)
	}
	s.Drain(l, ledgertest.NewCounts())
	s.Sell(5)
	s.UntilDrained(l)
}
