package command_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/command"
)

var orderName = regexp.MustCompile(`^[!-~]{1,128}$`)

// FuzzOrders: no file makes the command panic; every name that it finds is one, and
// stands there once.
func FuzzOrders(f *testing.F) {
	for _, text := range []string{"", "a\nb\na\n", "id,x\na,1\n", "x;Ref\r\n1;a\r\n", "\ufeffid\na\n", "\"id\"\n\"a\"\n", "id\n\"a", "a,b\n", "id\ta\n1\t2\n"} {
		f.Add(text, "")
		f.Add(text, "x")
	}
	f.Fuzz(func(t *testing.T, text, column string) {
		names, err := command.ReadOrders(strings.NewReader(text), column)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, name := range names {
			if !orderName.MatchString(name) || seen[name] || !strings.Contains(text, name) && !strings.Contains(text, `"`) {
				t.Errorf("%q in %q", name, text)
			}
			seen[name] = true
		}
	})
}
