package learn

import (
	"net/http"
	"slices"

	"github.com/stockgate/stockgate/internal/recipe"
)

// Staged returns what a known shop answers to a question of the gate about the order that is played; nil: it is
// no question of its configuration. The answer has the lines of the recorded cart.
func (l *Learned) Staged(uri string, body []byte, played *Exchange) *Exchange {
	if l.plan.known == nil {
		return nil
	}
	var lines []recipe.CartLine
	for _, line := range l.Lines {
		lines = append(lines, recipe.CartLine{SKU: line.SKU, Quantity: line.Quantity})
	}
	answer := l.plan.known.Answers.To(uri+" "+string(body), lines, !slices.Contains(l.Refused, played))
	if answer == "" {
		return nil
	}
	return &Exchange{Status: http.StatusOK, AnswerHeader: http.Header{"Content-Type": {"application/json"}}, Answer: []byte(answer)}
}
