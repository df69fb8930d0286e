package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

const apiKey = "the-key-of-the-auditors-shop"

// backend is a gate whose shop says later what became of an order, through the shop's API.
func (a *attack) backend(hold string) rig.Site {
	port, err := rig.FreePort()
	a.must(err)
	a.api = append(a.api, fmt.Sprintf("http://127.0.0.1:%d/stockgate/reservations/", port))
	return rig.Site{
		Outcome: "outcome backend\n\t\thold_for " + hold,
		Others:  fmt.Sprintf("http://:%d {\n\tbind 127.0.0.1\n\thandle_path /stockgate/* {\n\t\tstockgate_api {\n\t\t\tkey %s\n\t\t}\n\t}\n}", port, apiKey),
	}
}

// says is what the shop tells the API about a reservation, and the answer: 0, no answer.
func (a *attack) says(id, operation, body string) (status int, reason string) {
	return a.saysAt(0, id, operation, body)
}

// saysAt is says at the API of an edge.
func (a *attack) saysAt(edge int, id, operation, body string) (status int, reason string) {
	r, err := http.NewRequest("POST", a.api[edge]+id+"/"+operation, strings.NewReader(body))
	a.must(err)
	r.Header.Set("Authorization", "Bearer "+apiKey)
	r.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: time.Minute}
	answer, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	var problem struct{ Reason, State string }
	json.Unmarshal(text, &problem)
	return answer.StatusCode, problem.Reason + problem.State
}

// reserve buys units and returns the reservation, which the shop has not sold yet.
func (a *attack) reserve(buyer, sku string) string {
	heard := a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: buyer, Lines: crowd.Units(sku, 1)})
	if heard.Reservation == "" {
		a.must(fmt.Errorf("no reservation: %v", heard))
	}
	return heard.Reservation
}

// state is the state of a reservation in Redis.
func (a *attack) state(r *rig.Redis, sale, id string) string {
	record, err := r.Do("HGET", rig.Key(sale, "records"), id)
	a.must(err)
	text, _ := record.(string)
	state, _, _ := strings.Cut(text, "\t")
	return state
}

var releaseThenConfirm = scenario{
	name: "release-then-confirm", short: true,
	about: "The shop releases a hold that is held, expired or sold to another buyer, and then confirms it: what it has released once is never sold",
	run: func(a *attack) {
		a.stage(1, a.backend("3s"))
		a.shop.Later = true
		a.h.ByOperators = true
		n := a.size(6, 60)
		a.sell("release", one(int64(n)), "")
		var ids []string
		for i := range n {
			ids = append(ids, a.reserve(fmt.Sprintf("b%d", i), "7"))
		}
		for i, id := range ids {
			if i%3 > 0 {
				a.until("the hold has expired", func() bool { return a.state(a.redis, "release", id) == "expired" })
			}
			released, why := a.says(id, "release", "{}")
			if released != 200 {
				a.must(fmt.Errorf("release: %d %s", released, why))
			}
			if i%3 == 2 {
				a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: fmt.Sprintf("next%d", i), Lines: crowd.Units("7", 1)})
			}
			if confirmed, _ := a.says(id, "confirm", "{}"); confirmed == 200 {
				a.count("released and sold", 1)
				if a.counts["released and sold"] == 1 {
					a.violated(auditor.OneState, "the shop released a hold that was %s (200), then confirmed it: 200", []string{"held", "expired", "expired"}[i%3])
				}
			}
		}
		a.settle()
	},
}
