package model

import (
	"cmp"
	"slices"
)

// Confirm says that the order stands. Word is its source: answer (the gate saw the shop's),
// shop, operator, probe or told.
type Confirm struct {
	ID, Word, Cause string
	// Evidence is the content of its token; nil: there is none.
	Evidence *Evidence
}

// Evidence is a reservation according to its token.
type Evidence struct {
	Epoch, Created, Exp int64
	Buyer, Ref, Mode    string
	Lines               []Line
	Charges             []Charge
}

// Run is the row "confirm" of the table of outcomes. What an operator confirms is found by its ref.
func (o Confirm) Run(s *Shard) Reply {
	reply := o.confirm(s)
	if o.Word == "operator" {
		s.listSold(o.ID)
	}
	return reply
}

func (o Confirm) confirm(s *Shard) Reply {
	r := s.find(o.ID)
	if r == nil {
		return o.recreate(s)
	}
	was := string(r.State)
	if r.Mode == offer { // there is no order
		return Reply{"conflict", r.standsAs()}
	}
	switch r.State {
	case Confirmed:
		return Reply{"ok", "confirmed"}
	case Held, InDoubt:
		s.become(o.ID, Confirmed, o.Cause)
		return Reply{"ok", "confirmed"}
	case Released:
		if r.Cause == Swapped {
			s.undoSwap(o.ID, r)
			r = s.Records[o.ID]
		} else if o.Word == "shop" {
			return Reply{"conflict", was}
		}
	}
	if i, _ := s.short(r.Lines, available); i < 0 {
		s.become(o.ID, Confirmed, o.Cause)
		return Reply{"ok", "confirmed"}
	}
	if o.Word != "answer" && o.Word != "told" {
		return Reply{"refund_needed", was}
	}
	if r.State != Unbacked {
		s.become(o.ID, Unbacked, o.Cause)
	}
	return Reply{"ok", "unbacked"}
}

// recreate makes a reservation again that was lost with the data of an older epoch.
func (o Confirm) recreate(s *Shard) Reply {
	e := o.Evidence
	if e == nil || !s.Exists || o.Word != "told" && e.Epoch >= s.Epoch || len(e.Lines) == 0 || s.ForgottenExp > 0 && e.Exp <= s.ForgottenExp || s.Deleted > 0 && e.Epoch <= s.Deleted {
		return Reply{"not_found"}
	}
	if i, _ := s.short(e.Lines, available); i >= 0 && o.Word != "told" {
		return Reply{"refund_needed", "unknown"}
	}
	state := s.beginSold(o.ID, e.Lines, e.Charges, Record{Exp: e.Exp, Created: e.Created, Mode: e.Mode, Buyer: e.Buyer, Ref: e.Ref, Cause: o.Cause})
	return Reply{"ok", string(state)}
}

// Release says that the order will not come. Word is its source: shop, unsent, unheard, operator,
// probe or force.
type Release struct {
	ID, Word string
	NotAfter int64
	Cause    string
}

// tombstoneFor is how long a tombstone outlives the last moment at which the
// reservation could have been made: more than any step of a clock.
const tombstoneFor = 3600_000

