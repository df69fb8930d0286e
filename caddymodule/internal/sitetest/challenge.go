package sitetest

import (
	"context"
	"testing"

	"github.com/stockgate/stockgate/filters/challenge"
)

// Solve solves a task of a challenge.
func Solve(t *testing.T, task string) string {
	t.Helper()
	solution, err := challenge.Solve(context.Background(), task)
	if err != nil {
		t.Fatal(err)
	}
	return solution
}

// AskedSites have a gate that asks from its second attempt on, on either way.
const AskedSites = `
SITEshop.example.comPORT {
	stockgate /asked asked {
		buyer {header.X-User-Id}
		line {query.sku}
		challenge pow {
			above 1 1h
			bits 8 8
		}
		FAST
	}
	respond 418
}
`
