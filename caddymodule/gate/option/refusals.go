package option

import (
	"errors"
	"slices"

	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
)

// newRefuser compiles the refusals.
func (s *Setup) newRefuser() (*refuse.Refuser, error) {
	for _, style := range s.Refusals {
		if slices.Contains(style.Reasons, string(sale.ClosedDoor)) {
			return nil, errors.New("refuse closed_door: no gate refuses for that reason: write the answer behind `close` in stockgate_guard")
		}
	}
	texts, err := s.Messages.Over(s.App.Messages)
	if err != nil {
		return nil, err
	}
	return refuse.New(s.Refusals, texts)
}
