package gate_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
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

// TestGateAsksForWork checks that an attempt above the rate needs a solution, and that each
// solution serves one attempt, of its sale, at its gate.
func TestGateAsksForWork(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, askingSite(shop.Addr(), "", ""))
	sitetest.Do[any](s, "PUT", "/stockgate/sales/none", sitetest.MoreSales["none"])
	sitetest.Do[any](s, "POST", "/stockgate/sales/none/open", "")
	s.Refresh()
	s.Send(sitetest.NewOrder("X-User-Id", "u1")).Is(t, 201, "") // below the rate
	task := challenged(t, s.Send(sitetest.NewOrder("X-User-Id", "u2")))
	challenged(t, s.Send(sitetest.NewOrder("X-User-Id", "u3", "Challenge-Solution", task)))
	solution := sitetest.Solve(t, task)
	check := sitetest.NewOrder("Challenge-Solution", solution)
	check.URL.Path = "/api/check"
	s.Send(check).Is(t, 204, "") // below its own rate
	check = sitetest.NewOrder("Challenge-Solution", solution)
	check.URL.Path = "/api/check"
	forCheck := sitetest.Solve(t, challenged(t, s.Send(check)))
	check = sitetest.NewOrder("Challenge-Solution", forCheck)
	check.URL.Path = "/api/check"
	s.Send(check).Is(t, 204, "")
	challenged(t, s.Send(sitetest.NewOrder("X-User-Id", "u2", "X-Sale", "none", "Challenge-Solution", solution)))
	challenged(t, s.Send(sitetest.NewOrder("X-User-Id", "u2", "Challenge-Solution", forCheck)))
	challenged(t, s.Send(sitetest.NewOrder("X-User-Id", "u2", "Challenge-Solution", solution, "Challenge-Solution", solution)))
	s.Send(sitetest.NewOrder("X-User-Id", "u2", "Challenge-Solution", solution)).Is(t, 201, "")
	challenged(t, s.Send(sitetest.NewOrder("X-User-Id", "u3", "Challenge-Solution", solution)))
	s.Send(sitetest.NewOrder("X-User-Id", "u3", "Cookie", "a=b; proof="+sitetest.Solve(t, task))).Is(t, 201, "")
	challenged(t, s.Send(sitetest.NewOrder("X-User-Id", "u4", "Cookie", "a=b; proof="+sitetest.Solve(t, task), "Challenge-Solution", "x")))
	if orders := len(shop.Take()); orders != 3 {
		t.Errorf("the shop got %d orders", orders)
	}
	// what was counted and spent survives a reload
	unused := sitetest.Solve(t, challenged(t, s.Send(sitetest.NewOrder("X-User-Id", "u5"))))
	if err := s.LoadCaddyfile(askingSite(shop.Addr(), "", "max_body 1KiB")); err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	challenged(t, s.Send(sitetest.NewOrder("X-User-Id", "u5", "Challenge-Solution", solution)))
	s.Send(sitetest.NewOrder("X-User-Id", "u5", "Challenge-Solution", unused)).Is(t, 201, "")
}

// TestChallengeComesFirst: Redis is not asked for an attempt without a solution, whatever
// key it has; and an operator who tries the gate is not asked.
func TestChallengeComesFirst(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, askingSite(shop.Addr(), "main", ""))
	solution := ""
	for _, number := range []string{"1", "2"} {
		a := s.Send(sitetest.NewOrder("X-User-Id", "u1", "Idempotency-Key", number))
		if number == "2" {
			solution = sitetest.Solve(t, challenged(t, a))
		}
	}
	// the order of key 1 is there, and costs a solution too
	challenged(t, s.Send(sitetest.NewOrder("X-User-Id", "u1", "Idempotency-Key", "1")))
	again := s.Send(sitetest.NewOrder("X-User-Id", "u1", "Idempotency-Key", "1", "Challenge-Solution", solution))
	if again.Status != 201 || again.Header.Get("Stockgate-Replayed") != "true" {
		t.Errorf("%d %v", again.Status, again.Header)
	}
	if tried := s.TryAt(strings.ReplaceAll(sitetest.SavedOrder, "u42", "u9"), "--gate", "main"); strings.Contains(tried.Out, "challenge") || !strings.Contains(tried.Out, "u9") {
		t.Errorf("a dry run is asked for work: %s", tried.Out)
	}
	if orders := len(shop.Take()); orders != 1 {
		t.Errorf("the shop got %d orders", orders)
	}
}

