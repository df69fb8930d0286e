package gate

import (
	"fmt"

	"github.com/stockgate/stockgate/caddymodule/gate/judge"
)

// Describe returns what operators are told of the gate. all are the judges of the configuration.
func (g *Gate) Describe(all []*judge.Judge) (s judge.Selling) {
	s.ByShop = g.Outcome == "backend"
	if g.probe != nil {
		s.AskAbout = g.probe.AskAbout
	}
	switch {
	case s.ByShop:
		s.Doubts = "leaves it to the shop to confirm or release what it holds, through stockgate_api"
	case g.probe != nil:
		s.Doubts = fmt.Sprintf("asks %s about holds in doubt", g.probe.Host())
	default:
		s.Doubts = "keeps holds in doubt until an operator or the shop resolves them: `in_doubt probe <url>` would ask the shop"
	}
	if g.Queue != nil {
		s.Most, s.Memory = g.Queue.Most, g.Queue.Memory
	}
	if risk := g.cartRisk(all); risk != "" {
		s.Risks = append(s.Risks, judge.OptionRisk{About: "lookup", Text: g.Title() + ": " + risk})
	}
	if g.sharesQueue != "" {
		s.Risks = append(s.Risks, judge.OptionRisk{About: "queue", Text: g.Title() + " " + g.sharesQueue})
	}
	return s
}
