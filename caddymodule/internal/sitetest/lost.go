package sitetest

import (
	"testing"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

// LostPlain is the series that tells that the sale is lost.
const LostPlain = `stockgate_sale_lost{sale="double11"}`

// EmptyRedis loses all that a Redis has.
func EmptyRedis(t *testing.T, server *redistest.Server) {
	t.Helper()
	if err := server.Client().FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}

// ListsSale sells to buyers that the lists admit.
const ListsSale = `
id: double11
starts_at: 2020-11-11T00:00:00+08:00
ends_at: 2090-11-12T00:00:00+08:00
items:
  - {sku: plain, stock: 1000, max: 2}
  - {sku: "20002001", stock: 1000}
`
