package caddymodule_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/challenge"
	"github.com/stockgate/stockgate/internal/test/sitetest"
)

// askingSite has a gate that asks for a solution from its second attempt on, and one that
// only checks, which asks too.
func askingSite(shop, name, more string) string {
	const option = `
		challenge pow {
			above 1 1h
			bits 8 8
			cookie proof
		}`
	return `stockgate_guard
	@order path /api/order
	@check path /api/check
	stockgate_check @check {
		line {json.sku}` + option + `
	}
	respond @check 204
	stockgate @order ` + name + ` {
		sale {header.X-Sale}
		buyer {header.X-User-Id}
		line {json.sku}
		idempotency {header.Idempotency-Key}` + option + `
		` + more + `
	}
	reverse_proxy ` + shop
}

// challenged checks that an answer is a challenge, and returns its task.
func challenged(t *testing.T, a sitetest.Answer) string {
	t.Helper()
	a.Is(t, http.StatusForbidden, "challenge")
	var body struct{ Reason, Challenge string }
	if err := json.Unmarshal([]byte(a.Body), &body); err != nil {
		t.Fatalf("%v in %s", err, a.Body)
	}
	task := a.Header.Get("Stockgate-Challenge")
	if task == "" || body.Challenge != task || body.Reason != "challenge" || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v %s", a.Header, a.Body)
	}
	return task
}

func solve(t *testing.T, task string) string {
	t.Helper()
	solution, err := challenge.Solve(context.Background(), task)
	if err != nil {
		t.Fatal(err)
	}
	return solution
}

// TestGateAsksForWork checks that an attempt above the rate needs a solution, and that each
// solution serves one attempt, of its sale, at its gate.
func TestGateAsksForWork(t *testing.T) {
	shop := newBackend(t, created)
	s := openCaddyfile(t, askingSite(shop.addr(), "", ""))
	do[any](s, "PUT", "/stockgate/sales/none", moreSales["none"])
	do[any](s, "POST", "/stockgate/sales/none/open", "")
	s.refresh()
	s.send(order("X-User-Id", "u1")).Is(t, 201, "") // below the rate
	task := challenged(t, s.send(order("X-User-Id", "u2")))
	challenged(t, s.send(order("X-User-Id", "u3", "Challenge-Solution", task)))
	solution := solve(t, task)
	check := order("Challenge-Solution", solution)
	check.URL.Path = "/api/check"
	s.send(check).Is(t, 204, "") // below its own rate
	check = order("Challenge-Solution", solution)
	check.URL.Path = "/api/check"
	forCheck := solve(t, challenged(t, s.send(check)))
	check = order("Challenge-Solution", forCheck)
	check.URL.Path = "/api/check"
	s.send(check).Is(t, 204, "")
	challenged(t, s.send(order("X-User-Id", "u2", "X-Sale", "none", "Challenge-Solution", solution)))
	challenged(t, s.send(order("X-User-Id", "u2", "Challenge-Solution", forCheck)))
	challenged(t, s.send(order("X-User-Id", "u2", "Challenge-Solution", solution, "Challenge-Solution", solution)))
	s.send(order("X-User-Id", "u2", "Challenge-Solution", solution)).Is(t, 201, "")
	challenged(t, s.send(order("X-User-Id", "u3", "Challenge-Solution", solution)))
	s.send(order("X-User-Id", "u3", "Cookie", "a=b; proof="+solve(t, task))).Is(t, 201, "")
	challenged(t, s.send(order("X-User-Id", "u4", "Cookie", "a=b; proof="+solve(t, task), "Challenge-Solution", "x")))
	if orders := len(shop.take()); orders != 3 {
		t.Errorf("the shop got %d orders", orders)
	}
	// what was counted and spent survives a reload
	unused := solve(t, challenged(t, s.send(order("X-User-Id", "u5"))))
	if err := s.loadCaddyfile(askingSite(shop.addr(), "", "max_body 1KiB")); err != nil {
		t.Fatal(err)
	}
	s.refresh()
	challenged(t, s.send(order("X-User-Id", "u5", "Challenge-Solution", solution)))
	s.send(order("X-User-Id", "u5", "Challenge-Solution", unused)).Is(t, 201, "")
}

// TestChallengeComesFirst: Redis is not asked for an attempt without a solution, whatever
// key it has; and an operator who tries the gate is not asked.
func TestChallengeComesFirst(t *testing.T) {
	shop := newBackend(t, created)
	s := openCaddyfile(t, askingSite(shop.addr(), "main", ""))
	solution := ""
	for _, number := range []string{"1", "2"} {
		a := s.send(order("X-User-Id", "u1", "Idempotency-Key", number))
		if number == "2" {
			solution = solve(t, challenged(t, a))
		}
	}
	// the order of key 1 is there, and costs a solution too
	challenged(t, s.send(order("X-User-Id", "u1", "Idempotency-Key", "1")))
	again := s.send(order("X-User-Id", "u1", "Idempotency-Key", "1", "Challenge-Solution", solution))
	if again.Status != 201 || again.Header.Get("Stockgate-Replayed") != "true" {
		t.Errorf("%d %v", again.Status, again.Header)
	}
	if tried := s.tryAt(strings.ReplaceAll(savedOrder, "u42", "u9"), "--gate", "main"); strings.Contains(tried.Out, "challenge") || !strings.Contains(tried.Out, "u9") {
		t.Errorf("a dry run is asked for work: %s", tried.Out)
	}
	if orders := len(shop.take()); orders != 1 {
		t.Errorf("the shop got %d orders", orders)
	}
}

