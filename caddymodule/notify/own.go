package notify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
)

const (
	// shopWindow is the time over which orders that the shop fails are counted.
	shopWindow = time.Minute
	// challengedFor is how long after its last task the challenge counts as on.
	challengedFor = 30 * time.Second
	// unreadyFor is how long an edge may be without selling before operators hear of it.
	unreadyFor = 5 * time.Second
)

// condition is something that goes on at an edge.
type condition struct {
	About string `json:"about"` // the same at each edge where it is the same
	Kind  string `json:"kind"`
	Sale  string `json:"sale,omitempty"`
	State string `json:"state"`
	Text  string `json:"text"`
	Over  string `json:"over"` // the text of its end
	// Command helps; empty: none does.
	Command string `json:"command,omitempty"`
	urgent  bool   // the edge says it itself while Redis is away
	alone   bool   // the edge says it itself at all times
}

// report is what an edge says of itself.
type report struct {
	// Round counts up: an edge whose report does not change is gone.
	Round      int64       `json:"round"`
	Conditions []condition `json:"conditions,omitempty"`
	// Shop has, for each sale, the orders of the last minute and how many of them failed.
	Shop map[string][2]int64 `json:"shop,omitempty"`
}

// own is what an edge knows of itself. It is used by one goroutine.
type own struct {
	round      int64
	samples    []sample
	challenged map[string]float64   // tasks that were given, by gate
	asked      map[string]time.Time // when the last one was
	unready    time.Time            // since when it does not sell; zero: it does
}

// sample is what the shop has said up to a moment.
type sample struct {
	at  time.Time
	all map[string]meter.ShopCount
}

func (o *own) begin() {
	o.challenged, o.asked = meter.Challenges(), make(map[string]time.Time)
	o.samples = []sample{{time.Now(), meter.ShopCounts()}}
}

// look returns what goes on at this edge.
func (o *own) look(t *teller, now time.Time) *report {
	o.round++
	r := &report{Round: o.round, Shop: o.shop(now)}
	for _, some := range [][]condition{o.bypassed(t), o.selling(t, now), o.challenges(now), fenced(t), late()} {
		for _, c := range some {
			if t.config.tells(c.Kind) {
				r.Conditions = append(r.Conditions, c)
			}
		}
	}
	return r
}

// shop counts the orders of the last minute.
func (o *own) shop(now time.Time) map[string][2]int64 {
	all := meter.ShopCounts()
	o.samples = append(o.samples, sample{now, all})
	for len(o.samples) > 2 && now.Sub(o.samples[1].at) >= shopWindow {
		o.samples = o.samples[1:]
	}
	lately := make(map[string][2]int64)
	for id, n := range all {
		before := o.samples[0].all[id]
		if sent := int64(n.Sent - before.Sent); sent > 0 {
			lately[id] = [2]int64{sent, int64(n.Failed - before.Failed)}
		}
	}
	return lately
}

func (o *own) bypassed(t *teller) (all []condition) {
	some, _ := t.app.OwnBypasses()
	for i := range some {
		if b := &some[i]; !b.Ended {
			all = append(all, condition{
				About: "bypass " + b.ID, Kind: kindBypass, State: "bypassed", Command: b.Off(), urgent: true,
				Text: capital(b.Sentence()) + ".", Over: fmt.Sprintf("The bypass of %s at %s is over.", b.Title(), b.Edge),
			})
		}
	}
	return all
}

// selling says that this edge does not sell.
func (o *own) selling(t *teller, now time.Time) []condition {
	err := t.runtime.Ready()
	switch {
	case err == nil:
		o.unready = time.Time{}
		return nil
	case o.unready.IsZero():
		o.unready = now
	}
	if now.Sub(o.unready) < unreadyFor {
		return nil
	}
	id := t.runtime.Leases().ID()
	return []condition{{
		About: "selling " + id, Kind: kindEdge, State: "not_selling", Command: "caddy stockgate health", alone: true,
		Text: fmt.Sprintf("%s does not sell, and its buyers hear 503: %v.", edgeName(id), err),
		Over: fmt.Sprintf("%s sells again.", edgeName(id)),
	}}
}

func (o *own) challenges(now time.Time) (all []condition) {
	for gate, n := range meter.Challenges() {
		if n > o.challenged[gate] {
			o.challenged[gate], o.asked[gate] = n, now
		}
	}
	for gate, at := range o.asked {
		if now.Sub(at) > challengedFor {
			delete(o.asked, gate)
			continue
		}
		whose := strings.TrimSpace("the gate " + gate)
		all = append(all, condition{
			About: "challenge " + gate, Kind: kindChallenge, State: "challenged",
			Text: fmt.Sprintf("The challenge of %s is on: more attempts come than it lets pass, and browsers work before they may order.", whose),
			Over: fmt.Sprintf("The challenge of %s is off.", whose),
		})
	}
	return all
}

// fenced says which sales wait until their Redis has what it lacks.
func fenced(t *teller) (all []condition) {
	for _, s := range t.runtime.Leases().States() {
		if s.Owed > 0 || s.Replaced { // others sell, and what happened before is told already
			continue
		}
		all = append(all, condition{
			About: "fence " + s.Sale, Kind: kindFence, Sale: s.Sale, State: "fenced", Command: "caddy stockgate doctor",
			Text: fmt.Sprintf("%s is not sold for a moment: its Redis was promoted or restarted, and gets back from the edges what it lacks.", s.Sale),
			Over: fmt.Sprintf("The fence of %s has ended, and it is sold again.", s.Sale),
		})
	}
	return all
}

// late says with which sales ledger and outbox are behind.
func late() (all []condition) {
	for _, id := range meter.LateLedger() {
		all = append(all, condition{
			About: "ledger " + id, Kind: kindLedger, Sale: id, State: "behind", Command: "caddy stockgate journal status " + id,
			Text: because(fmt.Sprintf("The ledger is behind with %s: selling goes on, and Redis keeps what it lacks", id), meter.LedgerTrouble(id)),
			Over: fmt.Sprintf("The ledger has all of %s again.", id),
		})
	}
	for _, id := range meter.LateOutbox() {
		all = append(all, condition{
			About: "outbox " + id, Kind: kindOutbox, Sale: id, State: "behind", Command: "caddy stockgate journal status " + id,
			Text: because(fmt.Sprintf("The outbox is behind with %s: selling goes on, and your receiver hears of it later", id), meter.OutboxTrouble(id)),
			Over: fmt.Sprintf("The outbox has sent all of %s.", id),
		})
	}
	return all
}

func because(text, why string) string {
	if why == "" {
		return text + "."
	}
	return text + ". " + strings.TrimSuffix(why, ".") + "."
}

// edgeName is the name of an edge's machine.
func edgeName(id string) string {
	if at := strings.LastIndexByte(id, '-'); at > 0 {
		return id[:at]
	}
	return id
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// abouts are what the conditions are about.
func abouts(all []condition) []string {
	var names []string
	for _, c := range all {
		names = append(names, c.About)
	}
	slices.Sort(names)
	return names
}
