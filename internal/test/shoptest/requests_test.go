//go:build shops

package shoptest_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stockgate/stockgate/internal/recipe"
)

// recipeOf returns what is known of a shop.
func recipeOf(t *testing.T, id string) *recipe.Recipe {
	t.Helper()
	all := recipe.All()
	i := slices.IndexFunc(all, func(r *recipe.Recipe) bool { return r.ID == id })
	if i < 0 {
		t.Fatalf("there is no recipe of %s", id)
	}
	return all[i]
}

// The recipe names every request that may change something, as the shop itself lists them.
func (v *vendure) lists(t *testing.T) {
	b := newBrowser(v.url)
	defer b.close()
	r, err := b.once(t.Context(), "POST", "/shop-api", graphQL(`{__schema{mutationType{fields{name}}}}`, nil))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	fields, _ := at(r.body, "data", "__schema", "mutationType", "fields").([]any)
	for i := range fields {
		names = append(names, fmt.Sprint(at(r.body, "data", "__schema", "mutationType", "fields", i, "name")))
	}
	sameNames(t, names, recipeOf(t, "vendure").Mutations)
}

var (
	exportedMethod = regexp.MustCompile(`exports\.(POST|PUT|PATCH|DELETE) = `)
	parameter      = regexp.MustCompile(`\[[a-z_]+\]`)
)

func (m *medusa) lists(t *testing.T) {
	var names []string
	api := os.DirFS(filepath.Join(medusaDir, "node_modules/@medusajs/medusa/dist/api"))
	for _, below := range []string{"store", "auth"} {
		err := fs.WalkDir(api, below, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || path.Base(name) != "route.js" {
				return err
			}
			text, err := fs.ReadFile(api, name)
			for _, found := range exportedMethod.FindAllStringSubmatch(string(text), -1) {
				if line := found[1] + " /" + parameter.ReplaceAllString(path.Dir(name), "*"); !slices.Contains(names, line) {
					names = append(names, line)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var known []string
	for _, q := range recipeOf(t, "medusa").Requests {
		known = append(known, q.Method+" "+q.Path)
	}
	sameNames(t, names, known)
}

func sameNames(t *testing.T, shop, recipe []string) {
	t.Helper()
	slices.Sort(shop)
	if recipe = slices.Sorted(slices.Values(recipe)); !slices.Equal(shop, recipe) {
		t.Errorf("the shop has %q, recipe.yaml %q", shop, recipe)
	}
}
