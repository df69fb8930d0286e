package dashboard_test

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// account is one of basic_auth with the password wall.
func account(name string) object {
	return object{"username": name, "password": "$2a$04$A6F6Xp8p7JKyxwGWJSxjGOr07AACJICeum9KXXtrLN6iWhUINUd/S"}
}

func accounts(names ...string) object {
	list := []any{}
	for _, name := range names {
		list = append(list, account(name))
	}
	return object{"handler": "authentication", "providers": object{"http_basic": object{"accounts": list}}}
}

// Each user may do what their roles say, and looks only if `look` or a role names them.
func TestRoles(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	role := func(acts []string, claim string, values ...string) object {
		return object{"acts": acts, "claims": []any{object{"claim": claim, "values": values}}}
	}
	s.Gates = []any{at("/ops", accounts("ann", "bob", "eve", "dan"), page(object{
		"roles": []any{object{"acts": []string{"open", "pause"}, "users": []string{"ann"}}, role([]string{"stock"}, "{http.auth.user.id}", "bob", "ann")},
		"look":  object{"users": []string{"eve"}},
	}))}
	s.Load(app)
	s.OpenSale()
	for _, c := range []struct {
		user  string
		look  int
		may   []string
		pause int
	}{
		{"ann", 200, []string{"open", "pause", "stock"}, 200},
		{"bob", 200, []string{"stock"}, 403},
		{"eve", 200, []string{}, 403},
		{"dan", 403, nil, 403},
	} {
		login := map[string]string{"Authorization": basicOf(c.user)}
		if a := s.AskWith("http", "GET", "/ops/", "", login); a.Status != c.look {
			t.Errorf("%s looks: %d %s", c.user, a.Status, a.Body)
		}
		if c.look == http.StatusOK {
			if got := actsOf(t, s, c.user); !slices.Equal(got, c.may) {
				t.Errorf("%s may %q, want %q", c.user, got, c.may)
			}
		}
		if a := post(s, "/ops/acts/sales/double11/pause", "{}", login); a.Status != c.pause {
			t.Errorf("%s pauses: %d %s", c.user, a.Status, a.Body)
		}
	}
	movements := s.Admin("GET", "/stockgate/sales/double11/journal/movements", "").Body
	if !strings.Contains(movements, `"kind":"paused"`) || !strings.Contains(movements, `"cause":"ann@`) {
		t.Errorf("the journal does not name who has paused it: %s", movements)
	}
}

// A role that no user can have is an error when the configuration is loaded.
func TestImpossibleRoles(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	two := accounts("ann", "{env.HOME}")
	claims := func(claim string, list bool, values ...string) object {
		return object{"claims": []any{object{"claim": claim, "values": values, "list": list}}}
	}
	role := func(more object) object {
		all := object{"acts": []string{"open"}}
		for name, value := range more {
			all[name] = value
		}
		return object{"roles": []any{all}}
	}
	for name, c := range map[string]struct {
		login   any
		options object
		fails   string
	}{
		"an account":           {accounts("ann"), role(object{"users": []string{"ann"}}), ""},
		"no account":           {accounts("ann"), role(object{"users": []string{"ann", "anna"}}), `no account of basic_auth is called "anna"`},
		"a claim of an id":     {accounts("ann"), role(claims("{http.auth.user.id}", false, "ann")), ""},
		"a claim of basic":     {accounts("ann"), role(claims("{http.auth.user.team}", false, "ops")), "basic_auth gives no claim {http.auth.user.team}"},
		"look":                 {accounts("ann"), object{"look": object{"users": []string{"bob"}}}, `no account of basic_auth is called "bob"`},
		"empty":                {two, role(nil), "no user can have `acts open`"},
		"look empty":           {two, object{"look": object{}}, "no user can have `look`"},
		"no acts":              {two, object{"roles": []any{object{"users": []string{"ann"}}}}, "a role has no acts"},
		"an unknown act":       {two, object{"roles": []any{object{"acts": []string{"opne"}, "users": []string{"ann"}}}}, `there is no act "opne"`},
		"an act twice":         {two, object{"acts": []string{"open", "open"}}, "the act open is named twice"},
		"for all already":      {two, object{"acts": []string{"open"}, "roles": []any{object{"acts": []string{"open"}, "users": []string{"ann"}}}}, "all users may open already"},
		"a placeholder":        {two, role(object{"users": []string{"{http.auth.user.id}"}}), "a placeholder is no name"},
		"no placeholder":       {two, role(claims("team", false, "ops")), `"team" in `},
		"another placeholder":  {two, role(claims("{http.request.header.Team}", false, "ops")), "is no claim of a user"},
		"no value":             {two, role(claims("{http.auth.user.team}", false)), "has no value"},
		"no element":           {two, role(claims("{http.auth.user.teams}", true, "night shift")), "can be no element"},
		"unprotected":          {object{"handler": "vars"}, object{"unprotected": true, "look": object{"users": []string{"ann"}}}, "no authentication stands before a page with roles"},
		"unprotected, but not": {two, object{"unprotected": true, "look": object{"users": []string{"ann"}}}, ""},
	} {
		s.Gates = []any{c.login, page(c.options)}
		err := s.TryLoad(app)
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %v, want %q", name, err, c.fails)
		}
	}
}

// actsOf are what the page says that a user may do.
func actsOf(t *testing.T, s *sitetest.Site, user string) []string {
	t.Helper()
	_, hello, _ := listenAs(t, s, "/ops/events?sale=double11", basicOf(user))()
	return hello.Acts
}

// basicOf are the credentials of a user whose password is wall.
func basicOf(user string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":wall"))
}
