package model

// Forget drops the records of reservations that ended long ago: Ended ms ago if they
// were released before their deadline, otherwise Overdue ms ago. Records that a ledger
// lacks are kept if it was heard of within Patience ms.
type Forget struct{ Ended, Overdue, Patience int64 }

// Run looks at all records.
func (o Forget) Run(s *Shard) Reply {
	if s.Latest == 0 {
		return Reply{"ok", "0", int64(0), int64(0)}
	}
	looked, dropped := int64(len(s.Records)), int64(0)
	for id, r := range s.Records {
		if !o.over(s, r) {
			continue
		}
		delete(s.Records, id)
		s.forgetEnd(id, r.Ref)
		s.Forgotten[id] = r.State
		s.ForgottenExp = max(s.ForgottenExp, r.Exp)
		dropped++
	}
	if dropped > 0 {
		s.touch()
	}
	return Reply{"ok", "0", looked, dropped}
}

func (o Forget) over(s *Shard, r *Record) bool {
	if r.State != Released && r.State != Expired {
		return false
	}
	age := o.Overdue
	if r.Changed < r.Deadline {
		age = o.Ended
	}
	if s.AckedAt != 0 && s.AckedAt+o.Patience > s.Now() && s.Acked < int64(len(s.Journal)) && r.Changed >= s.Journal[s.Acked].Time {
		return false
	}
	return max(r.Changed, r.Deadline, r.Exp)+age <= min(s.Now(), s.sure())
}

// Acknowledge says that a ledger has the journal up to an entry.
type Acknowledge struct{ Epoch, Seq int64 }

// Run never goes back.
func (o Acknowledge) Run(s *Shard) Reply {
	if !s.Exists || s.Epoch != o.Epoch {
		return Reply{"no_sale"}
	}
	if seq := int64(len(s.Journal)); o.Seq > seq {
		return Reply{"conflict", seq}
	}
	s.touch()
	s.Acked, s.AckedAt = max(s.Acked, o.Seq), s.Clock
	return Reply{"ok", s.Acked}
}
