// Package e2e_test drives the whole way of a purchase through real processes:
// buyers over HTTP, Caddy with the gate, redis-server or the embedded one, and
// shops that behave or do not. What it asserts is what the outside can see:
// answers, orders in the shop, and the stock in Redis.
package e2e_test
