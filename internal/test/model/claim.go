package model

import "strconv"

// Apply loads a sale, or what a new file changes in it.
type Apply struct {
	Version      int64
	Doc          string
	Starts, Ends int64
	Cause        string
	Deleted      int64 // epoch of the last sale under this id that was deleted
	Deltas       []Delta
}

// Delta is how a file changes one cell; Removed: it goes.
type Delta struct {
	Cell    string
	Units   int64
	Removed bool
}

// entryCells is how many cells one journal entry names at most.
const entryCells = 500

// Run is all or nothing.
func (o Apply) Run(s *Shard) Reply {
	if o.Version != s.Version {
		return Reply{"version", s.Version}
	}
	for i, d := range o.Deltas {
		c, _ := s.Cell(d.Cell)
		at := int64(i + 1)
		switch {
		case c.Available+d.Units < 0:
			return Reply{"short", at, c.Available}
		case c.Stock+d.Units > MaxUnits:
			return Reply{"too_many", at, c.Stock}
		case d.Removed && c.Stock+d.Units != 0:
			return Reply{"in_use", at, c.Stock, c.Stock - c.Available}
		}
	}
	if !s.Exists {
		s.Exists, s.Epoch, s.Deleted = true, max(s.Now(), o.Deleted+1), o.Deleted
	}
	s.Version++
	version := strconv.FormatInt(s.Version, 10)
	var loaded []Line
	for _, d := range o.Deltas {
		s.Stock[d.Cell] += d.Units
		if d.Removed {
			delete(s.Stock, d.Cell)
		}
		if d.Units != 0 {
			loaded = append(loaded, Line{d.Cell, d.Units})
		}
	}
	for len(loaded) > 0 {
		n := min(len(loaded), entryCells)
		s.write("loaded", version, loaded[:n], "", o.Cause)
		loaded = loaded[n:]
	}
	s.Starts, s.Ends, s.Doc = o.Starts, o.Ends, o.Doc
	s.write("applied", version, nil, "", o.Cause)
	if s.Status == "paused" {
		s.offersFollow(o.Cause)
	}
	return Reply{"ok", s.Version}
}

// SetStatus opens, pauses or closes a sale.
type SetStatus struct{ Status, Cause string }

// Run follows draft → open ⇄ paused → closed.
func (o SetStatus) Run(s *Shard) Reply {
	if !s.Exists {
		return Reply{"no_sale"}
	}
	if s.Status == o.Status {
		return Reply{"ok", s.Version}
	}
	switch s.Status + " " + o.Status {
	case "draft open", "paused open", "open paused", "draft closed", "open closed", "paused closed":
	default:
		return Reply{"conflict", s.Status}
	}
	s.Status = o.Status
	s.Version++
	s.write(o.Status, strconv.FormatInt(s.Version, 10), nil, "", o.Cause)
	s.offersFollow(o.Cause)
	return Reply{"ok", s.Version}
}

// Adjust adds units to a cell or takes available ones away.
type Adjust struct {
	ID, Cell string
	Delta    int64
	Cause    string
}

// Run happens once for each id.
func (o Adjust) Run(s *Shard) Reply {
	if !s.Exists {
		return Reply{"no_sale"}
	}
	if made, ok := s.Adjustments[o.ID]; ok {
		if made.Cell != o.Cell || made.Delta != o.Delta {
			return Reply{"key_reused"}
		}
		return Reply{"ok", made.Stock}
	}
	c, ok := s.Cell(o.Cell)
	switch {
	case !ok:
		return Reply{"unknown"}
	case c.Available+o.Delta < 0:
		return Reply{"short", c.Available}
	case c.Stock+o.Delta > MaxUnits:
		return Reply{"too_many", c.Stock}
	}
	s.Stock[o.Cell] += o.Delta
	s.Adjustments[o.ID] = Adjustment{o.Cell, o.Delta, s.Stock[o.Cell]}
	s.write("adjusted", o.ID, []Line{{o.Cell, o.Delta}}, "", o.Cause)
	return Reply{"ok", s.Stock[o.Cell]}
}

// Reserve holds stock for one attempt.
type Reserve struct {
	ID                                 string
	Version, NotAfter, HoldFor, Margin int64
	Mode, Buyer                        string
	// Guard names what the attempt binds, "k|…" or "d|…", Print what is asked under a
	// key, which stays bound for KeyTTL after the end; empty: nothing is bound.
	Guard, Print string
	KeyTTL       int64
	Ref, Gate    string
	Shared       bool // Ref names one order for all buyers
	Lines        []Line
	Limits       []Limit
	Unpaid       Owed
	// Waits says how the order waits; nil: it does not.
	Waits *Waits
	// Told: it was promised before a fence, and is told again. Only stock and bindings refuse it.
	Told bool

	accepts bool   // it is of a person who may have an offer: if its order may wait, it does
	back    []Line // what that gives back
}

