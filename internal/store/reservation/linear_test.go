package reservation_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/draw"
	"github.com/stockgate/stockgate/internal/test/model"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// asked is one call in a history: operations, a step of the clock (ms), or, with
// neither, a look at all that Redis has.
type asked struct {
	ops   []model.Operation
	clock int64
}

// answered is the result of a call. Nil replies: it is unknown, the answer was lost.
type answered struct {
	replies []model.Reply
	seq     int64 // of the journal; 0: not told
	all     *stocktest.Raw
}

// linear is the model as porcupine takes it: whatever was answered, there must be
// one order of all calls, each between its beginning and its end, in which the
// model answers the same.
var linear = porcupine.Model{
	Init: func() any { return loaded() },
	Step: func(state, input, output any) (bool, any) {
		in, out := input.(asked), output.(answered)
		if out.all != nil {
			return out.all.Differs(stocktest.Expected(state.(*model.Shard), 0)) == nil, state
		}
		s := state.(*model.Shard).Clone()
		if in.clock != 0 {
			s.Time = in.clock
			return true, s
		}
		s.Begin()
		for i, op := range in.ops {
			reply := op.Run(s)
			if out.replies != nil && !reflect.DeepEqual(reply, out.replies[i]) {
				return false, nil
			}
		}
		return out.seq == 0 || out.seq == int64(len(s.Journal)), s
	},
	Equal: func(a, b any) bool { return reflect.DeepEqual(a, b) },
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%+v → %v at %d", input.(asked).ops, output.(answered).replies, output.(answered).seq)
	},
}

// loading opens a sale of three units.
var loading = []model.Operation{
	model.Apply{Starts: noon, Ends: forever, Deltas: []model.Delta{{Cell: "a", Units: 3}}}, model.SetStatus{Status: "open"},
}

func loaded() *model.Shard {
	s := model.New()
	s.Time = noon
	for _, op := range loading {
		op.Run(s)
	}
	return s
}

// history collects what several clients did. Its time counts beginnings and ends.
type history struct {
	now atomic.Int64
	mu  sync.Mutex
	all []porcupine.Operation
}

// lost is the end of a call whose answer was lost: it may take effect at any time, or
// never.
const lost = math.MaxInt64

// client records one call of a client.
func (h *history) client(id int, in asked, call func() answered) {
	begin := h.now.Add(1)
	out := call()
	end := h.now.Add(1)
	if len(in.ops) > 0 && out.replies == nil {
		end = lost
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, porcupine.Operation{ClientId: id, Input: in, Call: begin, Output: out, Return: end})
}

// overlaps counts the calls that were under way together with another one, and
// those that were lost.
func (h *history) overlaps() (overlapping, unanswered int) {
	for i, a := range h.all {
		if a.Return == lost {
			unanswered++
		} else if slices.ContainsFunc(h.all[:i], func(b porcupine.Operation) bool {
			return b.Return != lost && a.Call < b.Return && b.Call < a.Return
		}) {
			overlapping++
		}
	}
	return overlapping, unanswered
}

// Edges, shops, operators and probes at work on the same few reservations at the
// same time, over connections that lose answers or deliver calls late: what they
// are told could have been told one after the other.
func TestHistoriesAreLinearizable(t *testing.T) {
	for _, on := range servers(t) {
		t.Run(on.name, func(t *testing.T) {
			overlaps, unknown := 0, 0
			on.setTime(noon)
			bad := []*bad{newBad(t, on), newBad(t, on)}
			good := []*reservation.Store{on.store, stocktest.OpenStore(t, on.options)}
			seed := draw.Seed(t)
			for n := range draw.Times(10, 200) {
				h := &history{}
				random := rand.New(rand.NewPCG(seed, uint64(n)))
				sale := fmt.Sprintf("linear%d", n)
				on.setTime(noon)
				if _, _, err := on.store.Call(stocktest.Soon(t), sale, wire(loading[0]), wire(loading[1])); err != nil {
					t.Fatal(err)
				}
				var clients sync.WaitGroup
				for i := range len(good) + len(bad) {
					calls := drawCalls(random, 10)
					clients.Go(func() {
						for k, in := range calls {
							if i < len(good) {
								h.client(i, in, func() answered { return on.do(t, good[i], sale, in) })
							} else {
								bad[i-len(good)].call(t, h, 10+i*len(calls)+k, on, sale, in)
							}
						}
					})
				}
				clients.Wait()
				for _, b := range bad {
					if err := b.proxy.WaitIdle(stocktest.Soon(t)); err != nil {
						t.Fatal(err)
					}
				}
				h.client(0, asked{}, func() answered { return answered{all: stocktest.Balanced(t, on.client, on.store, sale)} })
				a, b := h.overlaps()
				overlaps, unknown = overlaps+a, unknown+b
				if result := porcupine.CheckOperationsTimeout(linear, h.all, 10*time.Minute); result != porcupine.Ok {
					t.Fatalf("seed %d, history %d: %s\n%s", seed, n, result, h)
				}
			}
			t.Logf("%d calls overlapped others, %d were lost", overlaps, unknown)
			if overlaps == 0 || unknown == 0 {
				t.Error("the calls came one after the other, or none was lost: this proves nothing")
			}
		})
	}
}

// String shows a history as it began.
func (h *history) String() string {
	slices.SortFunc(h.all, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var b strings.Builder
	for _, op := range h.all {
		end := fmt.Sprint(op.Return)
		if op.Return == lost {
			end = "…"
		}
		fmt.Fprintf(&b, "%4d–%-4s client %d: %s\n", op.Call, end, op.ClientId, linear.DescribeOperation(op.Input, op.Output))
	}
	return b.String()
}
