package dashboard

import (
	"slices"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// ReadDirective reads a dashboard.
func ReadDirective(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	s := new(Dashboard)
	return s, s.UnmarshalCaddyfile(h.Dispenser)
}

// UnmarshalCaddyfile reads a dashboard. Syntax:
//
//	stockgate_dashboard [<matcher>] {
//		acts [open] [pause] [close] [offers] [stock] [resolve] [{
//			users     <name...>
//			claim     <placeholder> <value...>
//			claim_has <placeholder> <value...>
//		}]
//		look {
//			users     <name...>
//			claim     <placeholder> <value...>
//			claim_has <placeholder> <value...>
//		}
//		origins <origin...>
//		unprotected
//	}
func (s *Dashboard) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	if d.NextArg() {
		return d.Errf("stockgate_dashboard takes no arguments besides a matcher, found %q", d.Val())
	}
	return directive.ReadBlock(d, map[string]directive.Option{
		"acts":        {Usage: "acts [open] [pause] [close] [offers] [stock] [resolve] [{ … }]", Read: s.readActs, List: true},
		"look":        {Usage: "look { … }", Read: s.readLook},
		"origins":     {Usage: "origins <origin...>", Read: directive.Texts(&s.Origins)},
		"unprotected": {Usage: "unprotected", Read: directive.Flag(&s.Unprotected)},
	})
}

// readActs reads the option acts; without arguments it means all. A block says for whom.
func (s *Dashboard) readActs(d *caddyfile.Dispenser, usage string) error {
	list, err := directive.Arguments(d, usage, 0, len(acts))
	if err != nil {
		return err
	}
	if len(list) == 0 {
		list = slices.Clone(acts)
	}
	if !hasBlock(d) {
		s.Acts = append(s.Acts, list...)
		return nil
	}
	role := Role{Acts: list}
	err = role.read(d)
	s.Roles = append(s.Roles, role)
	return err
}

func (s *Dashboard) readLook(d *caddyfile.Dispenser, usage string) error {
	if _, err := directive.Arguments(d, usage, 0, 0); err != nil {
		return err
	}
	s.Look = new(RoleMembers)
	return s.Look.read(d)
}

// hasBlock reports whether a block follows on the line.
func hasBlock(d *caddyfile.Dispenser) bool {
	line := d.Line()
	if !d.Next() {
		return false
	}
	is := d.Val() == "{" && d.Line() == line
	d.Prev()
	return is
}

// read reads the block of members.
func (m *RoleMembers) read(d *caddyfile.Dispenser) error {
	claim := func(list bool) func(*caddyfile.Dispenser, string) error {
		return func(d *caddyfile.Dispenser, usage string) error {
			args, err := directive.Arguments(d, usage, 2, -1)
			if err == nil {
				m.Claims = append(m.Claims, RoleClaim{Claim: args[0], Values: args[1:], List: list})
			}
			return err
		}
	}
	return directive.ReadBlock(d, map[string]directive.Option{
		"users": {Usage: "users <name...>", List: true, Read: func(d *caddyfile.Dispenser, usage string) error {
			names, err := directive.Arguments(d, usage, 1, -1)
			m.Users = append(m.Users, names...)
			return err
		}},
		// a placeholder `{http.auth.user.…}` is one of the values.
		"claim": {Usage: "claim <placeholder> <value...>", List: true, Read: claim(false)},
		// the same of a list, separated by commas or spaces.
		"claim_has": {Usage: "claim_has <placeholder> <value...>", List: true, Read: claim(true)},
	})
}

// Interface guard
var _ caddyfile.Unmarshaler = (*Dashboard)(nil)
