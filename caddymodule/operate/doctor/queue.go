package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/queue"
)

// queueStands is for how long an order may wait while none leaves the line. It is the time over
// which the pace is measured.
const queueStands = 10 * time.Second

// judgeQueue adds the findings about the orders of a sale that wait for the shop.
func (d *examination) judgeQueue(id string, head journal.Head) {
	ctx, cancel := d.call()
	defer cancel()
	s, err := queue.Look(ctx, d.runtime.Store, id)
	if s == nil && err == nil {
		return
	}
	var edges []string
	var next time.Duration
	if err == nil {
		edges, next, err = queue.Keepers(ctx, d.runtime.Store, id, head.Now.Add(head.Lead))
	}
	if err != nil {
		d.Add(adminapi.LevelError, "queue", "the orders of %s that wait for the shop cannot be read: %v", id, err)
		return
	}
	for o := range selling(d.app) {
		if o.Most > 0 && (s.Waiting*10 > int64(o.Most)*8 || s.Bytes*10 > o.Memory*8) {
			d.Add(adminapi.LevelWarning, "queue", "the line of %s is nearly full: %d of %d orders, %d of %d bytes; what comes beyond is refused as busy. Raise `most` and `memory` of the gate's queue, or have the shop take more",
				id, s.Waiting, o.Most, s.Bytes, o.Memory)
			break
		}
	}
	if s.Skipped > 0 {
		d.Add(adminapi.LevelError, "queue", "%d orders of %s that wait for the shop are skipped: no gate of an edge that runs (%s) can send them, because none has the name, the hosts and the sale of the gate that took them, or all read another order in their requests. "+
			"Start an edge with the configuration of then, or 'caddy stockgate queue drain %s' releases all that wait; at the end of `longest` they are released", s.Skipped, id, strings.Join(edges, ", "), id)
	}
	if s.Waiting > 0 && s.Skipped == s.Waiting {
		return
	}
	wait := fmt.Sprintf("%d orders of %s wait for the shop, the oldest for %v", s.Waiting, id, s.Oldest.Round(time.Second))
	switch {
	case s.Paused && s.Waiting == 0:
		d.Add(adminapi.LevelWarning, "queue", "an operator has paused the line of %s: orders that come will wait until 'caddy stockgate queue resume %s'", id, id)
	case s.Paused:
		d.Add(adminapi.LevelWarning, "queue", "%s, and an operator has paused the line: 'caddy stockgate queue resume %s' lets them go on", wait, id)
	case s.Waiting == 0:
		d.Add(adminapi.LevelOK, "queue", "no order of %s waits for the shop", id)
	case s.Pace > 0 || s.Oldest < queueStands:
		d.Add(adminapi.LevelOK, "queue", "%s; %.1f a second went there lately", wait, s.Pace)
	case s.HeldUp > 0:
		d.Add(adminapi.LevelWarning, "queue", "%s, and the shop has asked for no order for %v: see why it cannot take orders; 'caddy stockgate queue resume %s' sends them at once", wait, s.HeldUp.Round(time.Second), id)
	case len(edges) == 0:
		d.Add(adminapi.LevelError, "queue", "%s, and no edge sends them: start an edge with the gate that took them, or 'caddy stockgate queue drain %s' releases them", wait, id)
	case next > 0:
		d.Add(adminapi.LevelOK, "queue", "%s; by the pace the next one goes in %v", wait, next.Round(time.Second))
	case s.AtShop > 0:
		d.Add(adminapi.LevelWarning, "queue", "%s, and none leaves while %d are at the shop: see whether it answers; each makes room at its answer, or at its deadline. "+
			"If `at_once` is more than that, no edge that runs (%s) has the gate that took them: start one that has", wait, s.AtShop, strings.Join(edges, ", "))
	default:
		d.Add(adminapi.LevelError, "queue", "%s, and no edge that runs (%s) has the gate that took them: start an edge with the configuration of then, or 'caddy stockgate queue drain %s' releases them",
			wait, strings.Join(edges, ", "), id)
	}
}
