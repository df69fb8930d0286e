package command_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/sqlite"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// entries reads what a command has printed.
func entries(t *testing.T, lines string) (all []ledger.Entry) {
	t.Helper()
	for line := range strings.Lines(lines) {
		all = append(all, entry(t, line))
	}
	return all
}

func entry(t *testing.T, line string) (e ledger.Entry) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil || !strings.HasSuffix(line, "\n") {
		t.Fatalf("%v in %q", err, line)
	}
	return e
}

// sameEntries fails unless a command has printed these movements.
func sameEntries(t *testing.T, lines, sale string, epoch int64, want []journal.Movement) {
	t.Helper()
	have := entries(t, lines)
	if !reflect.DeepEqual(have, ledger.Entries(sale, epoch, want)) {
		t.Errorf("%d movements are printed, and %d are there, or they are others", len(have), len(want))
	}
}

// What is exported is what the ledger has: from the journal, from the ledger what was
// trimmed, and after Redis has lost the sale all of it.
func TestExportIsTheLedger(t *testing.T) {
	server, app := sitetest.Redis(t)
	epoch, last := ledgertest.Fill(t, server.Client(), "s", 5_100) // more than are always kept
	s := sitetest.Open(t, app)
	p := sitetest.NewShopper(t, server)
	head := func() journal.Head {
		h, err := p.Journal().Head(ledgertest.Soon(t), "s")
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	all := s.OK("journal", "export", "s")
	want, err := p.Journal().Movements(ledgertest.Soon(t), "s", 0, 1e6)
	if err != nil || int64(len(want)) != last {
		t.Fatalf("%d movements, error %v", len(want), err)
	}
	sameEntries(t, all, "s", epoch, want)

	file := s.Path("ledger.db")
	with := map[string]any{"redis": app["redis"], "ledger": map[string]any{"driver": "sqlite", "file": file}}
	s.Load(with)
	ledgertest.Eventually(t, "the ledger has everything", func() bool { h := head(); return h.Behind() == 0 })
	if _, err := p.Journal().Trim(ledgertest.Soon(t), "s", head(), 200, true, 0); err != nil || head().First != 201 {
		t.Fatalf("%+v, error %v", head(), err)
	}
	l, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sameEntries(t, s.OK("journal", "export", "s"), "s", epoch, ledgertest.Read(t, l, "s", epoch))
	sameEntries(t, s.OK("journal", "export", "s", "--from", "150"), "s", epoch, want[149:])

	s.Load(app)
	if r := s.Run("journal", "export", "s", "--from", "7"); r.Status != 1 || r.Out != "" ||
		!strings.Contains(r.Errors, "the movements 7 to 200 of sale s were trimmed from its journal, and no ledger here has them: it goes on from number 201\n") {
		t.Errorf("a gap: %d %q", r.Status, r.Errors)
	}
	sameEntries(t, s.OK("journal", "export", "s", "--from", "201"), "s", epoch, want[200:])

	s.Load(with)
	if err := server.Client().FlushAll(ledgertest.Soon(t)).Err(); err != nil {
		t.Fatal(err)
	}
	sameEntries(t, s.OK("journal", "export", "s"), "s", epoch, want)
	sameEntries(t, s.OK("journal", "export", "s", "--from", "10000"), "s", epoch, want[9999:])
}

// following is a command that goes on until it is interrupted.
type following struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    *bufio.Reader
	errors *strings.Builder
}

