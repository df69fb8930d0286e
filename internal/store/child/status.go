package child

import "time"

const (
	// diskLow is so little that a store may stop within a sale.
	diskLow = 1 << 30
	// diskSoon is so soon that the disk may be full before an operator looks again.
	diskSoon = 24 * time.Hour
)

// Status is what a server does. What costs a question is as old as Options.LookEvery at most.
type Status struct {
	Dir string
	// Program is a path, Version such as redis 7.0.15.
	Program, Version string
	PID              int // 0: none runs
	// Up says that it answers, and has read its file.
	Up bool
	// Restarts is how often it ended by itself, and was started again. Why is what the last one ended with.
	Restarts int
	Why      string
	// Cut are the bytes that were cut off the end of the append-only file when a server read it.
	Cut int64
	// Files are the bytes of all files in Dir, and Free those that are left on its disk.
	Files, Free int64
	// Rewriting says that the server is making its append-only file smaller.
	Rewriting bool
	// Pace is by how many bytes a second the append-only file has grown in the last ten minutes, apart from
	// rewrites; -1: that is not known yet.
	Pace float64
	// Syncs are the last times that the disk took to sync a record.
	Syncs Syncs
}

// Lasts returns how long Free lasts at the present pace; false: the file does not grow, or its pace is not
// known yet.
func (s *Status) Lasts() (time.Duration, bool) {
	if s.Pace <= 0 {
		return 0, false
	}
	const longest = 100 * 365 * 24 * time.Hour
	return time.Duration(min(float64(s.Free)/s.Pace, longest.Seconds()) * float64(time.Second)), true
}

// IsShort reports whether the disk may be full within a sale or a day.
func (s *Status) IsShort() bool {
	lasts, growing := s.Lasts()
	return s.Free < diskLow || growing && lasts < diskSoon
}

// Status returns what the server does now.
func (s *Server) Status() Status {
	free, _ := diskFree(s.dir)
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.watched
	syncs := syncsOf(w.syncs)
	syncs.Count, syncs.Sum = w.synced.Count, w.synced.Sum
	return Status{
		Dir: s.dir, Program: s.program.path, Version: s.program.String(), PID: s.pid, Up: w.up, Restarts: s.restarts, Why: s.why, Cut: s.cut,
		Files: w.files, Free: free, Rewriting: w.rewriting, Pace: w.pace.perSecond(), Syncs: syncs,
	}
}