// Run is the row "release".
func (o Release) Run(s *Shard) Reply {
	r, ok := s.Records[o.ID]
	if !ok {
		if o.NotAfter == 0 || !s.Exists {
			return Reply{"not_found"}
		}
		s.touch()
		s.Records[o.ID] = &Record{
			State: Tombstone, Deadline: max(o.NotAfter, s.Time) + tombstoneFor,
			Created: s.Clock, Changed: s.Clock, Cause: plain(o.Cause), Version: s.Version,
		}
		return Reply{"ok", "tombstone"}
	}
	switch r.State {
	case Confirmed:
		return Reply{"conflict", "confirmed"}
	case Released, Tombstone:
		return Reply{"ok", string(r.State)}
	}
	if r.State == Held && r.Mode == offer && o.Word != "operator" && o.Word != "force" {
		return Reply{"conflict", r.standsAs()}
	}
	wasSent := r.Mode != queued && (r.Cause == "sent" || s.Queue.Orders[o.ID].Sent)
	if o.Word == "unheard" && (r.State != Held || wasSent) {
		return Reply{"conflict", string(r.State)} // another edge may have sent it
	}
	if left := s.tooSoon(r); r.State != Expired && (o.Word == "operator" || o.Word == "probe") && left > 0 {
		return Reply{"too_soon", left}
	}
	earlier, most := s.earlier(r), int64(-1)
	if r.State == Held { // a hold in doubt does not tell its margin
		most = max(r.margin(), 0)
	}
	s.become(o.ID, Released, o.Cause)
	if earlier != "" && o.Word != "force" {
		s.holdAgain(o.ID+"+", earlier, most)
	}
	return Reply{"ok", "released"}
}

// Doubt says that it is not known whether the shop took the order.
type Doubt struct{ ID, Cause string }

// Run changes only held reservations.
func (o Doubt) Run(s *Shard) Reply {
	r := s.find(o.ID)
	if r == nil {
		return Reply{"not_found"}
	}
	if r.Mode == offer {
		return Reply{"conflict", r.standsAs()}
	}
	if r.State == Held {
		s.become(o.ID, InDoubt, o.Cause)
	}
	return Reply{"ok", string(r.State)}
}

// Expire ends overdue holds, the longest overdue first, and tombstones whose time
// is over; at most Most of each. Stepped: the caller has seen the shard's clock jump
// ahead of its own.
type Expire struct {
	Most    int
	Stepped bool
}

// Run is the row "deadline".
func (o Expire) Run(s *Shard) Reply {
	if s.Latest == 0 {
		return Reply{"ok", int64(0), int64(0)}
	}
	o.lead(s)
	due := s.over(Held, s.Now(), o.Most)
	var ended, putOff int64
	for _, id := range due {
		r := s.Records[id]
		ends := r.Exp + r.margin()
		switch {
		case r.Mode == queued:
			s.become(id, Released, "waited too long")
			ended++
		case r.Mode == offer:
			s.become(id, Released, "lapsed")
			ended++
		case r.Mode != "backend":
			s.become(id, InDoubt, "deadline")
			ended++
		case ends <= s.sure():
			s.become(id, Expired, "deadline")
			ended++
		case ends+s.Lead > r.Deadline: // the shop may still take the token
			s.putOff(id, ends+s.Lead, r.Exp, "token")
			putOff++
		}
	}
	graves := s.over(Tombstone, s.sure(), o.Most)
	for _, id := range graves {
		delete(s.Records, id)
		s.touch()
	}
	more := int64(0)
	if len(due) == o.Most && ended+putOff > 0 || len(graves) == o.Most {
		more = 1
	}
	return Reply{"ok", ended, more}
}

// lead ends the lead where no hold is left, and takes off it what Time has stepped forward.
func (o Expire) lead(s *Shard) {
	held, holds := false, false
	for _, r := range s.Records {
		held = held || r.State == Held
		holds = holds || r.State == Held || r.State == InDoubt
	}
	ahead := s.Time + s.Lead - s.Now()
	switch {
	case !holds && s.Lead != 0:
		s.moveTimes(s.Now() - s.Time)
		s.lead(0)
		s.Clock = s.Time
	case holds && o.Stepped && ahead > tolerance:
		s.lead(s.Lead - ahead)
		s.touch()
	}
	if s.Now()-s.Clock >= storedEvery && held {
		s.touch()
	}
}

// storedEvery is how often the clock is stored while anything is held.
const storedEvery = 1000

// over lists what is in a state and past its deadline.
func (s *Shard) over(state State, now int64, most int) []string {
	var ids []string
	for id, r := range s.Records {
		if r.State == state && r.Deadline <= now {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Records[a].Deadline, s.Records[b].Deadline), cmp.Compare(a, b))
	})
	return ids[:min(len(ids), most)]
}
