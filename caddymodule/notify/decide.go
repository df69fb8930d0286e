package notify

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/stockgate/stockgate/internal/store/notices"
)

// fact is what is so now, about one subject.
type fact struct {
	about string
	// state is compared with what was told; empty: the subject is as operators expect it.
	state string
	// level is a number that grows: it is told again when it has doubled. 0: it has none.
	level int64
	// over is the text of the end, when the fact is gone; empty: it has none, and is forgotten.
	over string
	// say returns what operators are told, by the state that they know; nil: nothing, it is noted only.
	say func(known string) *notices.Notice
}

// told is what operators know of a subject, as Redis keeps it.
type told struct {
	State string `json:"state"`
	Level int64  `json:"level,omitempty"`
	At    int64  `json:"at"` // ms
	// of its end
	Kind string `json:"kind,omitempty"`
	Sale string `json:"sale,omitempty"`
	Name string `json:"name,omitempty"` // of the state, in notices
	Over string `json:"over,omitempty"`
}

// change is one that operators are told, unless another edge was faster.
type change struct {
	about, from, to string
	notice          *notices.Notice
}

// decide compares facts with what was told. unknown reports whether it is not known now what is so about a subject;
// calm whether the end of one is certain.
func decide(known map[string]string, facts []fact, now time.Time, unknown func(about string) bool, calm func(about string) bool) []change {
	var all []change
	seen := make(map[string]bool, len(facts))
	for _, f := range facts {
		seen[f.about] = true
		was := readTold(known[f.about])
		if f.state == was.State && (f.level == 0 || f.level < 2*was.Level) {
			continue
		}
		notice := f.say(was.State)
		all = append(all, change{f.about, known[f.about], f.written(notice, &was, now), notice})
	}
	for _, about := range slices.Sorted(maps.Keys(known)) {
		if seen[about] || unknown(about) || !calm(about) {
			continue
		}
		was := readTold(known[about])
		all = append(all, change{about, known[about], "", was.end(now)})
	}
	return all
}

// written is what Redis keeps of a fact.
func (f *fact) written(notice *notices.Notice, was *told, now time.Time) string {
	if f.state == "" {
		return ""
	}
	t := told{State: f.state, Level: f.level, At: now.UnixMilli(), Over: f.over}
	if f.state == was.State {
		t.At = was.At // it goes on, and has grown
	}
	if notice != nil {
		t.Kind, t.Sale, t.Name = notice.Kind, notice.Sale, notice.State
	}
	raw, _ := json.Marshal(t)
	return string(raw)
}

func readTold(text string) (t told) {
	_ = json.Unmarshal([]byte(text), &t) // what no edge has written is no state
	return t
}

// end is what operators are told when it is over; nil: nothing.
func (t *told) end(now time.Time) *notices.Notice {
	if t.Over == "" {
		return nil
	}
	return &notices.Notice{Kind: t.Kind, Sale: t.Sale, State: t.Name, Ended: true, Text: after(t.Over, now.Sub(time.UnixMilli(t.At)))}
}

// after adds to the text of an end how long it took.
func after(text string, took time.Duration) string {
	if took < time.Second {
		return text
	}
	return text + " It took " + took.Round(time.Second).String() + "."
}
