package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/stockgate/stockgate/bench/measure"
	"github.com/stockgate/stockgate/internal/sale"
)

// SaleID is the id of the sale that lists the item of an index.
func SaleID(index int) string { return fmt.Sprintf("sale-%d", index/sale.MaxItems) }

// Apply loads a sale, opens it, and returns when the gate sells it. Orders are sent with
// a method.
func (r *Running) Apply(ctx context.Context, s *sale.Sale, method string) error {
	checked, err := sale.New(*s)
	if err != nil {
		return err
	}
	doc, err := json.Marshal(checked)
	if err != nil {
		return err
	}
	if err := r.insist(ctx, "PUT", "sales/"+s.ID, doc); err != nil {
		return err
	}
	if err := r.insist(ctx, "POST", "sales/"+s.ID+"/open", nil); err != nil {
		return err
	}
	return r.sells(ctx, s, method)
}

// open waits until the gate's operator is served: Caddy listens before all of it runs.
func (r *Running) open(ctx context.Context) error {
	deadline := time.After(startWithin)
	for tick := time.Tick(10 * time.Millisecond); ; {
		err := r.ask(ctx, "GET", "sales", nil, nil)
		if err == nil {
			return nil
		}
		select {
		case <-deadline:
			return fmt.Errorf("it does not start: %w: %s", err, r.Log())
		case <-ctx.Done():
			return ctx.Err()
		case <-tick:
		}
	}
}

// insist asks again as long as Redis does not answer in time: 100,000 items at once are
// much for a busy machine, and the same twice changes nothing.
func (r *Running) insist(ctx context.Context, method, path string, body []byte) error {
	deadline := time.Now().Add(5 * time.Minute)
	for {
		err := r.ask(ctx, method, path, body, nil)
		if !errors.Is(err, errBusy) || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
	}
}

// errBusy is 503.
var errBusy = errors.New("try again")

// sells waits until the gate has read a sale, by asking what it makes of an order. That
// reserves and counts nothing.
func (r *Running) sells(ctx context.Context, s *sale.Sale, method string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	sku := s.Items[0].SKU
	request := "GET /api/order?sku=" + sku + "&quantity=1&buyer=probe HTTP/1.1\r\nHost: shop\r\nX-User-Id: probe\r\n\r\n"
	if method != "GET" {
		request = "POST /api/order?buyer=probe HTTP/1.1\r\nHost: shop\r\nX-User-Id: probe\r\nContent-Type: application/json\r\n\r\n{\"sku\":\"" + sku + "\"}"
	}
	body, err := json.Marshal(map[string][]byte{"request": []byte(request)})
	if err != nil {
		return err
	}
	for tick := time.Tick(20 * time.Millisecond); ; {
		var tried struct {
			Sale   string
			Status string `json:"sale_status"`
		}
		if err := r.ask(ctx, "POST", "try", body, &tried); err != nil {
			return err
		}
		if tried.Sale == s.ID && tried.Status == string(sale.Open) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not sell %s: %w", r.Spec.Name, s.ID, ctx.Err())
		case <-tick:
		}
	}
}

// Sold is how many units of a sale are confirmed, and whether its books balance.
func (r *Running) Sold(ctx context.Context, id string) (units int64, balanced bool, err error) {
	var stock struct {
		Items []struct {
			Confirmed int64
		}
		Balanced bool
	}
	if err := r.ask(ctx, "GET", "sales/"+id, nil, &stock); err != nil {
		return 0, false, err
	}
	for _, item := range stock.Items {
		units += item.Confirmed
	}
	return units, stock.Balanced, nil
}

// Attempts is what a gate has counted so far.
func (r *Running) Attempts(ctx context.Context) (measure.Attempts, error) {
	text, err := get(ctx, r.admin, "/metrics")
	if err != nil {
		return nil, err
	}
	return measure.AttemptsTotal(text)
}

// Live lets the garbage collector of a Caddy run, and returns how many bytes of its heap and its
// stacks are in use.
func (r *Running) Live(ctx context.Context) (float64, error) { return Live(ctx, r.admin) }

// Live is Running.Live for a Caddy with that admin endpoint.
func Live(ctx context.Context, admin string) (float64, error) {
	for range 2 { // what lies unused in a sync.Pool outlives the first one
		if _, err := get(ctx, admin, "/debug/pprof/heap?gc=1"); err != nil {
			return 0, err
		}
	}
	text, err := get(ctx, admin, "/metrics")
	if err != nil {
		return 0, err
	}
	return measure.GoMemory(text)
}

// get reads from Caddy's admin endpoint.
func get(ctx context.Context, admin, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+admin+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, resp.Status, text)
	}
	return string(text), err
}

func (r *Running) ask(ctx context.Context, method, path string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+r.admin+"/stockgate/"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusServiceUnavailable {
		return fmt.Errorf("%s: %s %s: %w: %s", r.Spec.Name, method, path, errBusy, text)
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s: %s %s: %s: %s", r.Spec.Name, method, path, resp.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
