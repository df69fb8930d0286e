// Package recipe has the shops whose configuration is tested in front of the shop itself: what is in the
// directories of examples beside the shop, as data.
package recipe

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/stockgate/stockgate/examples"
)

// Recipe is what is known of a shop.
type Recipe struct {
	ID        string `yaml:"-"` // its directory in examples, and its page in docs
	Caddyfile string `yaml:"-"` // the configuration

	Name     string
	Versions string // that have these doors, such as 3.7
	Package  string // of npm
	Tested   string // the version of Package with which the configuration is tested

	Doors   []door
	Carries []string // an order has one of these: "header NAME", "cookie NAME"

	GraphQL   string   `yaml:"graphql"` // the path of its API; empty: it has none
	Mutations []string // all of that API
	Below     []string // the paths of its API
	Requests  []request

	Cart      cart
	Variables []setting
	Questions []asked
	Answers   answers
}

// door is a way to place an order. Order is zero where it leads past the gate, and is closed.
type door struct {
	Door  string // in Markdown
	Text  string // what becomes of it
	Order request
}

// cart says how answers show a cart: the name of its array, and fields of the elements.
type cart struct {
	Lines, SKU, ID, Quantity string
}

// setting is what the configuration reads of the environment. Question is empty where its default will do.
type setting struct {
	Name, Text, Question string
}

// asked is a question about the line of the configuration that begins so.
type asked struct {
	Title, Text, Line string
}

// answers are the shop's to the questions of the gate, as JSON in which {lines} stands for the lines of
// the cart, and Line is one of them, with {sku} and {quantity}.
type answers struct {
	Line   string
	Lookup reply
	Ask    reply
}

// reply answers the question that has Asks in its URL or its body. Refused is the one after an order that the
// shop has refused.
type reply struct {
	Asks, Answer, Refused string
}

// All returns the shops, by their names. The data is part of the program: a test reads it.
var All = sync.OnceValue(func() (all []*Recipe) {
	files, err := examples.Recipes.ReadDir(".")
	for _, dir := range files {
		var r *Recipe
		if r, err = read(dir.Name()); err != nil {
			break
		}
		all = append(all, r)
	}
	if err != nil {
		panic(err)
	}
	return all
})

func read(dir string) (*Recipe, error) {
	config, err := examples.Recipes.ReadFile(path.Join(dir, "Caddyfile"))
	if err != nil {
		return nil, err
	}
	data, err := examples.Recipes.ReadFile(path.Join(dir, "recipe.yaml"))
	if err != nil {
		return nil, err
	}
	r := &Recipe{ID: dir, Caddyfile: string(config)}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(r); err != nil {
		return nil, fmt.Errorf("examples/%s/recipe.yaml: %w", dir, err)
	}
	return r, nil
}

// Places reports whether a request places an order, and the configuration has a gate before it.
func (r *Recipe) Places(s Sent) bool {
	return slices.ContainsFunc(r.Doors, func(d door) bool { return d.Order.is(s) })
}

// Resembles reports whether a request has what is typical of an order at this shop, perhaps at another path.
func (r *Recipe) Resembles(s Sent) bool {
	return slices.ContainsFunc(r.Doors, func(d door) bool { return d.Order.isAtAnyPath(s) })
}

// Own reports whether a request is to the shop's API.
func (r *Recipe) Own(s Sent) bool {
	if r.GraphQL != "" {
		return s.below(r.GraphQL)
	}
	return slices.ContainsFunc(r.Below, s.below)
}

// Knows reports whether a request that may change something is one that these versions of the shop have.
func (r *Recipe) Knows(s Sent) bool {
	if r.GraphQL != "" {
		return s.isAt(r.GraphQL) && slices.Contains(r.Mutations, s.Field)
	}
	return slices.ContainsFunc(r.Requests, func(q request) bool { return q.is(s) })
}
