package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// cell is the stock of an item, in one region if it has any.
type cell struct {
	SKU, Region                       string
	Stock, Available, Held, Confirmed int64
	InDoubt                           int64 `json:"in_doubt"`
}

// saleStock is the stock of a sale as the admin endpoint shows it.
type saleStock struct {
	ID       string
	Status   string
	Items    []cell
	Balanced bool
	Unbacked int64
}

func (b saleStock) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s balanced=%t unbacked=%d", b.ID, b.Balanced, b.Unbacked)
	for _, c := range b.Items {
		fmt.Fprintf(&s, " [%s@%s stock %d = available %d + held %d + in_doubt %d + confirmed %d]",
			c.SKU, c.Region, c.Stock, c.Available, c.Held, c.InDoubt, c.Confirmed)
	}
	return s.String()
}

// record is a reservation as the admin endpoint shows it.
type redisRecord struct {
	ID, Sale, State, Cause string
	Lines                  []line
	Deadline               time.Time
	Exp                    time.Time `json:"token_expires"`
}

// line is an item and its units.
type line struct {
	SKU    string `json:"sku"`
	Qty    int64  `json:"qty"`
	Region string `json:"region,omitempty"`
}

// askAdmin sends a request to the admin endpoint and decodes the answer.
func (e *edge) askAdmin(method, path, body string, into any) (int, string) {
	e.t.Helper()
	request, err := http.NewRequest(method, "http://localhost/stockgate/"+path, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	if strings.HasPrefix(body, "{") {
		request.Header.Set("Content-Type", "application/json")
	}
	r, err := e.control.Do(request)
	if err != nil {
		e.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	if r.StatusCode == http.StatusOK && into != nil {
		if err := json.NewDecoder(bytes.NewReader(answer)).Decode(into); err != nil {
			e.t.Fatalf("%s %s: %v in %s", method, path, err, answer)
		}
	}
	return r.StatusCode, string(answer)
}

// must is askAdmin that must succeed.
func (e *edge) must(method, path, body string, into any) {
	e.t.Helper()
	if status, answer := e.askAdmin(method, path, body, into); status != http.StatusOK {
		e.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
}

// window is the part of a sale's file that makes it run now.
const window = "starts_at: 2020-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\n"

// sell loads and opens a sale that runs now and waits until this edge sells it.
// items are the lines of the file under `items:`.
func (e *edge) sell(id, items string) {
	e.t.Helper()
	e.apply(id, window+"items:\n"+items)
	e.must("POST", "sales/"+id+"/open", "", nil)
	e.untilSelling(id)
}

// apply loads a sale's file, without its id. It asks again while Redis is not there.
func (e *edge) apply(id, file string) {
	e.t.Helper()
	var status int
	var answer string
	eventuallyf(e.t, func() bool {
		status, answer = e.askAdmin("PUT", "sales/"+id, "id: "+id+"\n"+file, nil)
		return status != http.StatusServiceUnavailable
	}, func() string { return "the sale is applied: " + answer })
	if status != http.StatusOK {
		e.t.Fatalf("apply %s: %d %s", id, status, answer)
	}
}

// untilSelling waits until the edge has heard that a sale is open.
func (e *edge) untilSelling(id string) {
	e.t.Helper()
	sku := e.stock(id).Items[0].SKU
	eventually(e.t, "the edge sells "+id, func() bool {
		state := e.itemState(id, sku)
		return state != "" && state != "paused" && state != "not_started"
	})
}

// itemState is what stockgate_status says of an item; empty: it does not know.
func (e *edge) itemState(id, sku string) string {
	e.t.Helper()
	status, _, body := e.get("/sales/" + id + "/items/" + sku)
	if status != http.StatusOK {
		return ""
	}
	var answer struct{ State string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		e.t.Fatal(err)
	}
	return answer.State
}

func (e *edge) stock(id string) saleStock {
	e.t.Helper()
	var b saleStock
	e.must("GET", "sales/"+id, "", &b)
	return b
}

func (e *edge) record(id string) redisRecord {
	e.t.Helper()
	var r redisRecord
	e.must("GET", "reservations/"+id, "", &r)
	return r
}

// untilHeard waits until the edge has heard of the units of a sale that are free: its next buyer is not refused from
// memory. The status is read in Redis, and may be newer.
func (e *edge) untilHeard(id string) {
	e.t.Helper()
	if !e.heard {
		return
	}
	var sku, said string
	eventuallyf(e.t, func() bool {
		for _, c := range e.stock(id).Items {
			if c.Available == 0 {
				continue
			}
			sku = c.SKU
			if _, _, said = e.get("/e2e/heard?" + url.Values{"sale": {id}, "sku": {c.SKU}, "region": {c.Region}}.Encode()); said != "heard" {
				return false
			}
		}
		return true
	}, func() string { return fmt.Sprintf("the edge hears that units of %s are free: %s", sku, said) })
}

// untilState waits until a reservation is in a state, and the edge has heard of what that changes, and returns it.
func (e *edge) untilState(id, state string) redisRecord {
	e.t.Helper()
	var r redisRecord
	eventuallyf(e.t, func() bool {
		r = e.record(id)
		return r.State == state
	}, func() string {
		return fmt.Sprintf("reservation %s is %s, it should be %s (%s)", id, r.State, state, r.Cause)
	})
	e.untilHeard(r.Sale)
	return r
}

// mustState fails unless a reservation is in a state now.
func (e *edge) mustState(id, state, cause string) {
	e.t.Helper()
	if id == "" {
		e.t.Fatalf("no reservation was named, it should be %s", state)
	}
	if r := e.record(id); r.State != state || cause != "" && r.Cause != cause {
		e.t.Fatalf("reservation %s is %s (%s), it should be %s (%s)", id, r.State, r.Cause, state, cause)
	}
}

// holds lists the reservations of a sale in a state.
func (e *edge) holds(id, state string) []redisRecord {
	e.t.Helper()
	var list struct{ Holds []redisRecord }
	e.must("GET", "sales/"+id+"/holds?limit=1000&state="+state, "", &list)
	return list.Holds
}

// onlyHold waits until exactly one reservation of a sale is held, and returns its id.
func (e *edge) onlyHold(id string) string {
	e.t.Helper()
	var held []redisRecord
	eventually(e.t, "one reservation is held", func() bool {
		held = e.holds(id, "held")
		return len(held) == 1
	})
	return held[0].ID
}

// counts are the columns of one cell: available, held, in doubt, confirmed.
type counts [4]int64

// expect fails unless the only cell of a sale has these counts and the books balance.
func (e *edge) expect(id string, available, held, inDoubt, confirmed int64) {
	e.t.Helper()
	b := e.stock(id)
	want := counts{available, held, inDoubt, confirmed}
	if have := b.only(e.t); have != want || !b.Balanced {
		e.t.Fatalf("available, held, in doubt, confirmed are %v, should be %v: %v", have, want, b)
	}
}

// untilExpected is expect with patience, and waits until the edge has heard of it.
func (e *edge) untilExpected(id string, available, held, inDoubt, confirmed int64) {
	e.t.Helper()
	want := counts{available, held, inDoubt, confirmed}
	var b saleStock
	eventuallyf(e.t, func() bool {
		b = e.stock(id)
		return b.only(e.t) == want && b.Balanced
	}, func() string { return fmt.Sprintf("available, held, in doubt, confirmed become %v: %v", want, b) })
	e.untilHeard(id)
}

func (b saleStock) only(t *testing.T) counts {
	t.Helper()
	if len(b.Items) != 1 {
		t.Fatalf("the sale has not one cell: %v", b)
	}
	c := b.Items[0]
	return counts{c.Available, c.Held, c.InDoubt, c.Confirmed}
}
