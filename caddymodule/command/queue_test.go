package command_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// has checks what a command prints.
func has(t *testing.T, out string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(out, word) {
			t.Errorf("it does not say %q:\n%s", word, out)
		}
	}
}

// inLine opens a sale with one order at the shop, and so many that wait.
func inLine(t *testing.T, waiting int) *sitetest.Site {
	t.Helper()
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	for i := range waiting + 1 {
		if p.Order(fmt.Sprint("r", i), sitetest.Queue(1)) != (i > 0) {
			t.Fatalf("order %d of %d waits, or does not", i, waiting+1)
		}
	}
	return s
}

func TestQueueCommands(t *testing.T) {
	s := inLine(t, 3)
	has(t, s.OK("queue", "show", "double11"), "QUEUE        double11\n", "\nwaiting      3\n", "\nat the shop  1\n", " orders a second\n", "\nmemory       24 bytes in Redis\n")
	has(t, s.OK("sale", "show", "double11"), "queue: 3 orders wait, the oldest for ", ", 1 at the shop, ")
	has(t, s.OK("queue", "pause", "double11"), "the line of double11 is paused: 3 orders wait", "and 1 are at the shop; the sale goes on\n")
	has(t, s.OK("queue", "show", "double11"), "paused: 'caddy stockgate queue resume double11' goes on")
	has(t, s.OK("queue", "resume", "double11"), "the line of double11 goes on: 3 orders wait")
	var shown adminapi.QueueState
	if err := json.Unmarshal([]byte(s.OK("queue", "show", "double11", "--json")), &shown); err != nil || shown.Waiting != 3 || shown.Paused {
		t.Errorf("as JSON: %+v %v", shown, err)
	}
	has(t, s.OK("sale", "pause", "double11"), "double11 is paused\n  3 orders wait, the oldest for ", "and the line goes on: 'caddy stockgate queue pause double11' stops it")
	if out := s.OK("queue", "drain", "double11"); out != "3 orders of double11 released; 1 order at the shop go on\n" {
		t.Errorf("drain: %q", out)
	}
	var drained adminapi.QueueDrained
	if err := json.Unmarshal([]byte(s.OK("queue", "drain", "double11", "--json")), &drained); err != nil || drained.Released != 0 || drained.AtShop != 1 {
		t.Errorf("as JSON: %+v %v", drained, err)
	}
	s.OK("sale", "open", "double11")
	if out := s.OK("sale", "pause", "double11"); out != "double11 is paused\n" {
		t.Errorf("with nothing in line: %q", out)
	}
	for _, word := range []string{"show", "pause", "resume", "drain"} {
		if r := s.Run("queue", word, "other"); r.Status != 1 || !strings.Contains(r.Errors, "other") {
			t.Errorf("queue %s of a sale that does not exist: %+v", word, r)
		}
	}
}

// A sale that is closed says that its line goes on; with --drop-queue it releases what waits.
func TestCloseWithLine(t *testing.T) {
	s := inLine(t, 2)
	has(t, s.OK("sale", "close", "double11"), "double11 is closed\n", "3 units stay held", "2 orders wait, the oldest for ", "the line goes on")
	has(t, s.OK("sale", "close", "double11", "--drop-queue"), "double11 is closed\n2 orders of double11 released; 1 order at the shop go on\n", "1 units stay held")
	has(t, s.OK("sale", "close", "double11", "--drop-queue"), "0 orders of double11 released")

	s = inLine(t, 2)
	out := s.OK("sale", "close", "double11", "--drop-queue", "--export", s.Path("tally.csv"))
	has(t, out, "double11 is closed\n2 orders of double11 released")
	has(t, s.Read("tally.csv"), ",plain,,100,99,1,0,0,")
}
