package command_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/sqlite"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// storeSite is a site with a store, in a directory of a short name, and a ledger.
func storeSite(t *testing.T) (s *sitetest.Site, load func(name string), ledgerFile string) {
	t.Helper()
	s = sitetest.Open(t, nil)
	ledgerFile = s.Path("ledger.db")
	load = func(name string) {
		t.Helper()
		s.Load(map[string]any{
			"store":  map[string]any{"dir": s.Path(name), "timeout": "1m"},
			"ledger": map[string]any{"driver": "sqlite", "file": ledgerFile},
		})
	}
	return s, load, ledgerFile
}

// order sells one unit. It returns once that is acknowledged.
func order(t *testing.T, p sitetest.Shopper, n int) {
	t.Helper()
	id := fmt.Sprint("o", n)
	p.Hold(id, "plain", 1, time.Hour)
	if _, err := p.Confirm(t.Context(), "double11", id, reservation.SourceAnswer, ""); err != nil {
		t.Fatal(err)
	}
}

// A store is backed up while it sells. The restored one has all that was acknowledged before, sells nothing by itself, and
// a ledger that has more is noticed, and brings that back.
func TestStoreBackupAndRestore(t *testing.T) {
	s, load, ledgerFile := storeSite(t)
	load("stock")
	s.OK("sale", "apply", s.File("sale.yaml", strings.Replace(sitetest.SaleFile, "stock: 100", "stock: 1000000", 1)))
	s.OK("sale", "open", "double11")
	p := sitetest.NewStoreShopper(t, s.Path("stock"))
	const before = 20
	all := 0
	for ; all < before; all++ {
		order(t, p, all)
	}
	file := s.Path("store.rdb")
	backup := make(chan sitetest.Ran, 1)
	go func() { backup <- s.Run("store", "backup", file) }()
	var said sitetest.Ran
	for going := true; going; all++ {
		order(t, p, all)
		select {
		case said = <-backup:
			going = false
		default:
		}
	}
	if said.Status != 0 || said.Errors != "" || !strings.Contains(said.Out, file+" has the store as of ") || !strings.Contains(said.Out, "1 sale (double11)") {
		t.Errorf("it says %+v", said)
	}
	for range 5 { // after the backup
		order(t, p, all)
		all++
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	for _, left := range []string{file + ".*", s.Path("stock") + "/*.rdb"} {
		if found, _ := filepath.Glob(left); len(found) > 0 {
			t.Errorf("it leaves %v", found)
		}
	}
	l, err := sqlite.Open(ledgerFile)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	untilDrained(s, p, l)

	restored := s.OK("store", "restore", file, s.Path("again"))
	for _, want := range []string{"double11  open  paused", "rebuild double11 --from ledger", "sale open double11"} {
		if !strings.Contains(restored, want) {
			t.Errorf("it does not say %q:\n%s", want, restored)
		}
	}
	load("again")
	b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
	if b.Status != "paused" || !b.Balanced || b.Restored.IsZero() {
		t.Errorf("the sale is %+v", b)
	}
	p = sitetest.NewStoreShopper(t, s.Path("again"))
	for n := range before {
		if state := stateOf(t, p, fmt.Sprint("o", n)); state != record.Confirmed {
			t.Errorf("order %d of %d, acknowledged before the backup, is %q", n, before, state)
		}
	}
	if state := stateOf(t, p, fmt.Sprint("o", all-1)); state != "" {
		t.Errorf("an order of after the backup is %q", state)
	}
	if shown := s.OK("sale", "show", "double11"); !strings.Contains(shown, "restored from a backup of ") {
		t.Errorf("sale show says\n%s", shown)
	}
	if tail := s.OK("journal", "tail", "double11", "--no-follow"); !strings.Contains(tail, "restored-from-a-backup-of-") {
		t.Errorf("the journal has\n%s", tail)
	}
	s.Eventually("the ledger is ahead, and that is noticed", func() (string, bool) {
		a := s.Admin("GET", "/stockgate/doctor", "").Body
		return a, strings.Contains(a, "double11 was restored from a backup of ") && strings.Contains(a, "redis has lost movements")
	})
	s.Eventually("the log says that the ledger is ahead", func() (string, bool) {
		for _, entry := range s.Logged("the ledger cannot follow a sale that redis has lost") {
			return fmt.Sprint(entry), true
		}
		return "silent", len(s.Logged("the ledger does not follow the sale; selling goes on, and the journal keeps what happens")) > 0
	})

	s.OK("rebuild", "double11", "--from", "ledger")
	for n := range all {
		if state := stateOf(t, p, fmt.Sprint("o", n)); state != record.Confirmed {
			t.Errorf("after the rebuild order %d is %q", n, state)
		}
	}
	s.OK("sale", "open", "double11")
	b = sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
	if b.Status != "open" || !b.Restored.IsZero() || b.Cell("plain", "") != fmt.Sprint(1000000, 1000000-all, 0, 0, all) {
		t.Errorf("the sale is %+v; %d were sold", b, all)
	}
}

// untilDrained waits until the ledger has all that was sold.
func untilDrained(s *sitetest.Site, p sitetest.Shopper, l ledger.Ledger) {
	s.T.Helper()
	s.Eventually("the ledger has everything", func() (string, bool) {
		head, err := p.Journal().Head(s.T.Context(), "double11")
		if err != nil {
			return err.Error(), false
		}
		at, err := l.Position(s.T.Context(), "double11")
		return fmt.Sprint(at, err), err == nil && at.Epoch == head.Epoch && at.Seq == head.Last
	})
}

// stateOf is the state of a reservation; empty: there is none.
func stateOf(t *testing.T, p sitetest.Shopper, id string) record.State {
	t.Helper()
	r, err := p.ReservationIn(t.Context(), "double11", id)
	if err != nil {
		return ""
	}
	return r.State
}

// Mistakes of an operator are named, and nothing is written.
func TestStoreRefuses(t *testing.T) {
	s := sitetest.Open(t, map[string]any{"redis": map[string]any{"embedded": true}})
	says := func(status int, want string, args ...string) {
		t.Helper()
		if r := s.Run(append([]string{"store"}, args...)...); r.Status != status || !strings.Contains(r.Errors, want) {
			t.Errorf("%q: %d, it does not say %q:\n%s%s", args, r.Status, want, r.Out, r.Errors)
		}
	}
	says(1, "this Caddy has no `store`", "backup", s.Path("b.rdb"))
	s.Load(map[string]any{"store": map[string]any{"dir": s.Path("stock"), "timeout": "1m"}})
	there := s.File("there.rdb", "order,units\n")
	says(2, "exists, and a backup overwrites nothing", "backup", there)
	says(2, "the file cannot be written", "backup", s.Path("no/such/b.rdb"))
	if r := sitetest.Run(t, "", "--address", "unix/"+s.Path("nothing"), "store", "backup", s.Path("b.rdb")); r.Status != 3 || !strings.Contains(r.Errors, "is it running?") {
		t.Errorf("without a Caddy: %+v", r)
	}
	if left, _ := filepath.Glob(s.Path("b.rdb*")); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
	says(2, "no such file", "restore", s.Path("no.rdb"), s.Path("again"))
	says(1, "it is no backup of a store", "restore", there, s.Path("again"))
	says(1, "there is no program no-such-program", "restore", there, s.Path("again"), "--redis-server", "no-such-program")
	says(1, "is used by process", "restore", there, s.Path("stock"))
	if _, err := os.Stat(s.Path("again")); err == nil {
		t.Error("a restore that failed leaves its directory")
	}

	// without sales, and from the standard input
	s.OK("store", "backup", s.Path("b.rdb"))
	if r := sitetest.Run(t, s.Read("b.rdb"), "store", "restore", "-", s.Path("again"), "--json"); r.Status != 0 || !strings.Contains(r.Out, `"sales":[]`) {
		t.Errorf("%+v", r)
	}
}

// A backup that is cut off on its way, or that cannot be written, leaves no file.
func TestStoreBackupBreaksOff(t *testing.T) {
	s := sitetest.Open(t, map[string]any{"store": map[string]any{"dir": shortDir(t), "timeout": "1m"}})
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := s.Admin(r.Method, r.URL.Path, "")
		for name, values := range a.Header {
			w.Header()[name] = values
		}
		_, _ = io.WriteString(w, a.Body[:len(a.Body)-1])
	}))
	defer cut.Close()
	r := sitetest.Run(t, "", "--address", strings.TrimPrefix(cut.URL, "http://"), "store", "backup", s.Path("b.rdb"))
	if r.Status != 3 || !strings.Contains(r.Errors, "broke off") {
		t.Errorf("%+v", r)
	}
	if left, _ := filepath.Glob(s.Path("b.rdb*")); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}