// TestChallengeInOwnWords is refused as the operator says.
func TestChallengeInOwnWords(t *testing.T) {
	s := sitetest.OpenCaddyfile(t, askingSite("127.0.0.1:9", "", `refuse challenge 200 {"code":9,"task":"{challenge}"}`))
	s.Send(sitetest.NewOrder("X-User-Id", "u1"))
	a := s.Send(sitetest.NewOrder("X-User-Id", "u1"))
	a.Is(t, 200, "challenge")
	if want := `{"code":9,"task":"` + a.Header.Get("Stockgate-Challenge") + `"}`; a.Body != want || len(want) < 50 {
		t.Errorf("%s, want %s", a.Body, want)
	}
}

// TestFastChallenge: the wrapper asks as the gate does, and what either has counted or
// spent the other one has too.
func TestFastChallenge(t *testing.T) {
	s := sitetest.OpenFast(t, "", sitetest.AskedSites+sitetest.BenchOut)
	s.SellOut()
	request := func(sku, solution string) string {
		return "GET /asked?sku=" + sku + " HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: u1\r\nchallenge-solution: " + solution + "\r\n\r\n"
	}
	s.Raw(s.Fast, request("out", ""), 1)
	answer, fast := s.Same(request("out", "none"))
	if !fast || !strings.Contains(answer, "Stockgate-Refusal: challenge") {
		t.Fatalf("fast: %t\n%s", fast, answer)
	}
	task := func(sku string) string {
		_, task, _ := strings.Cut(s.Raw(s.Fast, request(sku, ""), 1), "Stockgate-Challenge: ")
		task, _, _ = strings.Cut(task, "\r\n")
		return task
	}
	is := func(addr, sku, solution, want string) {
		t.Helper()
		if a := s.Raw(addr, request(sku, solution), 1); !strings.Contains(a, want) {
			t.Errorf("want %q:\n%s", want, a)
		}
	}
	// refused for something else by the wrapper, which has spent it for both
	for try := 1; ; try++ {
		s.SellOut()
		solution, before := sitetest.Solve(t, task("out")), s.FastAnswers()
		is(s.Fast, "out", solution, "sold_out")
		if fast := s.FastAnswers() > before; fast || try == 20 {
			if !fast {
				t.Error("the wrapper never refuses what is sold out")
			}
			is(s.Plain, "out", solution, "Stockgate-Refusal: challenge")
			is(s.Fast, "out", solution, "Stockgate-Refusal: challenge")
			break
		}
	}
	// handed on to the gate, which spends it
	solution := sitetest.Solve(t, task("plain"))
	is(s.Fast, "plain", solution, "418")
	is(s.Fast, "plain", solution, "Stockgate-Refusal: challenge")
	solution = sitetest.Solve(t, task("plain"))
	is(s.Plain, "plain", solution, "418")
	is(s.Fast, "plain", solution, "Stockgate-Refusal: challenge")
}

// TestChallengeKnowsTheClient: a task is for the address that Caddy trusts, on either way.
func TestChallengeKnowsTheClient(t *testing.T) {
	s := sitetest.OpenFast(t, "trusted_proxies static 127.0.0.0/8", sitetest.AskedSites)
	task := func(from string) string {
		answer, _ := s.Same("GET /asked?sku=soon HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: u1\r\nX-Forwarded-For: " + from + "\r\n\r\n")
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
