package reservation

import (
	"context"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// Owed are the counters of unpaid holds that an attempt concerns, one for each identity,
// and their bounds. A hold is unpaid from when it is made until it is confirmed.
type Owed struct {
	// Fields are the counters: kind|identity hash. None: nothing is counted.
	Fields []string
	// AtOnce, Ended and Within are the bounds of the sale, see sale.Unpaid.
	AtOnce, Ended int64
	Within        time.Duration
}

// appendProfile appends what lua/reserve.lua takes of it in the profile.
func (o *Owed) appendProfile(b []byte) []byte {
	b = strconv.AppendInt(b, int64(len(o.Fields)), 10)
	if len(o.Fields) == 0 {
		return b
	}
	for _, n := range [...]int64{o.AtOnce, o.Ended, o.Within.Milliseconds()} {
		b = strconv.AppendInt(append(b, ':'), n, 10)
	}
	return b
}

// lapseAtOnce is about how many counters one script call reads.
const lapseAtOnce = 1000

// Lapse reads one part of a sale's counters of unpaid holds, and drops those that count
// nothing any more. Begin with cursor "0", and go on with next until it is "0" again. It
// returns how many counters it dropped.
func (s *Store) Lapse(ctx context.Context, sale, cursor string, within time.Duration) (next string, dropped int, err error) {
	replies, err := s.shard.Run(ctx, sale, shard.Op(lua.Lapse, cursor, lapseAtOnce, within.Milliseconds()))
	if err != nil {
		return cursor, 0, err
	}
	return replies[0].Text(1), int(replies[0].Number(2)), nil
}
