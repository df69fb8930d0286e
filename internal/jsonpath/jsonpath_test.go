package jsonpath_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stockgate/stockgate/internal/jsonpath"
)

// An element of an array is what is meant only where all elements are read.
func TestAt(t *testing.T) {
	const document = `{"a":[{"id":1},{"id":2}],"b":{"c":[[7]]},"0":{"1":"x"},"n":null,"e":[]}`
	for _, c := range []struct{ path, beside, want string }{
		{"a.0.id", "a.1", "1 true"},
		{"a.1.id", "a.0.id", "2 true"},
		{"a.0.id", "", "<nil> false"},
		{"a.1.id", "", "<nil> false"},
		{"a.0.id", "b.1", "<nil> false"},
		{"a.2.id", "", "<nil> false"},
		{"a.id", "", "<nil> true"},
		{"b.c.0.0", "", "7 true"},
		{"b.c.0.1", "", "<nil> false"},
		{"0.1", "", "x true"},
		{"n", "", "<nil> true"},
		{"n.0", "", "<nil> true"},
		{"e.0", "", "<nil> true"},
		{"none", "", "<nil> true"},
	} {
		var v any
		if err := json.Unmarshal([]byte(document), &v); err != nil {
			t.Fatal(err)
		}
		found, whole := jsonpath.ElementsOf(c.path, c.beside).At(v, c.path)
		if got := fmt.Sprint(found, " ", whole); got != c.want {
			t.Errorf("%s beside %q: %s, want %s", c.path, c.beside, got, c.want)
		}
	}
	if found, whole := jsonpath.ElementsOf("0.id").At([]any{map[string]any{"id": "x"}}, "0.id"); found != "x" || !whole {
		t.Errorf("an array as the document: %v %v", found, whole)
	}
	if _, whole := jsonpath.ElementsOf("0.id").At([]any{1, 2}, "0.id"); whole {
		t.Error("two elements are one")
	}
}

func TestSkipped(t *testing.T) {
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{[]string{"a", "b.c"}, ""},
		{[]string{"a.0", "a.1.x"}, ""},
		{[]string{"a.1.x"}, "a"},
		{[]string{"a.0.b.1", "a.0.c.0"}, "a.0.b"},
		{[]string{"a.0", "a.2"}, "a"},
	} {
		if array, ok := jsonpath.ElementsOf(c.paths...).Skipped(c.paths...); array != c.want || ok != (c.want != "") {
			t.Errorf("%v: %q %v, want %q", c.paths, array, ok, c.want)
		}
	}
}
