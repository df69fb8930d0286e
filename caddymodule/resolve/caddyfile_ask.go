package resolve

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

func (h *Resolve) readAsk(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, 1)
	if err != nil {
		return err
	}
	h.Ask = &AskProvider{URL: args[0]}
	at := *d
	err = directive.ReadBlock(d, map[string]directive.Option{
		"id":      {Usage: "id {form.<name>}|{json.<path>}|{query.<name>}", Read: directive.Text(&h.Ask.ID)},
		"bearer":  {Usage: "bearer <key>", Read: directive.Text(&h.Ask.Bearer)},
		"timeout": {Usage: "timeout <duration>", Read: directive.Duration(&h.Ask.Timeout)},
		"ca":      {Usage: "ca <file>", Read: directive.Text(&h.Ask.CA)},
	})
	if err == nil && (h.Ask.ID == "" || h.Ask.Bearer == "") {
		return at.Errf("ask needs id and bearer: write `id {form.id}` and `bearer {env.NAME}`")
	}
	return err
}
