package lua_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/lua"
)

// A script raises a schema to what a record needs, by a constant: with the newest that its caller
// understands, the first edge of a newer version would stop all others.
func TestSchemasThatAreWritten(t *testing.T) {
	newest := regexp.MustCompile(`(?:'schema', |\.schema\b[^<>]* = .*)(?:tonumber\()?ARGV`)
	constant := regexp.MustCompile(`SCHEMA_OF_[A-Z]+\)`)
	n := 0
	for name, text := range files(t) {
		for i, line := range strings.Split(text, "\n") {
			if newest.MatchString(line) {
				t.Errorf("%s:%d writes the newest schema that the caller understands: %s", name, i+1, line)
			}
			n += len(constant.FindAllString(line, -1))
		}
	}
	if n != 10 {
		t.Errorf("%d places write the schema that a record needs, 10 are known", n)
	}
}

// No new sale has a schema that a version in the field does not know, and what raises it to each
// later one has a name, which the doctor tells.
func TestWhatRaisesASchema(t *testing.T) {
	constants := regexp.MustCompile(`(?m)^local (SCHEMA_OF_[A-Z_, ]+) = ([0-9, ]+)$`)
	named := map[int64]bool{}
	for name, text := range files(t) {
		for _, m := range constants.FindAllStringSubmatch(text, -1) {
			numbers := strings.Split(m[2], ", ")
			for i, of := range strings.Split(m[1], ", ") {
				n, err := strconv.ParseInt(numbers[i], 10, 64)
				if err != nil || n > lua.Schema || of == "SCHEMA_OF_SALES" && n != lua.SaleSchema {
					t.Errorf("%s: %s is %s; a new sale has %d, and this edge understands %d", name, of, numbers[i], lua.SaleSchema, lua.Schema)
				}
				named[n] = true
			}
		}
	}
	for n := int64(2); n <= lua.Schema; n++ {
		said := lua.Raises(n-1, n)
		if !named[n] || strings.HasPrefix(said, " ") {
			t.Errorf("schema %d: a constant has it: %v; what raises a shard to it: %q", n, named[n], said)
		}
	}
	if lua.Raises(lua.Schema, lua.Schema) != "" {
		t.Error("something raises a shard to a schema that this edge does not understand")
	}
}
