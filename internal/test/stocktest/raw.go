package stocktest

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/model"
	"github.com/stockgate/stockgate/lua"
)

// Raw is a shard as Redis has it, byte for byte.
type Raw struct {
	Meta, Cells, Limits, Records, adjustments map[string]string
	bindings, returns, Unpaid, waitlist       map[string]string
	deadlines, inDoubt, unbacked, Tombstones  map[string]int64
	Journal                                   []model.Entry
}

// ReadRaw reads a shard at one moment: edges may be working on it, if only to drop what is
// over. Of the journal it reads only what follows seen.
func ReadRaw(ctx context.Context, c redis.UniversalClient, keys []string, seen int) (*Raw, error) {
	r, err := readWith(ctx, c.TxPipeline(), keys, seen)
	if redis.HasErrorPrefix(err, "EXECABORT") { // its memory is full: it takes no transaction
		return readWith(ctx, c.Pipeline(), keys, seen)
	}
	return r, err
}

func readWith(ctx context.Context, pipe redis.Pipeliner, keys []string, seen int) (*Raw, error) {
	var hashes [9]*redis.MapStringStringCmd
	for i, place := range []int{0, 1, 2, 3, 8, 10, 11, 12, shard.WaitlistKey} {
		hashes[i] = pipe.HGetAll(ctx, keys[place])
	}
	var sets [4]*redis.ZSliceCmd
	for i := range sets {
		sets[i] = pipe.ZRangeWithScores(ctx, keys[4+i], 0, -1)
	}
	journal := pipe.XRange(ctx, keys[9], fmt.Sprintf("%d-0", seen+1), "+")
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	r := &Raw{
		Meta: hashes[0].Val(), Cells: hashes[1].Val(), Limits: hashes[2].Val(), Records: hashes[3].Val(), adjustments: hashes[4].Val(),
		bindings: hashes[5].Val(), returns: hashes[6].Val(), Unpaid: hashes[7].Val(), waitlist: hashes[8].Val(),
	}
	for i, set := range []*map[string]int64{&r.deadlines, &r.inDoubt, &r.unbacked, &r.Tombstones} {
		*set = map[string]int64{}
		for _, z := range sets[i].Val() {
			(*set)[z.Member.(string)] = int64(z.Score)
		}
	}
	for _, m := range journal.Val() {
		entries, err := parseEntry(m)
		if err != nil {
			return nil, err
		}
		r.Journal = append(r.Journal, entries...)
	}
	return r, nil
}

// parseEntry reads what one call has written to the journal.
func parseEntry(m redis.XMessage) ([]model.Entry, error) {
	unreadable := fmt.Errorf("the journal entry %s cannot be read: %v", m.ID, m.Values)
	text := func(name string) string { s, _ := m.Values[name].(string); return s }
	number, ok := strings.CutSuffix(m.ID, "-0")
	last, err := strconv.ParseInt(number, 10, 64)
	at, err2 := strconv.ParseInt(text("time"), 10, 64)
	if !ok || err != nil || err2 != nil || text("v") != "1" || len(m.Values) != 3 {
		return nil, unreadable
	}
	movements := strings.Split(text("movements"), "\n")
	entries := make([]model.Entry, len(movements))
	for i, movement := range movements {
		f := strings.SplitN(movement, "\t", 7)
		if len(f) != 7 {
			return nil, unreadable
		}
		lines, err := parseLines(f[3])
		if err != nil {
			return nil, err
		}
		entries[i] = model.Entry{
			Seq: last - int64(len(movements)-1-i), Kind: f[0], Time: at, ID: f[1], Was: model.State(f[2]), Lines: lines, Buyer: f[4], Cause: f[5], Record: f[6],
		}
	}
	return entries, nil
}

func parseLines(text string) ([]model.Line, error) {
	words := strings.Fields(text)
	var lines []model.Line
	for i := 0; i+1 < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i+1], 10, 64)
		if err != nil {
			return nil, err
		}
		lines = append(lines, model.Line{Cell: words[i], Units: n})
	}
	if len(words)%2 != 0 {
		return nil, fmt.Errorf("odd lines %q", text)
	}
	return lines, nil
}

