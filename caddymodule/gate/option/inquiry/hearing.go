package inquiry

import (
	"sync/atomic"

	"go.uber.org/zap"
)

// Hearing logs whether the shop says what is in carts: once that it does not, and once that it does
// again. The zero value is ready.
type Hearing struct {
	deaf atomic.Bool // the last answer did not say it
	// hadArray: an answer had the array of the lines, or the log says that it lacks it.
	hadArray atomic.Bool
}

// Lost is told of a question that was not answered, or of an answer that is no cart.
func (h *Hearing) Lost(log *zap.Logger, host, why string) {
	if !h.deaf.Swap(true) {
		log.Warn("the lookup gets no answer that says what is in a cart: attempts are refused as unavailable until it does",
			zap.String("shop", host), zap.String("answer", why))
	}
}

// Heard is told of an answer that says what is in a cart. lacks says why the array of its lines is
// not there; empty: it is, or null in its place.
func (h *Hearing) Heard(log *zap.Logger, host, lacks string) {
	if lacks == "" {
		h.hadArray.Store(true)
	} else if !h.hadArray.Swap(true) {
		log.Warn("the lookup's answer lacks the array of `lines`: attempts are refused as no_cart; if the shop does not leave it out where a cart is empty, `lines` reads the wrong place",
			zap.String("shop", host), zap.String("answer", lacks))
	}
	h.HeardAgain(log, host)
}

// HeardAgain is told of an answer of which only the id of the cart is read.
func (h *Hearing) HeardAgain(log *zap.Logger, host string) {
	if h.deaf.Swap(false) {
		log.Info("the lookup gets answers again", zap.String("shop", host))
	}
}
