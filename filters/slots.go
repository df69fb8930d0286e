package filters

import "sync/atomic"

// Slots bounds how many attempts are under way at a time. The zero value has no
// room.
type Slots struct {
	taken atomic.Int64
	most  int64
}

// NewSlots makes room for so many.
func NewSlots(most int) *Slots { return &Slots{most: int64(most)} }

// Take takes a slot if one is free. The caller must return it with Give.
func (s *Slots) Take() bool {
	if s.taken.Add(1) > s.most {
		s.taken.Add(-1)
		return false
	}
	return true
}

// Give gives a slot back.
func (s *Slots) Give() { s.taken.Add(-1) }

// Taken is the number of slots in use.
func (s *Slots) Taken() int { return int(s.taken.Load()) }

// Full says that there is no slot.
func (s *Slots) Full() bool { return s.taken.Load() >= s.most }
