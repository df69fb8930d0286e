package adminapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// The edge sends a request of an operator or of the shop to Redis once. If Redis does not
// answer, the caller gets an error, and the edge does not repeat the request later.
func TestOperatorAndShopAreToldAtOnce(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	s := sitetest.Open(t, nil)
	s.Gates = []any{map[string]any{"handler": "stockgate_api", "keys": []string{sitetest.APIKey}}}
	s.Load(map[string]any{"redis": map[string]any{"addresses": []string{proxy.Addr()}, "timeout": "1m"}})
	s.OpenSale()
	shopper := sitetest.NewShopper(t, server)
	admin := func(path, body string) func(string) sitetest.Answer {
		return func(id string) sitetest.Answer {
			return s.Admin("POST", "/stockgate/"+strings.ReplaceAll(path, "ID", id), strings.ReplaceAll(body, "ID", id))
		}
	}
	shop := func(operation string) func(string) sitetest.Answer {
		return func(id string) sitetest.Answer {
			return s.API("POST", "/reservations/"+id+"/"+operation, `{"sale":"double11"}`)
		}
	}
	for _, test := range []struct {
		id, operation string
		ask           func(id string) sitetest.Answer
	}{
		{"operator-confirms", "confirm", admin("reservations/ID/confirm", "")},
		{"operator-releases", "release", admin("reservations/ID/release", `{"force":true}`)},
		{"operator-confirms-many", "confirm", admin("sales/double11/holds/confirm", `{"names":["ID"]}`)},
		{"operator-releases-many", "release", admin("sales/double11/holds/release", `{"all":true,"state":"held","force":true}`)},
		{"shop-confirms", "confirm", shop("confirm")},
		{"shop-releases", "release", shop("release")},
	} {
		t.Run(test.id, func(t *testing.T) {
			shopper.Hold(test.id, "plain", 1, time.Hour)
			ctx, cancel := context.WithTimeout(t.Context(), sitetest.Patience)
			defer cancel()
			proxy.HoldRequests("EVALSHA " + test.operation)
			answer := make(chan sitetest.Answer, 1)
			asking, answered := context.WithCancel(ctx)
			go func() {
				answer <- test.ask(test.id)
				answered()
			}()
			if err := proxy.WaitHeld(asking); err != nil {
				t.Fatal(err, <-answer)
			}
			proxy.DropAll()
			select {
			case a := <-answer:
				if a.Status != http.StatusServiceUnavailable {
					t.Errorf("%d %s", a.Status, a.Body)
				}
			case <-ctx.Done():
				t.Fatal("no answer")
			}
			edge := app.Active().Runtime()
			if n := edge.Backlog(); n != 0 {
				t.Errorf("%d are said again later", n)
			}
			proxy.Heal()
			s.Eventually("held", func() (string, bool) {
				a := s.Admin("GET", "/stockgate/reservations/"+test.id, "")
				return a.Body, a.Status == http.StatusOK && sitetest.RecordOf(t, a).State == record.Held
			})
		})
	}
}
