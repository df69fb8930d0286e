package stampede

import (
	"fmt"
	"math/rand/v2"
)

// Shares are the parts of a crowd's orders, from 0 to 1, that are not simply sent once. One
// order has at most one of these roles.
type Shares struct {
	// Double is sent twice at once.
	Double float64
	// Bots send the same order over BotConnections connections at once, BotRequests times
	// over each, and neither wait as an answer asks nor count for the latency.
	Bots float64
	// Leave closes the connection when the order is sent, before the answer.
	Leave float64
}

// What a bot does.
const (
	BotConnections = 10
	BotRequests    = 5
)

// role is how an order is sent.
type role uint8

const (
	plain role = iota
	double
	bot
	leaver
)

func (s Shares) check() error {
	for _, share := range []float64{s.Double, s.Bots, s.Leave} {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("a share of %v: it must lie between 0 and 1", share)
		}
	}
	if all := s.Double + s.Bots + s.Leave; all > 1 {
		return fmt.Errorf("the shares of double clickers, bots and leavers make %.4g of the crowd: at most 1", all)
	}
	return nil
}

// roles draws the role of each order; nil: all are plain.
func (s Shares) roles(orders int, seed uint64) []role {
	if s == (Shares{}) {
		return nil
	}
	dice := rand.New(rand.NewPCG(seed, 0x726f6c6573))
	roles := make([]role, orders)
	for i := range roles {
		switch at := dice.Float64(); {
		case at < s.Double:
			roles[i] = double
		case at < s.Double+s.Bots:
			roles[i] = bot
		case at < s.Double+s.Bots+s.Leave:
			roles[i] = leaver
		}
	}
	return roles
}
