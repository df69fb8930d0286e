package reservation

import (
	"context"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// Available is how many units of some cells of a sale are free now. Cells that are not there have none.
func (s *Store) Available(ctx context.Context, saleID string, cells []string) (map[string]int64, error) {
	texts, err := s.shard.Data(saleID).Values(ctx, shard.CellsKey, cells...)
	if err != nil {
		return nil, err
	}
	units := make(map[string]int64, len(cells))
	for i, cell := range cells {
		if !texts.Has(i) {
			continue
		}
		c, err := record.ParseCell(texts.Text(i))
		if err != nil {
			return nil, err
		}
		units[cell] = c.Available
	}
	return units, nil
}
