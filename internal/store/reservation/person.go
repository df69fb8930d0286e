package reservation

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// MaxTraced bounds the values of a sale that Trace looks at: records, and counters of limits.
	MaxTraced = 1_000_000
	// MaxTracedRecords bounds the reservations that it finds.
	MaxTracedRecords = 1000
)

// HashedIdentity is an identity of a person: its kind, and its keyed hash.
type HashedIdentity struct{ Kind, Hash string }

// Trace is all that a sale has under the keyed hashes of a person.
type Trace struct {
	// Reservations are in the order of their ids.
	Reservations []Record        `json:"reservations"`
	Answers      []TracedAnswer  `json:"answers"`
	Counters     []TracedCounter `json:"counters"`
	// Shadow is how many counters of dry runs there are.
	Shadow int `json:"shadow"`
	// Partly: the sale has more values than Trace looks at, or more than MaxTracedRecords reservations of the person.
	Partly bool `json:"partly,omitempty"`
}

// Empty reports whether the sale has nothing of the person.
func (t *Trace) Empty() bool {
	return len(t.Reservations) == 0 && len(t.Answers) == 0 && len(t.Counters) == 0 && t.Shadow == 0
}

// TracedAnswer is an answer of the shop that is kept for a reservation.
type TracedAnswer struct {
	Reservation string `json:"reservation"`
	// Of is OfKey or OfQueue.
	Of    string    `json:"of"`
	Bytes int64     `json:"bytes"`
	Until time.Time `json:"until"`
}

// What keeps an answer.
const (
	OfKey   = "key" // an idempotency key
	OfQueue = "queue"
)

// TracedCounter counts for an identity: of a purchase limit, or of unpaid holds.
type TracedCounter struct {
	// Kind is the kind of the identity.
	Kind string `json:"kind"`
	// Limit is the limit as Redis names it; empty: unpaid holds.
	Limit string `json:"limit,omitempty"`
	// Units are what is charged, or how many holds are not paid.
	Units int64 `json:"units"`
	// Ends is when a limit starts over; zero: it does not, or it is of unpaid holds.
	Ends time.Time `json:"ends,omitzero"`
}

// TraceSize is how many values Trace looks at.
func (s *Store) TraceSize(ctx context.Context, sale string) (int64, error) {
	records, err := s.shard.Data(sale).Length(ctx, shard.RecordsKey)
	if err != nil {
		return 0, err
	}
	limits, err := s.shard.Data(sale).Length(ctx, shard.LimitsKey)
	return records + limits, err
}

// Trace finds all that a sale has of a person. Of a sale with more than MaxTraced values it finds nothing. What changes
// meanwhile may be missing.
func (s *Store) Trace(ctx context.Context, sale string, who []HashedIdentity) (*Trace, error) {
	found := &Trace{Reservations: []Record{}, Answers: []TracedAnswer{}, Counters: []TracedCounter{}}
	if size, err := s.TraceSize(ctx, sale); err != nil || size > MaxTraced {
		found.Partly = true
		return found, err
	}
	t := tracer{found, s, sale, who}
	for _, find := range []func(context.Context) error{t.reservations, t.answers, t.counters, t.shadow} {
		if err := find(ctx); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// tracer fills a Trace.
type tracer struct {
	*Trace
	store *Store
	sale  string
	who   []HashedIdentity
}

// traces reports whether a reservation is of a person: its buyer, or what it is charged to.
func traces(r *record.Record, who []HashedIdentity) bool {
	charges, unpaid := strings.Fields(r.Charges), strings.Fields(r.Unpaid)
	return slices.ContainsFunc(who, func(h HashedIdentity) bool {
		return h.Kind == "buyer" && r.Buyer == h.Hash || slices.Contains(unpaid, h.Kind+"|"+h.Hash) ||
			slices.ContainsFunc(charges, func(word string) bool { return strings.HasSuffix(word, "|"+h.Hash) })
	})
}

func (t tracer) reservations(ctx context.Context) error {
	var ids []string
	err := t.store.shard.Data(t.sale).Each(ctx, shard.RecordsKey, "", MaxExamine, func(id, text string) error {
		if r, _ := record.Parse(text); r != nil && traces(r, t.who) {
			ids = append(ids, id)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if t.Partly = len(ids) > MaxTracedRecords; t.Partly {
		ids = ids[:MaxTracedRecords]
	}
	for part := range slices.Chunk(ids, MaxExamine) {
		found, err := t.store.records(ctx, t.sale, part)
		if err != nil {
			return err
		}
		t.Reservations = append(t.Reservations, found...)
	}
	return nil
}

func (t tracer) answers(ctx context.Context) error {
	for part := range slices.Chunk(t.Reservations, MaxExamine) {
		ids := make([]string, len(part))
		for i := range part {
			ids[i] = part[i].ID
		}
		keyed, queued, err := t.store.shard.KeptAnswers(ctx, t.sale, ids)
		if err != nil {
			return err
		}
		for i, id := range ids {
			t.addAnswer(id, OfKey, keyed[i])
			t.addAnswer(id, OfQueue, queued[i])
		}
	}
	return nil
}

func (t tracer) addAnswer(id, of string, a shard.KeptAnswer) {
	if a.Bytes > 0 {
		t.Answers = append(t.Answers, TracedAnswer{id, of, a.Bytes, time.Now().Add(a.For).UTC().Truncate(time.Second)})
	}
}

func (t tracer) counters(ctx context.Context) error {
	data, seen := t.store.shard.Data(t.sale), make(map[string]bool)
	for _, h := range t.who {
		err := data.Each(ctx, shard.LimitsKey, "*|"+h.Hash, MaxExamine, func(field, value string) error {
			if !seen[field] {
				limit, rest, _ := strings.Cut(field, "|")
				window, _, _ := strings.Cut(rest, "|")
				ends, _ := strconv.ParseInt(window, 10, 64) // a window without end has -
				t.Counters = append(t.Counters, TracedCounter{h.Kind, limit, firstNumber(value), record.TimeOf(ends)})
			}
			seen[field] = true
			return nil
		})
		if err != nil {
			return err
		}
		unpaid, err := data.Values(ctx, shard.UnpaidKey, h.Kind+"|"+h.Hash)
		if err != nil {
			return err
		}
		if unpaid.Has(0) {
			t.Counters = append(t.Counters, TracedCounter{Kind: h.Kind, Units: firstNumber(unpaid.Text(0))})
		}
	}
	return nil
}

func (t tracer) shadow(ctx context.Context) error {
	for _, h := range t.who {
		for _, pattern := range []string{"l|*|" + h.Hash, "o|" + h.Hash + "|*"} {
			n, err := t.store.shard.ShadowNames(ctx, t.sale, pattern)
			if err != nil {
				return err
			}
			t.Shadow += n
		}
	}
	return nil
}

// firstNumber is the number with which a counter begins.
func firstNumber(value string) int64 {
	first, _, _ := strings.Cut(value, " ")
	n, _ := strconv.ParseInt(first, 10, 64)
	return n
}

// DropAnswer drops the answer that a sale keeps for a reservation. A retry under its idempotency key then hears
// that the order was made already.
func (s *Store) DropAnswer(ctx context.Context, sale, id string) (bool, error) {
	return s.shard.DropAnswer(ctx, sale, id)
}
