package command

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
)

// adapted reads a configuration file, and adapts it unless it is JSON. Caddy's own function logs each time.
func adapted(file, adapter string) (config []byte, warnings []caddyconfig.Warning, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case adapter != "":
	case json.Valid(text):
		return text, nil, nil
	case strings.HasSuffix(file, ".json"):
		return nil, nil, fmt.Errorf("%s is no JSON", file)
	default:
		adapter = "caddyfile"
	}
	a := caddyconfig.GetAdapter(adapter)
	if a == nil {
		return nil, nil, fmt.Errorf("there is no config adapter %q in this Caddy", adapter)
	}
	if config, warnings, err = a.Adapt(text, map[string]any{"filename": file}); err != nil {
		return nil, nil, fmt.Errorf("%s cannot be adapted: %w", file, err)
	}
	return config, warnings, nil
}

// adminAddress finds the admin endpoint as Caddy's own commands do.
func (c *call) adminAddress() (string, error) {
	file := c.text("config")
	if c.text("address") != "" || file == "" || file == "-" {
		return caddycmd.DetermineAdminAPIAddress(c.text("address"), nil, file, c.text("adapter"))
	}
	if c.config == nil {
		var err error
		if c.config, _, err = adapted(file, c.text("adapter")); err != nil {
			return "", err
		}
	}
	return caddycmd.DetermineAdminAPIAddress("", c.config, file, c.text("adapter"))
}
