package stockgate_test

import (
	"bytes"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// In each package, the compiler reads all types that the package's own types reach, and compiles the generic types
// among them again. These two reach so many that with them a package of two hundred lines took five seconds to
// compile. Only the packages named here have exported types that reach them.
var costlyTypes = map[string][]string{
	"github.com/redis/go-redis/v9.Client": {
		"internal/ledger/mirror", "internal/ledger/movein", // a Redis of the shop's
		"internal/test/redistest", "internal/test/stocktest", "caddymodule/internal/sitetest",
	},
	"github.com/caddyserver/caddy/v2/modules/caddyhttp.Server": { // they walk its routes
		"caddymodule/fast", "caddymodule/guard", "caddymodule/internal/matchers", "caddymodule/operate/doctor",
	},
}

// TestReachOfTypes: no exported type of other packages reaches one of the costly types, over fields, methods and their
// parameters.
func TestReachOfTypes(t *testing.T) {
	var list bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./...")
	cmd.Stdout, cmd.Stderr = &list, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	exports := make(map[string]string)
	for line := range strings.Lines(list.String()) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	gc := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	const own = "github.com/stockgate/stockgate/"
	for costly, may := range costlyTypes {
		for _, name := range may {
			if exports[own+name] == "" {
				t.Errorf("%s is not a package any more: take it off the list of %s", name, costly)
			}
		}
	}
	for path, file := range exports {
		name, isOwn := strings.CutPrefix(path, own)
		if !isOwn || file == "" {
			continue
		}
		p, err := gc.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		for costly, may := range costlyTypes {
			switch way := reach(p, costly); {
			case way != "" && !slices.Contains(may, name):
				t.Errorf("%s reaches %s, by %s: put an interface between them, like shard.link and judge.HTTPServer", name, costly, way)
			case way == "" && slices.Contains(may, name):
				t.Errorf("%s does not reach %s any more: take it off the list", name, costly)
			}
		}
	}
}

// reach returns the way from a type of a package to one by name; "": there is none.
func reach(p *types.Package, target string) string {
	w := &typeWalk{target: target, seen: make(map[types.Type]bool)}
	for _, name := range p.Scope().Names() {
		if of, ok := p.Scope().Lookup(name).(*types.TypeName); ok {
			if way := w.from(of.Type()); way != "" {
				return way
			}
		}
	}
	return ""
}

// typeWalk walks the types that others reach.
type typeWalk struct {
	target string
	seen   map[types.Type]bool
}

func (w *typeWalk) from(t types.Type) string {
	t = types.Unalias(t)
	if w.seen[t] {
		return ""
	}
	w.seen[t] = true
	switch t := t.(type) {
	case *types.Named:
		return w.named(t)
	case *types.Map:
		return w.either(t.Key(), t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		return w.from(t.Elem())
	case *types.Signature:
		return w.either(t.Params(), t.Results())
	case *types.Tuple:
		return w.each(t.Len(), func(i int) types.Type { return t.At(i).Type() })
	case *types.Struct:
		return w.each(t.NumFields(), func(i int) types.Type { return t.Field(i).Type() })
	case *types.Interface:
		return w.each(t.NumMethods(), func(i int) types.Type { return t.Method(i).Type() })
	}
	return ""
}

func (w *typeWalk) named(t *types.Named) string {
	name := t.String()
	if name == w.target {
		return name
	}
	way := w.each(t.TypeArgs().Len(), t.TypeArgs().At)
	if way == "" {
		way = w.from(t.Underlying())
	}
	if way == "" {
		way = w.each(t.NumMethods(), func(i int) types.Type { return t.Method(i).Type() })
	}
	if way == "" {
		return ""
	}
	return name + ", " + way
}

func (w *typeWalk) either(all ...types.Type) string {
	return w.each(len(all), func(i int) types.Type { return all[i] })
}

func (w *typeWalk) each(n int, at func(int) types.Type) string {
	for i := range n {
		if way := w.from(at(i)); way != "" {
			return way
		}
	}
	return ""
}
