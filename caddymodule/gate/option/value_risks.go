package option

import (
	"slices"
	"strings"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/filters/attempt"
)

// valueRisks returns warnings about values that are probably misspelt: a buyer that is the same for everyone,
// headers that no request has, and placeholders that nothing sets.
func (s *Setup) valueRisks() (risks []string) {
	constant := len(s.Buyer) > 0 && !slices.ContainsFunc(s.Buyer, hasPlaceholder)
	if constant {
		risks = append(risks, constantBuyer(s.Buyer[0]))
	}
	for _, expr := range directive.BarePlaceholders(s.expressions()) {
		if !constant || !slices.Contains(s.Buyer, expr) {
			risks = append(risks, expr+" is a constant, the same for all attempts: write {"+expr+"} for what the request has there")
		}
	}
	for _, header := range directive.UnderscoreHeaders(s.expressions()) {
		dashed := strings.ReplaceAll(header, "_", "-")
		risks = append(risks, "{header."+header+"} does not read the header "+dashed+": HTTP writes it with dashes, and proxies drop names with underscores; write {header."+dashed+"}")
	}
	for _, name := range directive.UnknownPlaceholders(s.expressions()) {
		risks = append(risks, "nothing in Caddy or Stockgate sets {"+name+"}, so it is empty unless a plugin sets it"+directive.Instead(name))
	}
	return risks
}

func constantBuyer(buyer string) string {
	example := "{header." + buyer + "}"
	if _, err := attempt.Compile(example); err != nil || strings.ContainsAny(buyer, " {}") {
		example = "{http.auth.user.id}"
	}
	return "the buyer " + buyer + " is a constant, so all attempts are those of one buyer and share that buyer's limits: " +
		"write a placeholder, such as " + example
}
