package stockgate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// sharedNames are the names that exported types of several packages have, and why. Any other name stands for one
// type.
var sharedNames = map[string]string{
	// the same word of Go in each package that has one
	"Options":  "the options of the package's New or Open",
	"Metrics":  "what the package counts, as an interface that its caller fills in",
	"Report":   "what the package's run or subject is reported as",
	"State":    "the state of the package's subject",
	"Spec":     "what the package compiles",
	"Reader":   "reads what the package is about",
	"Verifier": "verifies what the package is about",
	"Server":   "a running server",
	"Conn":     "a connection",
	"Secret":   "signs or hashes for the package",
	"Kind":     "of a refusal, of a script",
	// a configuration, and what is made of it or stands behind it
	"Gate":       "the handler, and what probes and guards know of it",
	"Rate":       "the option, its limit and the limit in Redis",
	"Mirror":     "the option, and the writer",
	"Journal":    "the option, and the reader",
	"Outbox":     "the option, and the sender",
	"Line":       "the option, and the line of an order",
	"List":       "the list of a configuration, and its members",
	"Lists":      "the lists of a configuration, and those in Redis",
	"Key":        "the option, and the signing key of tokens",
	"Challenger": "the option's, and the one below it",
	"Judge":      "the interface of the fast path, and the gate's judge",
	"Slots":      "of a gate, and the bound below them",
	"Sale":       "a sale, and the sale that a plan is made for",
	"Status":     "the handler, and the status of a sale",
	// one thing, in the form that each layer has of it
	"Ledger":    "the ledger of Stockgate, its drivers, and as much of it as a fence needs",
	"Journals":  "the journals of shards, and as much of them as a reader needs",
	"Stock":     "as much of the stock as the reader needs",
	"Entry":     "an entry as written, as stored and as published",
	"Position":  "a position in a journal, as stored and as published",
	"Cell":      "a stock cell, as stored and as published",
	"Record":    "a reservation as stored, and as read",
	"Operation": "the declaration of an operation, and one that is called",
	"Listing":   "a sale as an edge knows it, and as much of it as filters need",
	"Health":    "what a server reports, and its JSON",
	"MoveIn":    "the module, and the answer of the admin API",
	"MovedIn":   "what was moved in, and its JSON",
}

// testRooms are the directories, and what lies below them, that are for tests and examples only.
var testRooms = []string{"bench", "cmd", "e2e", "examples", "internal/test", "internal/shop", "internal/stampede", "caddymodule/internal/sitetest"}

func isTestRoom(dir string) bool {
	return slices.ContainsFunc(testRooms, func(test string) bool { return dir == test || strings.HasPrefix(dir, test+"/") })
}

// TestTypeNames: a name of an exported type stands for one thing over all packages, or sharedNames says why not.
func TestTypeNames(t *testing.T) {
	packages := make(map[string][]string) // that have a type of that name
	for dir, files := range sources(t) {
		if isTestRoom(dir) {
			continue
		}
		for _, file := range files {
			for _, name := range exportedTypes(t, file) {
				packages[name] = append(packages[name], dir)
			}
		}
	}
	if len(packages) < 300 {
		t.Fatalf("only %d types found", len(packages))
	}
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		shared := len(packages[name]) > 1
		switch why := sharedNames[name]; {
		case shared && why == "":
			t.Errorf("%s is a type in each of %q: rename all but one, or say in sharedNames why they are one thing", name, packages[name])
		case !shared && why != "":
			t.Errorf("%s is one type now: remove it from sharedNames", name)
		}
	}
	for name := range sharedNames {
		if packages[name] == nil {
			t.Errorf("no type is called %s: remove it from sharedNames", name)
		}
	}
}

func exportedTypes(t *testing.T, name string) (names []string) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() && !s.Assign.IsValid() { // an alias is the same type
				names = append(names, s.Name.Name)
			}
		}
	}
	return names
}
