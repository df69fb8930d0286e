// Package caddymodule is Stockgate inside Caddy: the app with its Redis and its keys, the
// gate before an order route, the guard for a whole site, the public status, the shop's API
// and the admin API. The commands of `caddy stockgate` are in package command.
package caddymodule
