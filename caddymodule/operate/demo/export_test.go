package demo

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/stockgate/stockgate/internal/shop"
)

// PastTheGate runs a demo whose crowd orders past the gate, from a shop that checks no
// tokens.
func PastTheGate(ctx context.Context, out io.Writer, serve func(http.Handler) (url string)) error {
	d := &demo{Options: Options{Once: true, Buyers: 20, Stock: 5, Listen: "127.0.0.1:0"}, out: out}
	err := func() error {
		if _, err := d.openSite(); err != nil {
			return err
		}
		careless, err := shop.New(shop.Options{})
		if err != nil {
			return err
		}
		d.atEnd(func(context.Context) error { return careless.Close() })
		d.shop, d.site = careless, serve(careless)
		return errors.Join(d.openSales(ctx), d.rush(ctx))
	}()
	return errors.Join(err, d.close())
}
