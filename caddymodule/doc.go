// Package caddymodule is Stockgate inside Caddy, the only package that knows
// Caddy: the app with its Redis and its keys, the gate before an order route, the
// guard for a whole site, the public status, the admin API and the commands.
package caddymodule