// Expected is how the model's shard must look in Redis.
func Expected(s *model.Shard, seen int) *Raw {
	r := &Raw{
		Meta: map[string]string{}, Cells: map[string]string{}, Limits: map[string]string{}, Records: map[string]string{}, adjustments: map[string]string{},
		returns: map[string]string{}, Unpaid: map[string]string{}, waitlist: s.Waitlist.Fields(),
		deadlines: map[string]int64{}, inDoubt: map[string]int64{}, unbacked: map[string]int64{}, Tombstones: map[string]int64{},
	}
	if s.Exists {
		r.Meta = map[string]string{
			"epoch": strconv.FormatInt(s.Epoch, 10), "seq": strconv.Itoa(len(s.Journal)), "version": strconv.FormatInt(s.Version, 10),
			"status": s.Status, "starts": strconv.FormatInt(s.Starts, 10), "ends": strconv.FormatInt(s.Ends, 10),
			"clock": strconv.FormatInt(s.Clock, 10), "schema": strconv.Itoa(lua.SaleSchema), "doc": s.Doc,
		}
		if s.LeadKept {
			r.Meta["lead"] = strconv.FormatInt(s.Lead, 10)
		}
		if s.Queue.Kept {
			r.Meta["queue"] = "1"
		}
		if s.Waitlist.Kept {
			r.Meta["waitlist"], r.Meta["schema"] = "1", strconv.Itoa(lua.Schema)
		}
		if s.Deleted > 0 {
			r.Meta["deleted"] = strconv.FormatInt(s.Deleted, 10)
		}
		if s.ForgottenExp > 0 {
			r.Meta["forgotten"] = strconv.FormatInt(s.ForgottenExp, 10)
		}
		if s.AckedAt > 0 {
			r.Meta["acked"], r.Meta["acked_at"] = strconv.FormatInt(s.Acked, 10), strconv.FormatInt(s.AckedAt, 10)
		}
	}
	for name := range s.Stock {
		c, _ := s.Cell(name)
		r.Cells[name] = fmt.Sprintf("%d %d %d %d %d", c.Stock, c.Available, c.Held, c.InDoubt, c.Confirmed)
	}
	for id, a := range s.Adjustments {
		r.adjustments[id] = fmt.Sprintf("%s %d %d", a.Cell, a.Delta, a.Stock)
	}
	for id, rec := range s.Records {
		for _, c := range rec.Charges {
			if n := s.Counter(c.Field); n.Charged > 0 {
				r.Limits[c.Field] = fmt.Sprintf("%d %d", n.Charged, n.Pending)
			}
		}
		r.Records[id] = rec.Text()
		switch rec.State {
		case model.Held:
			r.deadlines[id] = rec.Deadline
		case model.InDoubt:
			r.inDoubt[id] = rec.Changed
		case model.Unbacked:
			r.unbacked[id] = rec.Changed
		case model.Tombstone:
			r.Tombstones[id] = rec.Deadline
		}
	}
	r.Journal = append(r.Journal, s.Journal[seen:]...) // nil where there is none, as ReadRaw has it
	for field, numbers := range s.Counters() {
		r.Unpaid[field] = strings.Trim(fmt.Sprint(numbers), "[]")
	}
	r.bindings = maps.Clone(s.Bindings)
	for name, ret := range s.Returns {
		restock := 0
		if ret.Restock {
			restock = 1
		}
		r.returns[name] = fmt.Sprintf("%d %s\t%s", restock, model.Words(ret.Units), model.Words(ret.Answer))
	}
	return r
}

// Differs names the first part in which two shards differ.
func (r *Raw) Differs(other *Raw) error {
	if reflect.DeepEqual(r, other) {
		return nil
	}
	a, b := reflect.ValueOf(*r), reflect.ValueOf(*other)
	for i := range a.NumField() {
		if a.Field(i).Len() == 0 && b.Field(i).Len() == 0 {
			continue
		}
		if x, y := fmt.Sprintf("%q", a.Field(i)), fmt.Sprintf("%q", b.Field(i)); x != y {
			return fmt.Errorf("%s:\n is     %s\n wanted %s", a.Type().Field(i).Name, x, y)
		}
	}
	return nil
}

// Balanced audits the shard of a sale in Redis.
func Balanced(t testing.TB, c redis.UniversalClient, s *reservation.Store, sale string) *Raw {
	t.Helper()
	r, err := ReadRaw(Soon(t), c, s.Shard().ShardKeys(sale), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Audit(r.Journal); err != nil {
		t.Errorf("the stock of sale %s: %v", sale, err)
	}
	return r
}

// Holds lists up to limit reservations of a sale that are in a state, the oldest first.
func Holds(ctx context.Context, s *reservation.Store, sale string, state record.State, limit int) ([]reservation.Record, error) {
	found, _, err := s.HoldsAfter(ctx, sale, reservation.HoldFilter{State: state}, "", limit)
	return found, err
}
