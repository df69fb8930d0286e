package sales

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/shard"
)

func addStock(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	sku, err := request.Word("the sku", r.PathValue("sku"))
	if err != nil {
		return nil, err
	}
	var change adminapi.StockChange
	if err := request.JSON(r, serve.SmallBody, &change); err != nil {
		return nil, err
	}
	if _, err := request.Word("id", change.ID); err != nil {
		return nil, fmt.Errorf("%w; it names the change, so that it can be asked for again", err)
	}
	if change.Region != "" {
		if _, err := request.Word("region", change.Region); err != nil {
			return nil, err
		}
	}
	if change.Delta == 0 {
		return nil, request.Bad("delta must be a number of units, more or less than 0")
	}
	changed := adminapi.StockChanged{ID: change.ID, Region: change.Region, Delta: change.Delta}
	if listing, ok := o.Runtime.Catalogue().Sale(id); ok {
		if item, ok := listing.Sale.Item(sku); ok {
			sku = item.SKU // it may be called by an id
		}
		if why := unsellable(listing); why != "" && change.Delta > 0 {
			changed.Warnings = []string{id + " " + why}
		}
	}
	stock, err := o.Runtime.Store.Adjust(o.Ctx, id, change.ID, sale.Cell(sku, change.Region), change.Delta, o.By)
	if err = o.NoSale(id, err); errors.Is(err, shard.ErrRefused) {
		err = explainCell(o, err, id, sku, change.Region)
	}
	changed.SKU, changed.Stock = sku, stock
	return changed,
		o.Noted(err, "stock added", zap.String("sale", id), zap.String("sku", sku), zap.String("region", change.Region),
			zap.Int64("delta", change.Delta), zap.Int64("stock", stock), zap.String("id", change.ID))
}

// explainCell says what is wrong with the item or the region, if that is why stock
// could not be added.
func explainCell(o *serve.Operator, err error, id, sku, region string) error {
	listing, ok := o.Runtime.Catalogue().Sale(id)
	if !ok || listing.Lost() {
		return err
	}
	item, ok := listing.Sale.Item(sku)
	if !ok {
		return serve.NotFound(fmt.Errorf("the sale %s has no item %s", id, sku))
	}
	if item.IsBundle() {
		parts := make([]string, len(item.Components))
		for i, c := range item.Components {
			parts[i] = c.SKU
		}
		return request.Bad("%s is a bundle and has no stock of its own: add units of %s", sku, strings.Join(parts, ", "))
	}
	if _, ok := item.Regions[region]; !ok && len(item.Regions) > 0 {
		return request.Bad("the stock of %s is split by region: name one of %s", sku, strings.Join(slices.Sorted(maps.Keys(item.Regions)), ", "))
	}
	if region != "" && len(item.Regions) == 0 {
		return request.Bad("the stock of %s is not split by region: leave the region out", sku)
	}
	return err
}
