package record

// Column says where units of a cell are. The four columns together make its stock.
type Column uint8

const (
	// NoColumn means that the state belongs to no reservation, so that there are no units.
	NoColumn Column = iota
	ColumnAvailable
	ColumnHeld
	ColumnInDoubt
	ColumnConfirmed
)

// Column is where the units of a reservation in this state are, as in `columns` of
// lua/states.lua. NoColumn: it is not a state of a reservation.
func (s State) Column() Column {
	switch s {
	case Held:
		return ColumnHeld
	case InDoubt:
		return ColumnInDoubt
	case Confirmed:
		return ColumnConfirmed
	case Released, Expired, Unbacked:
		return ColumnAvailable
	}
	return NoColumn
}

// Taken says that units in this column are not for sale: they belong to a reservation or an
// order, and the purchase limits count them.
func (c Column) Taken() bool { return c > ColumnAvailable }

// Units points to the cell's units in a column. The column must not be NoColumn.
func (c *Cell) Units(in Column) *int64 {
	return [...]*int64{ColumnAvailable: &c.Available, ColumnHeld: &c.Held, ColumnInDoubt: &c.InDoubt, ColumnConfirmed: &c.Confirmed}[in]
}
