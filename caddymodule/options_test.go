package caddymodule_test

import (
	"fmt"
	"testing"
)

// TestOptions: only a request that asks what the route can do passes a gate unread. A shop could
// take one with a body, or with another method, for an order.
func TestOptions(t *testing.T) {
	const bare = "OPTIONS /api/order%s HTTP/1.1\nHost: shop\nOrigin: https://shop.example\nAccess-Control-Request-Method: POST\n%s\n"
	for name, guard := range map[string]string{"behind a guard": "stockgate_guard\n", "alone": ""} {
		t.Run(name, func(t *testing.T) {
			shop := newBackend(t, created)
			s := openCaddyfile(t, guard+"stockgate /api* {\n json_body action order\n buyer {header.X-User-Id}\n line {json.sku}\n }\n reverse_proxy "+shop.addr())
			s.refusesAll(shop,
				asks("OPTIONS /api/order"), asks("OPTIONS /api/order", "X-HTTP-Method-Override: POST"),
				"OPTIONS /api/order HTTP/1.1\nHost: shop\nTransfer-Encoding: chunked\n\n1\r\n{\r\n0\r\n\r\n",
				fmt.Sprintf(bare, "?_method=POST", ""), fmt.Sprintf(bare, "?x=%zz&.method=POST", ""))
			s.passesAll(shop, fmt.Sprintf(bare, "", ""), fmt.Sprintf(bare, "?method=POST", ""), fmt.Sprintf(bare, "", "Content-Length: 0\n"),
				"OPTIONS /api/order HTTP/1.1\nHost: shop\nTransfer-Encoding: chunked\n\n0\r\n\r\n")
			s.says(fmt.Sprintf(bare, "", "X-HTTP-Method-Override: POST\nX-Method-Override: POST\n"))
			for _, got := range shop.take() {
				for _, name := range []string{"X-Http-Method-Override", "X-Method-Override"} {
					if value := got.header.Get(name); value != "" {
						t.Errorf("the shop got %s: %s", name, value)
					}
				}
			}
		})
	}
}
