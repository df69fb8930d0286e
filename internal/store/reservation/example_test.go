package reservation_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/reservation/embedded"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// A store reserves and settles without an edge: each call is one atomic script, and the same
// id again gives the same answer.
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
	defer store.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	file, err := sale.Parse([]byte("id: launch\nstarts_at: 2020-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\nitems: [{sku: console, stock: 1}]\n"))
	if err != nil {
		panic(err)
	}
	if _, err := store.Apply(ctx, file, reservation.ApplyOptions{By: "example"}); err != nil {
		panic(err)
	}
	if err := store.SetStatus(ctx, "launch", sale.Open, "example"); err != nil {
		panic(err)
	}
	version, _, _, err := store.Journal().SaleDocument(ctx, "launch")
	if err != nil {
		panic(err)
	}

	for _, id := range []string{"order-1", "order-1", "order-2"} {
		hold, refusal, err := store.Reserve(ctx, &reservation.ReserveRequest{
			ID: id, Sale: "launch", Version: version, Buyer: "a hash",
			Lines: []sale.Line{{SKU: "console", Quantity: 1}}, HoldFor: time.Minute, Margin: time.Second, Mode: record.ModeResponse,
		})
		switch {
		case err != nil:
			panic(err)
		case refusal != nil:
			fmt.Println(id, "is refused:", refusal.Reason)
		default:
			fmt.Println(id, "is", hold.State)
		}
	}
	state, err := store.Confirm(ctx, "launch", "order-1", reservation.SourceShop, "paid")
	if err != nil {
		panic(err)
	}
	fmt.Println("order-1 is", state)
	// Output:
	// order-1 is held
	// order-1 is held
	// order-2 is refused: all_held
	// order-1 is confirmed
}
