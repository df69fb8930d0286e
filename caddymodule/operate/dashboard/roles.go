package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// Role lets some users do some acts. A user has the acts of all roles that name them, and those that all users have.
type Role struct {
	Acts []string `json:"acts"`
	RoleMembers
}

// RoleMembers are users by name or by claim. A user is one of them who is named, or whom one claim fits.
type RoleMembers struct {
	// Users are names, as in `{http.auth.user.id}`.
	Users []string `json:"users,omitempty"`
	// Claims say more of users, as far as the authentication directive does: basic_auth does not.
	Claims []RoleClaim `json:"claims,omitempty"`
}

// RoleClaim fits a user whose claim has one of the values.
type RoleClaim struct {
	// Claim is a placeholder such as {http.auth.user.team}.
	Claim  string   `json:"claim"`
	Values []string `json:"values"`
	// List: the claim is a list, separated by commas or spaces, and one element is one of the values. Without it, the whole
	// claim is.
	List bool `json:"list,omitempty"`
}

const userPlaceholder = "http.auth.user."

// name is the placeholder without its braces.
func (c *RoleClaim) name() string { return strings.TrimSuffix(strings.TrimPrefix(c.Claim, "{"), "}") }

func (c *RoleClaim) fits(repl *caddy.Replacer) bool {
	text, _ := repl.GetString(c.name())
	if !c.List {
		return slices.Contains(c.Values, text)
	}
	has := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	return slices.ContainsFunc(has, func(one string) bool { return slices.Contains(c.Values, one) })
}

// has reports whether the user of a request is one of the members. user is empty where none is known.
func (m *RoleMembers) has(user string, repl *caddy.Replacer) bool {
	return user != "" && (slices.Contains(m.Users, user) || slices.ContainsFunc(m.Claims, func(c RoleClaim) bool { return c.fits(repl) }))
}

// actsOf returns what the user of a request may do, in the order of acts.
func (s *Dashboard) actsOf(r *http.Request) []string {
	user, repl := authenticatedUser(r)
	return slices.DeleteFunc(slices.Clone(acts), func(act string) bool {
		return !slices.Contains(s.Acts, act) && !slices.ContainsFunc(s.Roles, func(role Role) bool {
			return slices.Contains(role.Acts, act) && role.has(user, repl)
		})
	})
}

// mayLook reports whether the user of a request may look. Who may act, may look too.
func (s *Dashboard) mayLook(r *http.Request) bool {
	if s.Look == nil {
		return true
	}
	user, repl := authenticatedUser(r)
	return s.Look.has(user, repl) || slices.ContainsFunc(s.Roles, func(role Role) bool { return role.has(user, repl) })
}

// authenticatedUser returns the user whom an authentication handler has let in; empty: there was none.
func authenticatedUser(r *http.Request) (string, *caddy.Replacer) {
	repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return "", caddy.NewEmptyReplacer()
	}
	user, _ := repl.GetString(userPlaceholder + "id")
	return user, repl
}

// validateRoles checks what users may do, and that each role can have a user.
func (s *Dashboard) validateRoles() error {
	if err := checkActs(s.Acts); err != nil {
		return err
	}
	for i := range s.Roles {
		role := &s.Roles[i]
		if len(role.Acts) == 0 {
			return errors.New("a role has no acts")
		}
		if err := checkActs(role.Acts); err != nil {
			return err
		}
		if !slices.ContainsFunc(role.Acts, func(act string) bool { return !slices.Contains(s.Acts, act) }) {
			return fmt.Errorf("all users may %s already, so that a role for that restricts nothing: leave it out of one of both", strings.Join(role.Acts, ", "))
		}
		if err := role.check(fmt.Sprintf("`acts %s`", strings.Join(role.Acts, " "))); err != nil {
			return err
		}
	}
	if s.Look != nil {
		if err := s.Look.check("`look`"); err != nil {
			return err
		}
	}
	return s.checkAccounts()
}

// checkActs checks names of acts.
func checkActs(list []string) error {
	for i, act := range list {
		if !slices.Contains(acts, act) {
			return fmt.Errorf("there is no act %.40q: there are %s", act, strings.Join(acts, ", "))
		}
		if slices.Contains(list[:i], act) {
			return fmt.Errorf("the act %s is named twice", act)
		}
	}
	return nil
}

func (m *RoleMembers) check(what string) error {
	if len(m.Users) == 0 && len(m.Claims) == 0 {
		return fmt.Errorf("no user can have %s: write `users`, `claim` or `claim_has` in its block, or leave the block out", what)
	}
	if slices.Contains(m.Users, "") {
		return fmt.Errorf("a user of %s has no name", what)
	}
	for _, user := range m.Users {
		if strings.HasPrefix(user, "{") {
			return fmt.Errorf("%s names the user %.80q: a placeholder is no name. Write `claim %[2]s VALUE`", what, user)
		}
	}
	for i := range m.Claims {
		c := &m.Claims[i]
		if !strings.HasPrefix(c.Claim, "{"+userPlaceholder) || !strings.HasSuffix(c.Claim, "}") || c.name() == userPlaceholder {
			return fmt.Errorf("%.80q in %s is no claim of a user: write a placeholder as in {%steam}", c.Claim, what, userPlaceholder)
		}
		if len(c.Values) == 0 || slices.Contains(c.Values, "") {
			return fmt.Errorf("the claim %s in %s has no value, or an empty one", c.Claim, what)
		}
		for _, v := range c.Values {
			if c.List && strings.ContainsAny(v, ", ") {
				return fmt.Errorf("%.80q in %s can be no element of a list that commas or spaces separate: write `claim` for a claim that is one value", v, what)
			}
		}
	}
	return nil
}

// checkAccounts checks roles with the accounts of basic_auth, if no other authentication stands before any page of
// the server: those are all users that there can be.
func (s *Dashboard) checkAccounts() error {
	if s.accounts == nil {
		return nil
	}
	all := slices.Clone(s.Roles)
	if s.Look != nil {
		all = append(all, Role{RoleMembers: *s.Look})
	}
	for i := range all {
		for _, user := range all[i].Users {
			if !s.accounts[user] {
				return fmt.Errorf("no account of basic_auth is called %.80q, so that no user can have this role", user)
			}
		}
		for _, c := range all[i].Claims {
			if c.name() != userPlaceholder+"id" {
				return fmt.Errorf("basic_auth gives no claim %s, so that no user can have this role: name `users`", c.Claim)
			}
		}
	}
	return nil
}
