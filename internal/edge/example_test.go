package edge_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/reservation/embedded"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// A sale of two units, from its file to the last refusal, with a Redis in this process.
func Example() {
	server, err := embedded.Start()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	options := shard.Options{Timeout: 20 * time.Second}
	server.Connect(&options)
	store, err := reservation.Open(options)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	file, err := sale.Parse([]byte(`
id: launch
starts_at: 2020-01-01T00:00:00Z
ends_at: 2090-01-01T00:00:00Z
items:
  - {sku: "console", stock: 2}
`))
	if err != nil {
		panic(err)
	}
	if _, err := store.Apply(ctx, file, reservation.ApplyOptions{By: "example"}); err != nil {
		panic(err)
	}
	if err := store.SetStatus(ctx, "launch", sale.Open, "example"); err != nil {
		panic(err)
	}

	e := edge.New(store, edge.Options{Keys: []shard.SigningKey{{KID: "example", Seal: [32]byte{1}}}})
	e.Start()
	defer e.Stop(ctx)
	if err := e.Refresh(ctx); err != nil { // it knows the sale now
		panic(err)
	}
	listing, _ := e.Catalogue().Sale("launch")

	for _, buyer := range []string{"Ann", "Bob", "Eve"} {
		attempt := &sale.Attempt{Sale: "launch", Buyer: buyer, Lines: []sale.Line{{SKU: "console", Quantity: 1}}}
		lines, refusal := listing.Resolve(attempt)
		if refusal != nil {
			panic(refusal.Reason)
		}
		hold, refusal, err := e.Hold(ctx, "order of "+buyer, listing, attempt, lines, edge.HoldOptions{HoldFor: time.Minute, Margin: time.Second, Mode: record.ModeResponse})
		switch {
		case err != nil:
			panic(err)
		case refusal != nil:
			fmt.Println(buyer, "is refused:", refusal.Reason)
			continue
		}
		state, err := e.ConfirmEventually(ctx, "launch", hold.ID, "shop said 201")
		if err != nil {
			panic(err)
		}
		fmt.Println(buyer, "has", hold.Lines[0].Quantity, hold.Lines[0].SKU, state)
	}
	// Output:
	// Ann has 1 console confirmed
	// Bob has 1 console confirmed
	// Eve is refused: sold_out
}