// TestChallengeInOwnWords is refused as the operator says.
func TestChallengeInOwnWords(t *testing.T) {
	s := openCaddyfile(t, askingSite("127.0.0.1:9", "", `refuse challenge 200 {"code":9,"task":"{challenge}"}`))
	s.send(order("X-User-Id", "u1"))
	a := s.send(order("X-User-Id", "u1"))
	a.Is(t, 200, "challenge")
	if want := `{"code":9,"task":"` + a.Header.Get("Stockgate-Challenge") + `"}`; a.Body != want || len(want) < 50 {
		t.Errorf("%s, want %s", a.Body, want)
	}
}

// TestFastChallenge: the wrapper asks as the gate does, and what either has counted or
// spent the other one has too.
func TestFastChallenge(t *testing.T) {
	s := openFast(t, "", askedSites+benchOut)
	s.sellOut()
	request := func(sku, solution string) string {
		return "GET /asked?sku=" + sku + " HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: u1\r\nchallenge-solution: " + solution + "\r\n\r\n"
	}
	s.raw(s.fast, request("out", ""), 1)
	answer, fast := s.same(request("out", "none"))
	if !fast || !strings.Contains(answer, "Stockgate-Refusal: challenge") {
		t.Fatalf("fast: %t\n%s", fast, answer)
	}
	task := func(sku string) string {
		_, task, _ := strings.Cut(s.raw(s.fast, request(sku, ""), 1), "Stockgate-Challenge: ")
		task, _, _ = strings.Cut(task, "\r\n")
		return task
	}
	is := func(addr, sku, solution, want string) {
		t.Helper()
		if a := s.raw(addr, request(sku, solution), 1); !strings.Contains(a, want) {
			t.Errorf("want %q:\n%s", want, a)
		}
	}
	// refused for something else by the wrapper, which has spent it for both
	for try := 1; ; try++ {
		s.sellOut()
		solution, before := solve(t, task("out")), s.fastAnswers()
		is(s.fast, "out", solution, "sold_out")
		if fast := s.fastAnswers() > before; fast || try == 20 {
			if !fast {
				t.Error("the wrapper never refuses what is sold out")
			}
			is(s.plain, "out", solution, "Stockgate-Refusal: challenge")
			is(s.fast, "out", solution, "Stockgate-Refusal: challenge")
			break
		}
	}
	// handed on to the gate, which spends it
	solution := solve(t, task("plain"))
	is(s.fast, "plain", solution, "418")
	is(s.fast, "plain", solution, "Stockgate-Refusal: challenge")
	solution = solve(t, task("plain"))
	is(s.plain, "plain", solution, "418")
	is(s.fast, "plain", solution, "Stockgate-Refusal: challenge")
}

// TestChallengeKnowsTheClient: a task is for the address that Caddy trusts, on either way.
func TestChallengeKnowsTheClient(t *testing.T) {
	s := openFast(t, "trusted_proxies static 127.0.0.0/8", askedSites)
	task := func(from string) string {
		answer, _ := s.same("GET /asked?sku=soon HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: u1\r\nX-Forwarded-For: " + from + "\r\n\r\n")
		_, task, _ := strings.Cut(answer, "Stockgate-Challenge: ")
		task, _, _ = strings.Cut(task, "\r\n")
		return task
	}
	task("192.0.2.1") // below the rate
	for range 3 {
		one, other := task("192.0.2.1"), task("192.0.2.2")
		six, neighbour, stranger := task("2001:db8::1"), task("2001:db8::ffff:2"), task("2001:db8:0:1::1")
		minute := func(task string) string { return strings.SplitN(task+"..", ".", 3)[1] }
		if one == "" || minute(one) != minute(stranger) {
			continue // a minute has passed
		}
		if one == other || six != neighbour || six == stranger || six == one {
			t.Errorf("%s %s, %s %s %s", one, other, six, neighbour, stranger)
		}
		return
	}
	t.Error("there are no tasks")
}

// askedSites have a gate that asks from its second attempt on, on either way.
const askedSites = `
SITEshop.example.comPORT {
	stockgate /asked asked {
		buyer {header.X-User-Id}
		line {query.sku}
		challenge pow {
			above 1 1h
			bits 8 8
		}
		FAST
	}
	respond 418
}
`
