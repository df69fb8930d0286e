package stampede

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stockgate/stockgate/reservation"
)

const (
	// sourceTimeout bounds one question to shop or admin API.
	sourceTimeout = 30 * time.Second
	// mostSource bounds its answer.
	mostSource = 512 << 20
)

// errNotFound: 404.
var errNotFound = errors.New("not found")

// HTTPSources asks a shop for its list of orders, at the given URL, and Caddy's
// admin API, at host:port or a URL, for a sale.
func HTTPSources(shopOrders, admin, saleID string) (Sources, error) {
	if !strings.Contains(admin, "://") {
		admin = "http://" + admin
	}
	base, err := url.Parse(admin)
	if err != nil || base.Host == "" {
		return Sources{}, fmt.Errorf("the admin address %q: write host:port, as in localhost:2019", admin)
	}
	if u, err := url.Parse(shopOrders); err != nil || u.Host == "" {
		return Sources{}, fmt.Errorf("the URL of the shop's orders %q: give a whole URL, as in http://127.0.0.1:9000/orders", shopOrders)
	}
	base = base.JoinPath("stockgate")
	return Sources{
		Orders: func(ctx context.Context) (orders []Order, err error) {
			return orders, get(ctx, shopOrders, &orders)
		},
		Stock: func(ctx context.Context) (*reservation.SaleStock, error) {
			stock := new(reservation.SaleStock)
			return stock, get(ctx, base.JoinPath("sales", saleID).String(), stock)
		},
		Record: func(ctx context.Context, id string) (*reservation.Record, error) {
			r := new(reservation.Record)
			err := get(ctx, base.JoinPath("reservations", url.PathEscape(id)).String(), r)
			if errors.Is(err, errNotFound) {
				err = reservation.ErrNotFound
			}
			return r, err
		},
	}, nil
}

// get reads the JSON at a URL.
func get(ctx context.Context, from string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return fmt.Errorf("GET %s: %w", from, errNotFound)
	default:
		return fmt.Errorf("GET %s: %s", from, response.Status)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, mostSource)).Decode(into); err != nil {
		return fmt.Errorf("GET %s: %w", from, err)
	}
	return nil
}
