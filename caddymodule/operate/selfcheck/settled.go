package selfcheck

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/stockgate/stockgate/internal/learn"
)

// units of the sale by what they are.
type units struct{ held, inDoubt, confirmed int64 }

func (c *check) units(ctx context.Context) (u units, err error) {
	stock, err := c.edge.Store.SaleStock(ctx, learn.SaleID)
	if err != nil {
		return u, err
	}
	for _, cell := range stock.Items {
		u.held, u.inDoubt, u.confirmed = u.held+cell.Held, u.inDoubt+cell.InDoubt, u.confirmed+cell.Confirmed
	}
	return u, nil
}

// nothingTaken looks for units that a refused order has left.
func (c *check) nothingTaken(ctx context.Context, x *learn.Exchange) error {
	u, err := c.units(ctx)
	switch {
	case err != nil:
		return err
	case u.confirmed > 0:
		c.problem(x, "the shop refused the order, and the gate takes it for sold")
	case u.inDoubt > 0 || u.held > 0:
		c.out.Doubts = append(c.out.Doubts, x)
	}
	return nil
}

// settled compares what became of the order's units.
func (c *check) settled(ctx context.Context, x *learn.Exchange) error {
	u, err := c.units(ctx)
	if err != nil {
		return err
	}
	want := int64(0)
	for _, line := range c.learned.Lines {
		want += line.Quantity
	}
	switch {
	case c.learned.Confirms && u.confirmed != want:
		c.problem(x, "the shop took the order, and the gate does not take it for sold: %d of %d units", u.confirmed, want)
	case c.learned.Backend && u.held < want:
		c.problem(x, "the units of the order are not held until it is paid")
	}
	return nil
}

// linesOf reads the lines of a reservation token by SKU.
func linesOf(token string) map[string]int64 {
	var claims struct {
		Lines []struct {
			SKU string `json:"sku"`
			Qty int64  `json:"qty"`
		} `json:"lines"`
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return nil
	}
	all := make(map[string]int64)
	for _, line := range claims.Lines {
		all[line.SKU] += line.Qty
	}
	return all
}

// sameUnits compares reserved lines with the recorded order.
func sameUnits(reserved map[string]int64, l *learn.Learned) bool {
	want := make(map[string]int64)
	for _, line := range l.Lines {
		want[line.SKU] += line.Quantity
	}
	for sku, n := range want {
		if reserved[sku] != n {
			return false
		}
	}
	return len(reserved) == len(want)
}

// signAgain signs the tokens of a request with the key of the check: the shop's key is not in a recording, and
// a recorded token has expired.
func signAgain(h http.Header) {
	for _, name := range []string{"Authorization", "Cookie"} {
		for _, word := range strings.FieldsFunc(h.Get(name), func(r rune) bool { return strings.ContainsRune(" ;=,", r) }) {
			if again := resigned(word); again != "" {
				h.Set(name, strings.Replace(h.Get(name), word, again, 1))
			}
		}
	}
}

// resigned returns a JWT with the same claims, but for its times; empty: the text is none.
func resigned(text string) string {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return ""
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims map[string]json.RawMessage
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return ""
	}
	for _, name := range []string{"exp", "nbf", "iat"} {
		delete(claims, name)
	}
	raw, err = json.Marshal(claims)
	if err != nil {
		return ""
	}
	signed := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(raw)
	mac := hmac.New(sha256.New, []byte(tokenSecret))
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
