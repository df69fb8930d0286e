package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/sale"
)

const (
	// rulesTold is how often an edge tells its rules for identities again, and rulesRetry the pause where Redis did not
	// take them.
	rulesTold  = time.Hour
	rulesRetry = 5 * time.Second
)

// ruleTeller tells the other edges the rules for identities of one configuration.
type ruleTeller struct {
	stop context.CancelFunc
	done sync.WaitGroup
}

func (a *App) tellRules(d *edgeruntime.Runtime, rules sale.IdentityRules) {
	ctx, cancel := context.WithCancel(context.Background())
	t := &ruleTeller{stop: cancel}
	a.ruleTeller = t
	t.done.Go(func() {
		for wait := time.Duration(0); loop.Rest(ctx, wait, nil); {
			if wait = rulesTold; !d.Begin() {
				continue
			}
			if err := d.Client().NoteRules(ctx, d.Leases().ID(), rules.String()); err != nil {
				wait = rulesRetry
			} else if others, err := a.OtherRules(ctx); err == nil && others != "" {
				a.log.Warn(others)
			}
			d.End()
		}
	})
}

func (t *ruleTeller) close() {
	if t != nil {
		t.stop()
		t.done.Wait()
	}
}

// OtherRules says which edges sell the same sales by other rules for identities; empty: none is known.
func (a *App) OtherRules(ctx context.Context) (string, error) {
	d := a.Runtime()
	rules, err := a.IdentityRules()
	if err != nil {
		return "", err
	}
	var sales []string
	for l := range d.Catalogue().All {
		sales = append(sales, l.Sale.ID)
	}
	others, err := d.Client().OtherRules(ctx, sales, d.Leases().ID(), rules.String())
	if err != nil || len(others) == 0 {
		return "", err
	}
	var names []string
	for _, edge := range slices.Sorted(maps.Keys(others)) {
		names = append(names, fmt.Sprintf("%s (%s)", edge, cmp.Or(others[edge], "none")))
	}
	return fmt.Sprintf("other edges sell by other `identities` than this one (%s): %s: a person who comes to both counts as two, with two limits; give all edges the same",
		cmp.Or(rules.String(), "none"), strings.Join(names, ", ")), nil
}
