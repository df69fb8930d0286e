package embedded_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/reservation/embedded"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func TestMain(m *testing.M) { stocktest.Main(m) }

func open(t *testing.T, o shard.Options) *reservation.Store {
	s, err := reservation.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// An edge sells on the embedded server as on any other.
func TestSells(t *testing.T) {
	server, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	o := shard.Options{Timeout: time.Minute}
	server.Connect(&o)
	e := edge.New(open(t, o), edge.Options{Keys: []shard.SigningKey{{KID: "main"}}})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	file := &sale.Sale{ID: "s", StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour), Items: []sale.Item{{SKU: "a", Stock: 1}}}
	if _, err := e.ApplyUnlessLost(ctx, file, reservation.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Store.SetStatus(ctx, "s", sale.Open, "me"), e.Refresh(ctx), e.Ready()); err != nil {
		t.Fatal(err)
	}
	l, _ := e.Catalogue().Sale("s")
	a := &sale.Attempt{Buyer: "Ann", Lines: []sale.Line{{SKU: "a", Quantity: 1}}}
	options := edge.HoldOptions{HoldFor: time.Minute, Margin: time.Second, Mode: record.ModeResponse}
	if _, refusal, err := e.Hold(ctx, "r1", l, a, a.Lines, options); err != nil || refusal != nil {
		t.Errorf("the first: %v, %v", refusal, err)
	}
	other := &sale.Attempt{Buyer: "Bob", Lines: a.Lines}
	if _, refusal, err := e.Hold(ctx, "r2", l, other, a.Lines, options); err != nil || refusal == nil || refusal.Reason != sale.AllHeld {
		t.Errorf("the second: %v, %v", refusal, err)
	}
}

// Only this process can use the server, and two of them share nothing.
func TestIsPrivate(t *testing.T) {
	var options [2]shard.Options
	for i := range options {
		server, err := embedded.Start()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		server.Connect(&options[i])
		if addr := options[i].Addresses[0]; !strings.HasPrefix(addr, "127.0.0.1:") {
			t.Errorf("it listens on %s", addr)
		}
	}
	if options[0].Password == options[1].Password || len(options[0].Password) < 20 {
		t.Errorf("the passwords are %q and %q", options[0].Password, options[1].Password)
	}
	options[0].Password = ""
	if _, err := open(t, options[0]).Journal().Sales(t.Context()); !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("without the password: %v", err)
	}
	options[0].Password = options[1].Password
	if _, err := open(t, options[0]).Journal().Sales(t.Context()); !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("with another password: %v", err)
	}
}

func TestCloseTwice(t *testing.T) {
	server, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	var o shard.Options
	server.Connect(&o)
	for range 2 {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := open(t, o).Journal().Sales(t.Context()); !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("a closed server: %v", err)
	}
}
