package ratelimit

import (
	"context"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/rates"
)

// wouldRefuse counts an attempt that a rate in shadow has let pass. It does not know the sale.
func wouldRefuse() { meter.CountShadow("", meter.WouldRefuse, sale.RateLimited) }

// takeShadows counts an attempt for each shared rate in shadow. The attempt does not wait for
// it; where too many are under way, it is not counted.
func (rs *Set) takeShadows(d *edgeruntime.Runtime, a *sale.Attempt) {
	for _, i := range rs.shadows {
		switch {
		case !rs.asking.Take():
			meter.SkipShadow(meter.SkippedBusy)
			continue
		case !d.Begin():
			rs.asking.Give()
			meter.SkipShadow(meter.SkippedRedis)
			continue
		}
		tries := []rates.Try{{Rate: rs.rates[i].shared, Key: a.RateKeys[i]}}
		go func() {
			defer d.End()
			defer rs.asking.Give()
			switch over, _, err := d.Rates().Take(context.Background(), tries); {
			case err != nil:
				meter.SkipShadow(meter.SkippedRedis)
			case over >= 0:
				wouldRefuse()
			}
		}()
	}
}
