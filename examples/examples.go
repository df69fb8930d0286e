// Package examples has the configurations of shops that are tested with every change, and what is known of
// these shops, for caddy stockgate learn. It is no promise of Go.
package examples

import "embed"

// Recipes has a directory for each shop: Caddyfile and recipe.yaml.
//
//go:embed */recipe.yaml vendure/Caddyfile medusa/Caddyfile
var Recipes embed.FS
