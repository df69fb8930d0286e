package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

const (
	// atOnce is how many suspects are examined and repaired in one call.
	atOnce = 200
	// rounds bounds how often a value is repaired that differs again after its repair.
	rounds = 5
)

// resolve examines all suspects, reports what differs and repairs it.
func (r *run) resolve(ctx context.Context) error {
	if _, err := r.examine(ctx, nil); err != nil { // so that everything is compared with the end of the history
		return err
	}
	names := r.sorted()
	var again []reservation.Named
	reported := make(map[reservation.Named]*finding)
	for round := range rounds + 1 {
		if round > 0 {
			names, again = again, nil
		}
		if err := r.round(ctx, names, round == rounds, reported, &again); err != nil {
			return err
		}
		if len(again) == 0 {
			break
		}
	}
	r.oversold()
	return nil
}

// round goes through the suspects once. Values that were repaired, or that changed
// during their repair, are examined again.
func (r *run) round(ctx context.Context, names []reservation.Named, last bool, repaired map[reservation.Named]*finding, again *[]reservation.Named) error {
	var fields []string
	for _, n := range names {
		if n.Part == reservation.PartBinding {
			fields = append(fields, n.Name)
		}
	}
	r.history.wanted(fields)
	for part := range slices.Chunk(names, atOnce) {
		b, err := r.examine(ctx, part)
		if err != nil {
			return err
		}
		var wrong []*finding
		for _, n := range part {
			v := b.judge(n)
			was := repaired[n]
			switch {
			case v == nil && was != nil:
				was.Repaired = true
				r.report.add(was.Difference)
			case v == nil:
			case !r.Repair || !v.Repairable || last:
				r.report.add(v.Difference)
			default:
				wrong = append(wrong, v)
			}
		}
		if len(wrong) == 0 {
			continue
		}
		done, err := r.repair(ctx, b, wrong)
		if err != nil {
			return err
		}
		for i, v := range wrong {
			if done[i] && repaired[v.Named] == nil {
				repaired[v.Named] = v
			}
			*again = append(*again, v.Named)
		}
	}
	return nil
}

// examine reads values at one moment, and continues the history up to it. A record is
// read together with its tombstone entry, and one field of a ref with the other.
func (r *run) examine(ctx context.Context, names []reservation.Named) (*batch, error) {
	all := slices.Clone(names)
	for _, n := range names {
		switch n.Part {
		case reservation.PartRecord:
			all = append(all, reservation.Named{Part: reservation.PartTombstones, Name: n.Name})
		case reservation.PartTombstones:
			all = append(all, reservation.Named{Part: reservation.PartRecord, Name: n.Name})
		case reservation.PartBinding:
			if ref, ok := record.NamedField(n.Name); ok {
				other, others := (&record.ByName{Ref: ref}).Fields()
				if n.Name == other {
					other = others
				}
				all = append(all, reservation.Named{Part: n.Part, Name: other})
			}
		}
	}
	seen, err := r.store.Examine(ctx, r.sale, all)
	if err != nil {
		return nil, err
	}
	if seen.Epoch != r.history.epoch || seen.Seq < r.history.seq {
		return nil, r.broken("journal", fmt.Errorf("sale %s in redis has become another one while it was compared", r.sale))
	}
	if err := r.advance(ctx, seen.Seq); err != nil {
		return nil, err
	}
	r.report.Seq = seen.Seq
	b := &batch{run: r, seen: seen, values: make(map[reservation.Named]reservation.KeyValue, len(all))}
	for i, n := range all {
		b.values[n] = seen.Values[i]
	}
	return b, nil
}

// repair repairs values that were found wrong at one moment.
func (r *run) repair(ctx context.Context, b *batch, wrong []*finding) ([]bool, error) {
	repairs := make([]reservation.Repair, len(wrong))
	for i, v := range wrong {
		repairs[i] = v.Repair
	}
	done, err := r.store.Repair(ctx, r.sale, b.seen, strings.TrimSpace("reconcile "+r.report.Run+" "+r.By), repairs)
	if errors.Is(err, reservation.ErrRepaired) { // by another run: look again
		return make([]bool, len(wrong)), nil
	}
	return done, err
}

// oversold reports cells with more units held and sold than there are: no stock is invented.
func (r *run) oversold() {
	for name := range r.cellNames() {
		c, known := r.history.total(name)
		if known && c.Available < 0 {
			r.report.add(Difference{
				Kind: "oversold", Name: name,
				Text:  fmt.Sprintf("%d units of cell %s are held or sold beyond its stock: %s", -c.Available, name, cellText(c)),
				Cause: "its counters in redis were wrong, and it was sold by them",
				Repair: fmt.Sprintf("none: nothing more of it is sold until so many units have come back. Cancel orders, or add the units if you have them: `caddy stockgate stock add %s %s %d`",
					r.sale, name, -c.Available),
			})
		}
	}
}
