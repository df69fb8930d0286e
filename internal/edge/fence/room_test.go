package fence

import (
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/reservation"
)

// later has a room's clock go on.
func (r *room) later(d time.Duration) {
	now := r.now().Add(d)
	r.now = func() time.Time { return now }
}

// What the journals of earlier sales have taken is given to a later one: all of it, once they have not
// been used for a while.
func TestALaterSaleHasRoomForItsTail(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration
		want  int
	}{
		"soon":          {0, 30},
		"after a while": {unusedFor + time.Second, 60},
	} {
		t.Run(name, func(t *testing.T) {
			bytes := newRoom(maxTailBytes)
			bytes.later(0)
			var earlier, later tail
			text := strings.Repeat("x", 1<<20)
			for i := range int64(100) {
				earlier.add(bytes, 1, i+1, i+1, "1", text)
			}
			bytes.later(test.after)
			for i := range int64(60) {
				later.add(bytes, 1, i+1, i+1, "1", text)
			}
			if n := len(later.entries); n < test.want || later.last(1) != 60 {
				t.Errorf("%d entries of the later sale are kept up to %d, want %d up to 60", n, later.last(1), test.want)
			}
			if n := bytes.held.Load(); n > maxTailBytes || n < maxTailBytes-2<<20 || earlier.last(1) != 100 {
				t.Errorf("%d bytes are kept, the bound is %d; of the earlier sale up to %d, want 100", n, maxTailBytes, earlier.last(1))
			}
			earlier.cutAfter(-1)
			if n, want := bytes.held.Load(), later.bytes.held.Load(); n != want {
				t.Errorf("%d bytes are held without the earlier sale, want %d", n, want)
			}
		})
	}
}

// A sale that has all the promises that one may have, and sells, is in use: another one gives way.
func TestAFullSaleIsInUse(t *testing.T) {
	count := newRoom(maxOwn)
	count.later(0)
	var sells, rests promised
	for i := range int64(maxOwnOfSale) {
		sells.add(count, movementNumber{1, i}, reservation.Promise{})
	}
	for i := range int64(10) {
		rests.add(count, movementNumber{1, i}, reservation.Promise{})
	}
	count.later(unusedFor + time.Second)
	sells.add(count, movementNumber{1, maxOwnOfSale}, reservation.Promise{})
	if p, _ := count.next(); p != &rests.count {
		t.Error("the sale that sells gives way")
	}
}

// Of a sale that was deleted nothing is remembered; what is remembered of others stays.
func TestADeletedSaleHasNoRoom(t *testing.T) {
	k := &Keeper{members: map[string]*member{"deleted": {}, "other": {}}, bytes: newRoom(maxTailBytes), count: newRoom(maxOwn)}
	for _, m := range k.members {
		m.tail.add(k.bytes, 1, 1, 1, "1", "entry")
		m.own.add(k.count, movementNumber{1, 1}, reservation.Promise{})
	}
	k.Deleted("deleted")
	k.Deleted("never sold here")
	if bytes, count := k.bytes.held.Load(), k.count.held.Load(); bytes != 5 || count != 1 {
		t.Errorf("%d bytes and %d promises are held, want those of the other sale", bytes, count)
	}
	if last, n := k.members["other"].tail.last(1), len(k.members["deleted"].own.after(nowhere)); last != 1 || n != 0 {
		t.Errorf("the other sale is known up to %d, and %d promises of the deleted one", last, n)
	}
}
