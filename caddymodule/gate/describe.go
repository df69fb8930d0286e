package gate

import (
	"fmt"

	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/gate/line"
	"github.com/stockgate/stockgate/caddymodule/gate/option"
	"github.com/stockgate/stockgate/caddymodule/gate/selling"
	"github.com/stockgate/stockgate/internal/sale"
)

// Begin begins an attempt for others than the gate.
func (g *Gate) Begin(v judge.Visit) *judge.Case { return &g.taker.Begin(v).Case }

// LacksSlot refuses an attempt that would get no in-flight slot now.
func (g *Gate) LacksSlot(p *judge.Case) *sale.Refusal { return g.taker.LacksSlot(p) }

// Describe returns what operators are told of the gate. all are the judges of the configuration.
func (g *Gate) Describe(all []*judge.Judge) (s judge.Selling) {
	s.ByShop = g.Outcome == "backend"
	s.Probes = g.terms.Probe != nil
	switch {
	case s.ByShop:
		s.Doubts = "leaves it to the shop to confirm or release what it holds, through stockgate_api"
	case g.terms.Probe != nil:
		s.Doubts = fmt.Sprintf("asks %s about holds in doubt", g.terms.Probe.Host())
	default:
		s.Doubts = "keeps holds in doubt until an operator or the shop resolves them: `in_doubt probe <url>` would ask the shop"
	}
	if g.Queue != nil {
		s.Most, s.Memory = g.Queue.Most, g.Queue.Memory
	}
	if risk := g.cartRisk(all); risk != "" {
		s.Risks = append(s.Risks, option.OptionRisk{About: "lookup", Text: g.Title() + ": " + risk})
	}
	if g.sharesQueue {
		s.Risks = append(s.Risks, option.OptionRisk{About: "queue", Text: g.Title() + " " + line.SharedQueue})
	}
	return s
}

// Gives reports whether an option that only a gate has is there, by its name in the table of conflicts.
func (g *Gate) Gives(option string) bool { return g.terms.Gives(option) }

// SellingRisks returns the risks of the options that only a gate has.
func (g *Gate) SellingRisks() []option.OptionRisk { return g.terms.SellingRisks() }

// Terms are what the gate's own options are compiled to.
func (g *Gate) Terms() *selling.Terms { return &g.terms }
