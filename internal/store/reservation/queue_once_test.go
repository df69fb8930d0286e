package reservation_test

import (
	"testing"

	"github.com/stockgate/stockgate/internal/test/model"
)

// waitingBehind has orders wait while "first" is at the shop.
func waitingBehind(w *twin, ids ...string) {
	for _, id := range append([]string{"first"}, ids...) {
		r := take(id, 1)
		r.Version, r.Waits = w.model.Version, waitsFor(1)
		w.run(r)
	}
}

// A fence that applies again that an order was sent, and how it ended, counts its bytes down once.
func TestSentAndSettledIsAppliedAgain(t *testing.T) {
	d := &driver{twin: newTwin(t, servers(t)[:1], "sent"), queues: true}
	d.setTime(noon)
	d.load()
	waitingBehind(d.twin, "r", "behind")
	replica := d.replicate()
	d.run(turnFor("A", "gate"))
	d.run(sendR("A", 1))
	d.run(model.Confirm{ID: "r", Word: "answer"})
	d.failover(replica)
	if size := d.model.Queue.Orders["behind"].Size; size != int64(len(packed)) {
		t.Errorf("the order that waits has %d bytes: the test shows nothing", size)
	}
}

// An operator who releases the first orders of a line hears how long the next one has waited.
func TestDrainTellsOfTheNext(t *testing.T) {
	w := newTwin(t, servers(t), "drained")
	w.setTime(noon)
	w.run(model.Apply{Starts: noon, Ends: noon + day, Deltas: []model.Delta{{Cell: "a", Units: 9}}})
	w.run(model.SetStatus{Status: "open"})
	waitingBehind(w, "r1", "r2")
	w.setTime(noon + 700)
	if oldest := w.run(model.Look{Does: "drain", Most: 1, Cause: "why"})[0][6]; oldest != int64(700) {
		t.Errorf("the oldest has waited %v ms, want 700", oldest)
	}
}
