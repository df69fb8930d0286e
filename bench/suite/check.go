package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/stockgate/stockgate/bench/load"
	"github.com/stockgate/stockgate/bench/measure"
	"github.com/stockgate/stockgate/bench/peer"
)

// counted is what the servers have counted so far.
type counted struct {
	calls  measure.Calls
	orders int64 // that reached the shop
	sold   int64 // units of the first item, if the server counts them
	// attempts are what a gate has counted, by reason.
	attempts measure.Attempts
}

func (n counted) since(before counted) counted {
	return counted{n.calls.Minus(before.calls), n.orders - before.orders, n.sold - before.sold, n.attempts.Minus(before.attempts)}
}

// sells reports whether the peer keeps account of units.
func (c *contender) sells() bool { return c.Spec.Gate || c.Spec.Lua }

func (b *bench) count(ctx context.Context, c *contender) (n counted, err error) {
	if n.orders, err = b.shop.Orders(); err != nil {
		return n, err
	}
	if c.Redis == nil {
		return n, nil
	}
	if n.calls, err = c.Redis.Calls(ctx); err != nil {
		return n, err
	}
	if c.Spec.Gate {
		if n.attempts, err = c.Attempts(ctx); err != nil {
			return n, err
		}
	}
	n.sold, err = c.sold(ctx, peer.SaleID(0), sku(0))
	return n, err
}

// sold is how many units a peer has sold, of a sale or of its only item.
func (c *contender) sold(ctx context.Context, sale, sku string) (int64, error) {
	if !c.Spec.Gate {
		// what is left is known, so what is gone is the difference to any fixed number
		left, err := c.Redis.Client.HGet(ctx, "stock", sku).Int64()
		return -left, err
	}
	if c.large {
		return 0, nil // its stock is a long list, and nothing is sold
	}
	units, balanced, err := c.Sold(ctx, sale)
	if err == nil && !balanced {
		err = errors.New("the books do not balance")
	}
	return units, err
}

// check sees that a peer does what the case is about, before anything is measured. It
// also shows every request of the table to the peer once.
func (b *bench) check(ctx context.Context, s scenario, c *contender) error {
	c.large = s.skus > 1000
	if s.accept {
		return b.checkAccepted(ctx, s, c)
	}
	if s.stock == 1 && s.want == soldOut && c.sells() {
		one := c.orders
		one.Buyer = func(int) string { return "b" + load.Mark }
		if err := b.checkSold(ctx, s, c, one, 1); err != nil {
			return fmt.Errorf("the only unit: %w", err)
		}
	}
	rounds := 2 // the first may teach a peer what is sold out
	if s.rate {
		rounds = 3 // and use up what the rate allows
	}
	var asked load.Asked
	for range rounds {
		err := c.solve(ctx)
		if err != nil {
			return err
		}
		if asked, err = load.Ask(ctx, c.Addr, s.tls, c.orders, 0, c.requests, 0, s.want); err != nil {
			return err
		}
	}
	if float64(asked.Right) < float64(asked.Asked)*(1-s.stray) {
		return fmt.Errorf("%d of %d answers were not %d %s but, for one, %s", asked.Asked-asked.Right, asked.Asked, s.want.Status, s.want.Says, asked.Wrong)
	}
	c.size = asked.Bytes
	return nil
}

// checkAccepted sees that what is accepted reaches the shop, and is out of stock.
func (b *bench) checkAccepted(ctx context.Context, s scenario, c *contender) error {
	return b.checkSold(ctx, s, c, c.orders, 200)
}

func (b *bench) checkSold(ctx context.Context, s scenario, c *contender, o load.Orders, n int) error {
	before, err := b.count(ctx, c)
	if err != nil {
		return err
	}
	asked, err := load.Ask(ctx, c.Addr, s.tls, o, 0, n, b.numbers(), accepted)
	if err != nil {
		return err
	}
	after, err := b.count(ctx, c)
	switch orders, sold := after.orders-before.orders, after.sold-before.sold; {
	case err != nil:
		return err
	case asked.Right != n:
		return fmt.Errorf("%d of %d were not accepted: %s", n-asked.Right, n, asked.Wrong)
	case orders != int64(n):
		return fmt.Errorf("%d orders were accepted, but the shop got %d", n, orders)
	case c.sells() && sold != int64(n):
		return fmt.Errorf("%d orders were accepted, but %d units are sold", n, sold)
	}
	c.size = asked.Bytes
	return nil
}

// profile fetches a CPU profile of a gate while it runs. The function that it returns
// waits until the profile is there.
func (b *bench) profile(ctx context.Context, c *contender) (wait func()) {
	if b.Profiles == "" || !c.Spec.Gate || c.Spec.Binary != "" {
		return func() {}
	}
	done := make(chan error, 1)
	go func() {
		done <- func() error {
			name := filepath.Join(b.Profiles, c.scenario.name+"-"+c.name+".pprof")
			seconds := max(1, int(b.For.Seconds())-1)
			req, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", c.Admin(), seconds), nil)
			if err != nil {
				return err
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("profile: %s", resp.Status)
			}
			f, err := os.Create(name)
			if err != nil {
				return err
			}
			_, err = io.Copy(f, resp.Body)
			return errors.Join(err, f.Close())
		}()
	}()
	return func() {
		if err := <-done; err != nil {
			b.left("%s: %s: no profile: %v", c.scenario.name, c.name, err)
		}
	}
}