// follow starts a command against the site's Caddy.
func follow(t *testing.T, s *sitetest.Site, args ...string) *following {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := &following{t: t, errors: new(strings.Builder)}
	f.cmd = exec.CommandContext(t.Context(), self, append([]string{"stockgate", "--address", s.AdminAddress()}, args...)...)
	f.cmd.Env = append(os.Environ(), sitetest.BeCaddyEnv+"=1", "GORACE=atexit_sleep_ms=0", "HOME="+t.TempDir())
	f.cmd.Stderr = f.errors
	out, err := f.cmd.StdoutPipe()
	if err == nil {
		err = f.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	f.out = bufio.NewReader(out)
	return f
}

func (f *following) next() ledger.Entry {
	f.t.Helper()
	line, err := f.out.ReadString('\n')
	if err != nil {
		f.t.Fatalf("%v after %q", err, line)
	}
	return entry(f.t, line)
}

// interrupt ends it, and returns what it has left.
func (f *following) interrupt() (rest string, r sitetest.Ran) {
	f.t.Helper()
	if err := f.cmd.Process.Signal(os.Interrupt); err != nil {
		f.t.Fatal(err)
	}
	left, err := io.ReadAll(f.out)
	if err != nil {
		f.t.Fatal(err)
	}
	_ = f.cmd.Wait()
	return string(left), sitetest.Ran{Status: f.cmd.ProcessState.ExitCode(), Errors: f.errors.String()}
}

// loseSale turns a Redis, in one step, into one that has lost sale double11 and in which it
// was loaded again.
func loseSale(t *testing.T, server *redistest.Server) {
	t.Helper()
	anew := redistest.Start(t)
	file, err := sale.Parse([]byte(sitetest.SaleFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sitetest.NewShopper(t, anew).Apply(ledgertest.Soon(t), file, reservation.ApplyOptions{By: "test"}); err != nil {
		t.Fatal(err)
	}
	ctx, from, into := ledgertest.Soon(t), anew.Client(), server.Client().TxPipeline()
	into.FlushAll(ctx)
	for _, key := range from.Keys(ctx, "*").Val() {
		into.Restore(ctx, key, 0, from.Dump(ctx, key).Val())
	}
	if _, err := into.Exec(ctx); err != nil {
		t.Fatal(err)
	}
}

// A tail begins with the newest movements and follows, also into another epoch of the sale,
// until it is interrupted.
func TestTailFollows(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	head := sitetest.Do[map[string]any](s, "GET", "/stockgate/sales/double11/journal", "")
	last := int64(head["last"].(float64))
	tail, all := follow(t, s, "journal", "tail", "double11", "-n", "2"), follow(t, s, "journal", "export", "double11", "--follow", "--json")
	if ended := entries(t, s.OK("journal", "tail", "double11", "-n", "1", "--no-follow")); len(ended) != 1 || ended[0].Seq != last {
		t.Errorf("what ends: %+v", ended)
	}
	for want := last - 1; want <= last; want++ {
		if e := tail.next(); e.Seq != want || e.Sale != "double11" {
			t.Errorf("%+v, want number %d", e, want)
		}
	}
	for want := int64(1); want <= last; want++ {
		if e := all.next(); e.Seq != want {
			t.Errorf("%+v, want number %d", e, want)
		}
	}
	var before int64
	for n := range int64(3) {
		s.OK("stock", "add", "double11", "plain", fmt.Sprint(n+1), "--id", fmt.Sprint("more", n))
		for _, f := range []*following{tail, all} {
			e := f.next()
			if e.Seq != last+1+n || e.Kind != "adjusted" || e.ID != fmt.Sprint("more", n) || e.Lines[0].Units != n+1 {
				t.Errorf("%+v", e)
			}
			before = e.Epoch
		}
	}
	if rest, r := all.interrupt(); rest != "" || r.Status != 0 || r.Errors != "" {
		t.Errorf("%q %+v", rest, r)
	}
	loseSale(t, server)
	if first := tail.next(); first.Seq != 1 || first.Epoch == before {
		t.Errorf("%+v", first)
	}
	rest, r := tail.interrupt()
	if want := fmt.Sprintf("redis has lost sale double11 since: its epoch was %d and is ", before); r.Status != 0 || !strings.HasPrefix(r.Errors, want) {
		t.Errorf("%q %+v", rest, r)
	}
	if r := s.Run("journal", "export", "double11", "--epoch", fmt.Sprint(before)); r.Status != 1 || !strings.Contains(r.Errors, "no ledger here has any movement of") {
		t.Errorf("an epoch without movements: %+v", r)
	}
}

// The status names the followers of a journal, and one line says what is wrong.
func TestJournalStatus(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	if out := s.OK("journal", "status"); !strings.Contains(out, "(none)") {
		t.Errorf("no sales:\n%s", out)
	}
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	h, err := p.Journal().Head(ledgertest.Soon(t), "double11")
	if err != nil {
		t.Fatal(err)
	}
	row := fmt.Sprintf("double11  %d  1      %d ", h.Epoch, h.Last)
	if out := s.OK("journal", "status"); !strings.Contains(out, row) || !strings.HasSuffix(out, "  -       -       -       -\n") {
		t.Errorf("no followers:\n%s", out)
	}
	if _, _, err := p.Journal().AcquireLease(ledgertest.Soon(t), "double11", "A", 1, h.Epoch, 0); err != nil {
		t.Fatal(err)
	}
	if err := p.Journal().Sent(ledgertest.Soon(t), "double11", h.Epoch, 1); err != nil {
		t.Fatal(err)
	}
	if err := p.Journal().Acknowledge(ledgertest.Soon(t), "double11", h.Epoch, 2); err != nil {
		t.Fatal(err)
	}
	if out, want := s.OK("journal", "status", "double11"), fmt.Sprintf("  2       %d       1       %d\n", h.Last-2, h.Last-1); !strings.HasSuffix(out, want) {
		t.Errorf("it does not end with %q:\n%s", want, out)
	}
	var state struct{ Outbox, Ledger struct{ Has, Behind int64 } }
	if err := json.Unmarshal([]byte(s.OK("journal", "status", "double11", "--json")), &state); err != nil || state.Outbox.Has != 1 || state.Ledger.Has != 2 {
		t.Errorf("%+v, error %v", state, err)
	}
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"journal", 2, "which command? There are tail, export, status"},
		{"journal export", 2, "it takes one argument"},
		{"journal status a b", 2, "it takes at most one argument"},
		{"journal export double11 --from 0", 2, "--from must be 1 or more"},
		{"journal export double11 --epoch 5 --follow", 2, "nothing to follow"},
		{"journal export double11 --from many", 2, "invalid argument"},
		{"journal tail double11 --lines -1", 2, "--lines must be 0 or more"},
		{"journal tail double11 --from 0", 2, "--from must be 1 or more"},
		{"journal tail double11 --from 2 --lines 2", 2, "exclude each other"},
		{"journal tail No.Id", 2, "is no id of a sale"},
		{"journal export nosuch", 1, "no such sale: nosuch"},
		{"journal tail nosuch", 1, "no such sale: nosuch"},
		{"journal status nosuch", 1, "no such sale: nosuch"},
		{"journal export double11 --from 99", 1, fmt.Sprintf("the journal of sale double11 ends with number %d", h.Last)},
	} {
		r := s.Run(strings.Fields(c.args)...)
		if r.Status != c.status || r.Out != "" || strings.Count(r.Errors, "\n") != 1 || !strings.Contains(r.Errors, c.says) {
			t.Errorf("%s: %d, not %d, and not %q:\n%s%s", c.args, r.Status, c.status, c.says, r.Out, r.Errors)
		}
	}
	for path, want := range map[string]int{
		"": 200, "?after=2&limit=3": 200, "?after=-1": 400, "?limit=0": 400, "?limit=1001": 400, "?epoch=0": 400, "?from=2": 400,
	} {
		if a := s.Admin("GET", "/stockgate/sales/double11/journal/movements"+path, ""); a.Status != want {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
	server.Stop()
	if r := s.Run("journal", "export", "double11"); r.Status != 3 || !strings.Contains(r.Errors, "redis does not answer") {
		t.Errorf("%+v", r)
	}
}