// shortDir is a directory of a short name for a store.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "stock")
}

// An operator opens a restored sale without a rebuild, and it sells more than was lost: the ledger, which has other movements under
// the same numbers of the epoch before, is not written over, and says so.
func TestStoreRestoredIsNotTheLedgers(t *testing.T) {
	s, load, ledgerFile := storeSite(t)
	load("stock")
	s.OpenSale()
	p := sitetest.NewStoreShopper(t, s.Path("stock"))
	order(t, p, 0)
	s.OK("store", "backup", s.Path("store.rdb"))
	order(t, p, 1)
	l, err := sqlite.Open(ledgerFile)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	untilDrained(s, p, l)
	has, err := l.Position(t.Context(), "double11")
	if err != nil {
		t.Fatal(err)
	}
	s.OK("store", "restore", s.Path("store.rdb"), s.Path("again"))
	load("again")
	p = sitetest.NewStoreShopper(t, s.Path("again"))
	s.OK("sale", "open", "double11")
	for n := 2; n < 7; n++ {
		order(t, p, n)
	}
	head, err := p.Journal().Head(t.Context(), "double11")
	if err != nil || head.Last <= has.Seq || head.Epoch <= has.Epoch || head.Continues.Epoch != has.Epoch || head.Continues.Last >= has.Seq {
		t.Fatalf("redis is at %+v, the ledger at %+v, %v", head, has, err)
	}
	s.Eventually("the doctor says so", func() (string, bool) {
		a := s.Admin("GET", "/stockgate/doctor", "").Body
		return a, strings.Contains(a, `"level":"error","check":"journal"`) && len(s.Logged("the ledger does not follow the sale; selling goes on, and the journal keeps what happens"))+
			len(s.Logged("the ledger cannot follow a sale that redis has lost")) > 0
	})
	if now, err := l.Position(t.Context(), "double11"); err != nil || now != has {
		t.Errorf("the ledger was at %+v and is at %+v, %v", has, now, err)
	}
}

