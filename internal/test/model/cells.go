package model

// Cell says where a cell's units are.
type Cell struct{ Stock, Available, Held, InDoubt, Confirmed int64 }

// Cell returns a cell; false: there is none.
func (s *Shard) Cell(name string) (Cell, bool) {
	stock, ok := s.Stock[name]
	c := Cell{Stock: stock}
	for _, r := range s.Records {
		for _, line := range r.Lines {
			if line.Cell != name {
				continue
			}
			switch r.State {
			case Held:
				c.Held += line.Units
			case InDoubt:
				c.InDoubt += line.Units
			case Confirmed:
				c.Confirmed += line.Units
			}
		}
		c.Confirmed -= units(r.Returned, name)
	}
	c.Available = c.Stock - c.Held - c.InDoubt - c.Confirmed
	return c, ok
}

// Counter is what a purchase limit has counted: all that is held or sold, and the
// part of it that is still pending.
type Counter struct{ Charged, Pending int64 }

// Counter returns the counter of one limit, window and identity.
func (s *Shard) Counter(field string) Counter {
	var c Counter
	for _, r := range s.Records {
		for _, charge := range r.Charges {
			if charge.Field != field {
				continue
			}
			switch r.State {
			case Held, InDoubt:
				c.Pending += charge.Amount
				c.Charged += charge.Amount
			case Confirmed:
				c.Charged += charge.Amount
			}
		}
	}
	return c
}

// short says which of several lines cannot be had, counting equal cells together;
// -1: all can.
func (s *Shard) short(lines []Line, free func(Cell) int64) (int, Cell) {
	asked := map[string]int64{}
	for i, line := range lines {
		c, ok := s.Cell(line.Cell)
		asked[line.Cell] += line.Units
		if !ok || free(c) < asked[line.Cell] {
			return i, c
		}
	}
	return -1, Cell{}
}

func available(c Cell) int64 { return c.Available }
