package model_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/test/model"
)

// sold is a shard in which one unit of three is in each of three columns.
func sold(t *testing.T) *model.Shard {
	t.Helper()
	s := model.New()
	s.Time = 1000
	ops := []model.Operation{
		model.Apply{Starts: 0, Ends: 2000, Deltas: []model.Delta{{Cell: "a", Units: 4}}},
		model.SetStatus{Status: "open"},
		reserve("held"), reserve("doubted"), reserve("sold"), reserve("returned"),
		model.Doubt{ID: "doubted"}, model.Confirm{ID: "sold"}, model.Release{ID: "returned", Word: "shop"},
	}
	for _, op := range ops {
		if reply := op.Run(s); reply[0] != "ok" {
			t.Fatalf("%+v answers %v", op, reply)
		}
		if err := s.Check(); err != nil {
			t.Fatalf("after %+v: %v", op, err)
		}
	}
	if c, ok := s.Cell("a"); !ok || c != (model.Cell{Stock: 4, Available: 1, Held: 1, InDoubt: 1, Confirmed: 1}) {
		t.Fatalf("the cell is %+v", c)
	}
	return s
}

func reserve(id string) model.Reserve {
	return model.Reserve{ID: id, Version: 2, NotAfter: 1000, HoldFor: 100, Lines: []model.Line{{Cell: "a", Units: 1}}}
}

// Check finds what is broken: without that, nothing that is held against the model
// proves anything.
func TestCheckFinds(t *testing.T) {
	tests := map[string]struct {
		breakIt func(*model.Shard)
		want    string
	}{
		"oversold":             {func(s *model.Shard) { s.Stock["a"] = 2 }, "oversold"},
		"units from nowhere":   {func(s *model.Shard) { s.Stock["a"]++ }, "the journal says"},
		"a lost reservation":   {func(s *model.Shard) { delete(s.Records, "held") }, "nowhere else"},
		"an unseen step":       {func(s *model.Shard) { s.Records["held"].State = model.Released }, "is released, the journal says \"held\""},
		"a state of its own":   {func(s *model.Shard) { s.Records["held"].State = "lent" }, "lent"},
		"a gap in the journal": {func(s *model.Shard) { s.Journal = append(s.Journal[:3:3], s.Journal[4:]...) }, "has the number 5"},
		"a step twice":         {func(s *model.Shard) { again(s, len(s.Journal)-1) }, "no way leads"},
		"a sale twice":         {func(s *model.Shard) { again(s, 0) }, "the journal says"},
		"a lost cell":          {func(s *model.Shard) { delete(s.Stock, "a") }, "is gone"},
		"time runs backwards":  {func(s *model.Shard) { s.Clock = 1 }, "backwards"},
		"a tombstone of a hold": {func(s *model.Shard) {
			s.Records["held"] = &model.Record{State: model.Tombstone}
		}, "tombstone"},
		"units lent out of nothing": {func(s *model.Shard) { s.Journal[3].Lines = []model.Line{{Cell: "a", Units: 9}} }, "oversold"},
		"a negative line":           {func(s *model.Shard) { s.Journal[3].Lines = []model.Line{{Cell: "a", Units: -1}} }, "-1 units"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sold(t)
			test.breakIt(s)
			if err := s.Check(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("check says %v, want %q", err, test.want)
			}
		})
	}
}

// again repeats an entry of the journal under the next number.
func again(s *model.Shard, i int) {
	e := s.Journal[i]
	e.Seq = int64(len(s.Journal) + 1)
	s.Journal = append(s.Journal, e)
}

// The clock of a shard never goes back, whatever the server's does.
func TestClock(t *testing.T) {
	s := sold(t)
	s.Time = 500
	if s.Now() != 1000 {
		t.Errorf("the clock went back to %d", s.Now())
	}
	s.Time = 1100
	if reply := (model.Expire{Most: 9}).Run(s); reply[1] != int64(1) || s.Records["held"].State != model.InDoubt {
		t.Errorf("expire answers %v", reply)
	}
}