// Limit is one purchase limit as it is for the attempt: at most Max in the window
// [From, To).
type Limit struct {
	Charge
	Max, From, To int64
}

// guard is what the attempt binds, and is bound by. One that is told again in mode backend may
// have been answered, and its buyer may have asked for the same again.
func (o Reserve) guard() string {
	if o.Told && o.Mode == "backend" {
		return keyOnly(o.Guard)
	}
	return o.Guard
}

// Run passes every check or charges nothing.
func (o Reserve) Run(s *Shard) Reply {
	latest := s.Latest
	s.Latest = Unbounded
	defer func() { s.Latest = latest }()
	return o.run(s)
}

// run is Run by the clock as it is.
func (o Reserve) run(s *Shard) Reply {
	if r, ok := s.Records[o.ID]; ok {
		if r.State == Tombstone {
			return Reply{"gone"}
		}
		return Reply{"ok", r.told(), r.Deadline - s.Lead, r.Exp, s.Epoch, r.Created}
	}
	if !s.Exists {
		return Reply{"no_sale"}
	}
	if bound := s.bound(o.guard(), o.Print, o.Ref, o.Shared, o.Buyer, o.Lines); bound != nil {
		return bound
	}
	switch {
	case s.Time > o.NotAfter:
		return Reply{"late"}
	case s.Version != o.Version && !o.Told:
		return Reply{"version", s.Version}
	}
	verdicts := []func(*Shard) Reply{o.window, o.limits, o.unpaid, o.stock}
	if o.Told {
		verdicts = verdicts[3:]
	}
	for _, verdict := range append(verdicts, o.turn) {
		refusal := verdict(s)
		if refusal != nil && refusal[0] == "all_held" {
			if turn := o.turn(s); turn != nil {
				refusal = turn
			}
		}
		if refusal != nil {
			return refusal
		}
	}
	holdFor, mode := o.HoldFor, o.Mode
	if o.waitsOn(s) {
		holdFor, mode = o.Waits.Longest, queued
	}
	now, own := s.Now(), s.Time
	if o.accepts {
		own = s.ownTime()
	}
	r := &Record{
		State: Held, Deadline: now + holdFor, Exp: own + holdFor - o.Margin, Created: own, Changed: now,
		Mode: mode, Buyer: o.Buyer, Version: o.Version, Lines: o.Lines,
		Guard: o.Guard, Print: o.Print, KeyTTL: o.KeyTTL, Ref: o.Ref, Gate: o.Gate,
		Unpaid: o.Unpaid.Fields,
	}
	for _, field := range o.Unpaid.Fields {
		s.setEnded(field, s.counting(field, o.Unpaid.Within))
	}
	for _, l := range o.Limits {
		r.Charges = append(r.Charges, l.Charge)
	}
	s.Records[o.ID] = r
	s.take(o.ID, Held)
	if guard := o.guard(); guard != "" {
		s.Bindings[guard] = o.ID
	}
	s.record(Entry{Kind: "held", ID: o.ID, Lines: o.Lines, Buyer: o.Buyer, Record: r.Text()})
	o.enter(s)
	return Reply{"ok", r.told(), r.Deadline - s.Lead, r.Exp, s.Epoch, r.Created}
}

func (o Reserve) window(s *Shard) Reply {
	now := s.Time
	switch {
	case s.Status == "closed":
		return Reply{"closed"}
	case now >= s.Ends:
		return Reply{"ended"}
	case s.Status == "draft":
		return Reply{"not_started", int64(0), now}
	case now < s.Starts:
		return Reply{"not_started", s.Starts, now}
	case s.Status == "paused":
		return Reply{"paused"}
	}
	return nil
}

func (o Reserve) limits(s *Shard) Reply {
	asked := map[string]int64{}
	for i, l := range o.Limits {
		if s.Time < l.From || s.Time >= l.To {
			return Reply{"window", s.Time}
		}
		asked[l.Field] += l.Amount
		c := s.Counter(l.Field)
		if c.Charged-c.Pending+asked[l.Field] > l.Max {
			return Reply{"limit", int64(i + 1)}
		}
		if c.Charged+asked[l.Field] > l.Max {
			return Reply{"pending", int64(i + 1)}
		}
	}
	return nil
}

// stock names the first line that can never be had, or else the first that cannot
// be had now.
func (o Reserve) stock(s *Shard) Reply {
	left := func(c Cell) int64 { return c.Stock - c.Confirmed }
	if i, c := s.short(o.Lines, left); i >= 0 {
		if _, ok := s.Cell(o.Lines[i].Cell); !ok {
			return Reply{"unknown", int64(i + 1)}
		}
		return Reply{"sold_out", int64(i + 1), c.Available, left(c), int64(len(s.Journal))}
	}
	if i, c := s.short(o.Lines, available); i >= 0 {
		return Reply{"all_held", int64(i + 1), c.Available, left(c), int64(len(s.Journal))}
	}
	return nil
}
