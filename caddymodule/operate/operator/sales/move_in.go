package sales

import (
	"fmt"
	"net/http"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

// moveInBody bounds the body of a request that enters purchases.
const moveInBody = 4 << 20

// moveIn enters purchases that were made before the sale came here.
func moveIn(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	var ask adminapi.MoveIn
	if err := request.JSON(r, moveInBody, &ask); err != nil {
		return nil, err
	}
	if n := len(ask.Purchases); n == 0 || n > adminapi.MaxMoveIn {
		return nil, request.Bad("purchases must be 1 to %d, not %d", adminapi.MaxMoveIn, n)
	}
	rules, err := o.App.IdentityRules()
	if err != nil {
		return nil, err
	}
	list := make([]edge.Before, len(ask.Purchases))
	for i, p := range ask.Purchases {
		if err := checkPurchase(&p, rules); err != nil {
			return nil, request.Bad("purchase %d: %w", i+1, err)
		}
		list[i] = edge.Before{Name: p.Name, Kind: p.Kind, Value: rules.Normalise(p.Kind, p.Value), Orders: p.Orders, Lines: p.Lines}
	}
	entered, err := o.Runtime.MoveIn(o.Ctx, id, list, "moved in by "+o.By)
	return adminapi.MovedIn{ID: id, Entered: entered}, o.Noted(o.NoSale(id, err), "purchases of before entered", zap.String("sale", id), zap.Int64("purchases", entered))
}

func checkPurchase(p *adminapi.BoughtBefore, rules sale.IdentityRules) error {
	switch {
	case p.Name == "" || len(p.Name) > adminapi.MaxPurchaseName:
		return fmt.Errorf("name must have 1 to %d bytes: it says where the purchase was read", adminapi.MaxPurchaseName)
	case !sale.IsIdentity(p.Kind):
		return fmt.Errorf("there is no kind of identity %.40q", p.Kind)
	case !utf8.ValidString(p.Value) || rules.Normalise(p.Kind, p.Value) == "":
		return fmt.Errorf("value is no %s", p.Kind)
	case p.Orders < 1 || p.Orders > sale.MaxUnits:
		return fmt.Errorf("orders must be 1 to %d", int64(sale.MaxUnits))
	case len(p.Lines) == 0 || len(p.Lines) > sale.MaxLines:
		return fmt.Errorf("lines must be 1 to %d", sale.MaxLines)
	}
	for _, l := range p.Lines {
		if !sale.IsName(l.SKU) || l.Region != "" && !sale.IsName(l.Region) || l.Quantity < 1 || l.Quantity > sale.MaxUnits {
			return fmt.Errorf("each line has a sku, and a quantity of 1 to %d", int64(sale.MaxUnits))
		}
	}
	return nil
}
