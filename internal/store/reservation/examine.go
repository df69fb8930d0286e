package reservation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// ShardPart is a kind of value that a shard keeps under a name. lua/examine.lua has the same values.
type ShardPart string

// The parts of a shard.
const (
	PartCell       ShardPart = "cell"       // "stock available held in_doubt confirmed"
	PartLimit      ShardPart = "limit"      // "charged pending"
	PartRecord     ShardPart = "record"     // see lua/shard.lua
	PartBinding    ShardPart = "binding"    // a reservation's id
	PartAdjustment ShardPart = "adjustment" // "cell delta stock"
	PartReturn     ShardPart = "return"     // of "reservation|return id": "restock cell quantity …", a tab, what was answered
	PartUnpaid     ShardPart = "unpaid"     // "held t1 t2 …", see lua/unpaid.lua
	PartDeadlines  ShardPart = "deadlines"  // these four: ms
	PartInDoubt    ShardPart = "in_doubt"
	PartUnbacked   ShardPart = "unbacked"
	PartTombstones ShardPart = "tombstones"
)

// Parts are all parts of a shard.
var Parts = []ShardPart{
	PartRecord, PartCell, PartLimit, PartBinding, PartDeadlines, PartInDoubt, PartUnbacked, PartTombstones, PartAdjustment, PartReturn, PartUnpaid,
}

// Named is the name of one value in a shard.
type Named struct {
	Part ShardPart
	Name string
}

// KeyValue is what a shard has under a name; Found false: nothing.
type KeyValue struct {
	Text  string
	Found bool
}

// argument writes a value as lua/repair.lua reads it.
func (v KeyValue) argument() string {
	if !v.Found {
		return ""
	}
	return "=" + v.Text
}

// Examined is what a shard has under some names, all at one moment.
type Examined struct {
	// Epoch is the life of the shard, Seq the newest entry of its journal at that moment.
	Epoch, Seq int64
	// Now is Redis's own time, Ends the end of the sale.
	Now, Ends time.Time
	Values    []KeyValue
}

// MaxExamine bounds the values of one call of Examine or Repair, because all other calls
// wait for it.
const MaxExamine = 500

// Examine reads up to MaxExamine values of a sale at one moment. It fails with
// shard.ErrNoSale if Redis does not have the sale.
func (s *Store) Examine(ctx context.Context, sale string, names []Named) (*Examined, error) {
	if len(names) > MaxExamine {
		return nil, fmt.Errorf("%d names are examined at once, %d are the most", len(names), MaxExamine)
	}
	var ops []shard.Operation
	places := make([][]int, 0, len(Parts)) // of each operation's names
	for _, part := range Parts {
		args := []any{string(part), 0}
		var at []int
		for i, n := range names {
			if n.Part == part {
				args, at = append(args, n.Name), append(at, i)
			}
		}
		if len(at) > 0 {
			args[1] = len(at)
			ops, places = append(ops, shard.Op(lua.Examine, args...)), append(places, at)
		}
	}
	if len(ops) == 0 { // only the moment is asked for
		ops, places = []shard.Operation{shard.Op(lua.Examine, string(PartCell), 0)}, [][]int{nil}
	}
	replies, seq, err := s.shard.RunAt(ctx, sale, ops...)
	if err != nil {
		return nil, err
	}
	out := &Examined{
		Epoch: replies[0].Number(1), Seq: seq, Now: record.TimeOf(replies[0].Number(2)), Ends: record.TimeOf(replies[0].Number(3)), Values: make([]KeyValue, len(names)),
	}
	if out.Epoch == 0 {
		return nil, shard.ErrNoSale
	}
	for o, at := range places {
		for i, place := range at {
			if 4+i < len(replies[o]) { // a nil at the end is left out
				text, found := replies[o][4+i].(string)
				out.Values[place] = KeyValue{text, found}
			}
		}
	}
	return out, nil
}

// Scan reads some names and values of a part. It begins with cursor 0 and goes on with
// next; all have been read when next is 0 again. A value that changes meanwhile may be
// missing or come twice.
func (s *Store) Scan(ctx context.Context, sale string, part ShardPart, cursor uint64) (names []string, values []string, next uint64, err error) {
	page, next, err := s.shard.Data(sale).Scan(ctx, partKeys[part], cursor, "", MaxExamine)
	if err != nil {
		return nil, nil, 0, err
	}
	for i := 0; i+1 < len(page); i += 2 {
		names, values = append(names, page[i]), append(values, page[i+1])
	}
	return names, values, next, nil
}

// partKeys are the indexes of the parts among the keys of a shard.
var partKeys = map[ShardPart]int{
	PartCell: shard.CellsKey, PartLimit: shard.LimitsKey, PartRecord: shard.RecordsKey, PartDeadlines: shard.DeadlinesKey, PartInDoubt: shard.InDoubtKey, PartUnbacked: shard.UnbackedKey,
	PartTombstones: shard.TombstonesKey, PartAdjustment: shard.AdjustmentsKey, PartBinding: shard.BindingsKey, PartReturn: shard.ReturnsKey, PartUnpaid: shard.UnpaidKey,
}

// Repair sets one value to what it must be.
type Repair struct {
	Named
	// Found is what was examined, Wanted what it must be.
	Found, Wanted KeyValue
	// Why is a few words for the journal.
	Why string
	// Record is the record of the reservation concerned, if there is one: it goes into the
	// journal, so that edges learn what it binds.
	Record string
}

// ErrRepaired says that values of the sale were repaired since they were examined: examine
// them again.
var ErrRepaired = errors.New("something was repaired meanwhile")

// Repair repairs up to MaxExamine values that were examined at one moment. It reports for
// each whether it was repaired; one that changed since is left. Counters keep what was
// sold since. The same call again, or that of another process that examined the same
// values, changes nothing and fails with ErrRepaired. by names the run and the operator,
// for the journal.
func (s *Store) Repair(ctx context.Context, sale string, seen *Examined, by string, repairs []Repair) ([]bool, error) {
	args := make([]any, 0, 4+6*len(repairs))
	args = append(args, seen.Epoch, seen.Seq, by, len(repairs))
	for _, r := range repairs {
		args = append(args, string(r.Part), r.Name, r.Found.argument(), r.Wanted.argument(), r.Why, r.Record)
	}
	replies, err := s.shard.RunReplicated(ctx, sale, shard.Op(lua.Repair, args...))
	if err != nil {
		return nil, err
	}
	switch r := replies[0]; r.Code() {
	case lua.OK:
		done := make([]bool, len(repairs))
		for i := range done {
			done[i] = r.Number(1+i) == 1
		}
		return done, nil
	case lua.Conflict:
		return nil, fmt.Errorf("%w, in entry %s", ErrRepaired, strconv.FormatInt(r.Number(1), 10))
	default:
		return nil, shard.ErrNoSale
	}
}