// A backup that has all that the ledger has is said to, and after a rebuild the ledger follows the sale again.
func TestStoreRestoredHasAll(t *testing.T) {
	s, load, ledgerFile := storeSite(t)
	load("stock")
	s.OpenSale()
	order(t, sitetest.NewStoreShopper(t, s.Path("stock")), 0)
	l, err := sqlite.Open(ledgerFile)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	untilDrained(s, sitetest.NewStoreShopper(t, s.Path("stock")), l)
	s.OK("store", "backup", s.Path("store.rdb"))
	s.OK("store", "restore", s.Path("store.rdb"), s.Path("again"))
	load("again")
	s.Eventually("the doctor says so", func() (string, bool) {
		a := s.Admin("GET", "/stockgate/doctor", "").Body
		return a, strings.Contains(a, "Redis has all that the ledger has of epoch")
	})
	s.OK("rebuild", "double11", "--from", "ledger")
	p := sitetest.NewStoreShopper(t, s.Path("again"))
	s.OK("sale", "open", "double11")
	order(t, p, 1)
	untilDrained(s, p, l)
	b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
	if b.Cell("plain", "") != fmt.Sprint(100, 98, 0, 0, 2) || !b.Balanced {
		t.Errorf("the sale is %+v", b)
	}
}

// A store that goes on without what its disk has lost, because an operator has decided so, sells nothing before they have
// compared its sales, and says why everywhere.
func TestStoreGoesOnWithoutWhatIsLost(t *testing.T) {
	s, load, ledgerFile := storeSite(t)
	load("stock")
	s.OpenSale()
	p := sitetest.NewStoreShopper(t, s.Path("stock"))
	order(t, p, 0)
	order(t, p, 1)
	l, err := sqlite.Open(ledgerFile)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	untilDrained(s, p, l)
	before, err := p.Journal().Head(t.Context(), "double11")
	if err != nil {
		t.Fatal(err)
	}
	unload(s)
	loseLast(t, s.Path("stock"))
	load("stock")
	s.Eventually("it is not sold from", func() (string, bool) {
		a := s.Admin("GET", "/stockgate/doctor", "").Body
		return a, strings.Contains(a, "with answers that were given")
	})
	unload(s)
	if err := os.Remove(s.Path("stock/synced")); err != nil {
		t.Fatal(err)
	}
	load("stock")
	var b sitetest.SaleStock
	s.Eventually("it is there again", func() (string, bool) {
		a := s.Admin("GET", "/stockgate/sales/double11", "")
		return a.Body, a.Status == http.StatusOK
	})
	if b = sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.Status != "paused" || !b.Balanced || b.Accepted.IsZero() {
		t.Errorf("the sale is %+v", b)
	}
	if len(s.Logged("the sale is paused, because what the disk has lost of it looks available: rebuild it from a ledger that has more, or compare it with the shop, and open it then")) != 1 {
		t.Error("the log does not say so")
	}
	if shown := s.OK("sale", "show", "double11"); !strings.Contains(shown, "without what the disk has lost") {
		t.Errorf("sale show says\n%s", shown)
	}
	if tail := s.OK("journal", "tail", "double11", "--no-follow"); !strings.Contains(tail, "disk-lost-writes-accepted-") {
		t.Errorf("the journal has\n%s", tail)
	}
	s.Eventually("the doctor says so, and that the ledger has more", func() (string, bool) {
		a := s.Admin("GET", "/stockgate/doctor", "").Body
		return a, strings.Contains(a, "without what the disk of the store has lost") && strings.Contains(a, "redis has lost movements")
	})
	p = sitetest.NewStoreShopper(t, s.Path("stock"))
	if now, err := p.Journal().Head(t.Context(), "double11"); err != nil || now.Epoch <= before.Epoch || now.Continues.Epoch != before.Epoch || now.Continues.Last >= before.Last {
		t.Errorf("the journal is at %+v and was at %+v, %v", now, before, err)
	}
	s.OK("rebuild", "double11", "--from", "ledger")
	s.OK("sale", "open", "double11")
	for n := range 2 {
		if state := stateOf(t, p, fmt.Sprint("o", n)); state != record.Confirmed {
			t.Errorf("after the rebuild order %d is %q", n, state)
		}
	}
	order(t, p, 2)
	if b = sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.Status != "open" || !b.Accepted.IsZero() || b.Cell("plain", "") != fmt.Sprint(100, 97, 0, 0, 3) {
		t.Errorf("the sale is %+v", b)
	}
}

// unload loads a configuration without the store, and returns when its directory is given up.
func unload(s *sitetest.Site) {
	s.T.Helper()
	s.Load(map[string]any{"redis": map[string]any{"embedded": true}})
	s.Eventually("the store is given up", func() (string, bool) {
		f, err := os.Open(s.Path("stock/lock"))
		if err != nil {
			return err.Error(), false
		}
		defer f.Close()
		return "it is locked", syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
	})
}

// loseLast has a disk lose the end of the append-only file of a store, from its last order on.
func loseLast(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(string(text), "confirmed\t")
	if at < 0 {
		t.Fatal("it has no order")
	}
	if err := os.Truncate(files[0], int64(at)); err != nil {
		t.Fatal(err)
	}
}
