package model

import (
	"cmp"
	"slices"
)

// Probes is how far asking the shop about a reservation in doubt has come.
type Probes struct {
	// Tries is how often it was asked, Next when it may be asked again, Absent how
	// often it said after the deadline that it has no such order, Counted up to which try
	// that is counted, or must not count because the deadline was to come.
	Tries, Next, Absent, Counted int64
}

// Probe claims the reservations in doubt about which a gate is to ask now. It looks
// at Most of them from Offset on, the oldest first, and claims at most Claims; 0: all.
type Probe struct {
	Gate                                           string
	Most, Offset, Wait, Tries, LongestWait, Claims int64
}

// Run postpones what it claims, so that no other edge asks at the same time.
func (o Probe) Run(s *Shard) Reply {
	var ids []string
	for id, r := range s.Records {
		if r.State == InDoubt {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Records[a].Changed, s.Records[b].Changed), cmp.Compare(a, b))
	})
	ids = ids[min(o.Offset, int64(len(ids))):]
	reply := Reply{"ok", int64(0)}
	if int64(len(ids)) >= o.Most {
		ids = ids[:o.Most]
		reply[1] = o.Offset + o.Most
	}
	for i, id := range ids {
		if o.Claims > 0 && int64(len(reply)) >= 2+3*o.Claims {
			reply[1] = o.Offset + int64(i)
			break
		}
		r := s.Records[id]
		if r.Gate != o.Gate || r.Probes.Tries >= o.Tries || r.Probes.Next > s.Now() {
			continue
		}
		wait := o.LongestWait
		if r.Probes.Tries < 40 {
			wait = min(o.Wait<<r.Probes.Tries, wait)
		}
		s.touch()
		r.Probes.Tries++
		if s.tooSoon(r) > 0 {
			r.Probes.Counted = r.Probes.Tries
		}
		r.Probes.Next = s.Now() + wait
		reply = append(reply, id, r.Ref, r.Deadline-s.Lead)
	}
	return reply
}

// Probed is what the shop said: present, absent or unknown.
type Probed struct{ ID, Verdict, Cause string }

// Run accepts "present" at once, and "absent" the second time that the shop was asked
// after the deadline: one answer reported twice counts once.
func (o Probed) Run(s *Shard) Reply {
	r := s.find(o.ID)
	if r == nil {
		return Reply{"not_found"}
	}
	switch {
	case o.Verdict == "present":
		return Confirm{ID: o.ID, Word: "probe", Cause: o.Cause}.Run(s)
	case o.Verdict == "absent" && r.State == InDoubt && s.tooSoon(r) == 0 && r.Probes.Tries > r.Probes.Counted:
		s.touch()
		r.Probes.Counted = r.Probes.Tries
		if r.Probes.Absent++; r.Probes.Absent >= 2 {
			return Release{ID: o.ID, Word: "probe", Cause: o.Cause}.Run(s)
		}
	}
	return Reply{"ok", string(r.State)}
}
