package e2e_test

import (
	"context"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/challenge"
)

// asks makes a gate ask for work from its second attempt on.
const asks = "challenge pow {\nabove 1 1h\nbits 10 10\n}"

// solved is an order with the solution of the challenge that a result is.
func (r result) solved(t *testing.T, solve func(t *testing.T, task string) string) order {
	t.Helper()
	r.is(t, http.StatusForbidden, "challenge")
	o := r.order
	o.header = http.Header{"Challenge-Solution": {solve(t, r.header.Get("Stockgate-Challenge"))}}
	return o
}

func solveGo(t *testing.T, task string) string {
	t.Helper()
	solution, err := challenge.Solve(context.Background(), task)
	if err != nil {
		t.Fatal(err)
	}
	return solution
}

func solvePython(t *testing.T, task string) string {
	t.Helper()
	out, err := exec.Command("python3", "../examples/challenge/solve.py", task).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// Every edge takes solutions of what any of them has asked for, and each edge once.
func TestEdgesShareChallenges(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	first, second, _ := twoEdges(t, site{shop: serve(t, s), gate: asks})
	first.sell("flash", `  - {sku: "7", stock: 20}`)
	second.untilSelling("flash")
	first.buy(one("a", "7", 1, "")).is(t, http.StatusCreated, "")
	second.buy(one("b", "7", 1, "")).is(t, http.StatusCreated, "")
	for _, solve := range []func(*testing.T, string) string{solveGo, solvePython} {
		o := first.buy(one("c", "7", 1, "")).solved(t, solve)
		second.buy(o).is(t, http.StatusCreated, "")
		second.buy(o).is(t, http.StatusForbidden, "challenge")
		first.buy(o).is(t, http.StatusCreated, "")
		first.buy(o).is(t, http.StatusForbidden, "challenge")
	}
	if s.orders() != 6 {
		t.Errorf("the shop got %d orders, want 6", s.orders())
	}
}
