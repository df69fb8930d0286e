package strictjson_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/stockgate/stockgate/internal/strictjson"
)

// FuzzStrict: what is taken is JSON from which encoding/json loses no member, and the
// three ways of reading take the same texts and the same values from them.
func FuzzStrict(f *testing.F) {
	for _, raw := range []string{
		``, `{}`, `[]`, `null`, `{"id":"x","delta":5,"dry_run":true,"lines":[{"sku":"a","qty":1}]}`,
		`{"delta":5,"delta":-3}`, `{"dry_run":true,"Dry_Run":false}`, `{"id":"\ud83d\ude00\\\ud800"}`, `{"id":"x"}{}`,
		`{"names":{"a":"b","a":"c"}}`, `{"raw":[[[[{"a":1,"a":2}]]]]}`, `{"open":{"a":"b","x":[1,{"y":null}]}}`, "\ufeff{}", `{"id":"x"]`, `[1,]`,
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var tree any
		if strictjson.Unmarshal(raw, &tree) == nil {
			if got, want := members(tree), names(t, raw); got != want || !utf8.Valid(raw) {
				t.Fatalf("%q: %d of %d members are left", raw, got, want)
			}
		}
		var whole, parts order
		err := strictjson.Unmarshal(raw, &whole)
		if err == nil {
			checkSpelling(t, raw, tree)
		}
		if readOrder(string(raw), &parts) != nil || err != nil {
			return
		}
		if whole.ID != parts.ID || whole.Delta != parts.Delta || whole.Dry != parts.Dry || len(whole.Lines) != len(parts.Lines) {
			t.Fatalf("%q: read as %+v and as %+v", raw, whole, parts)
		}
	})
}

// checkSpelling fails where a field of an order is there in another case.
func checkSpelling(t *testing.T, raw []byte, tree any) {
	known := map[string]bool{"id": true, "delta": true, "dry_run": true, "lines": true, "names": true, "raw": true, "at": true, "Plain": true, "ref": true}
	object, _ := tree.(map[string]any)
	for name := range object {
		if !known[name] {
			t.Fatalf("%q: %q is taken", raw, name)
		}
	}
	again, err := json.Marshal(tree)
	var once, twice order
	if err != nil || json.Unmarshal(raw, &once) != nil || json.Unmarshal(again, &twice) != nil {
		t.Fatalf("%q: taken, but not by encoding/json (%v)", raw, err)
	}
	if once.Raw, twice.Raw = nil, nil; !reflect.DeepEqual(once.Lines, twice.Lines) || once.ID != twice.ID || once.Dry != twice.Dry {
		t.Fatalf("%q: read as %+v, and from its tree as %+v", raw, once, twice)
	}
}

// members counts those of all objects in a tree.
func members(tree any) (n int) {
	switch v := tree.(type) {
	case map[string]any:
		for _, value := range v {
			n += 1 + members(value)
		}
	case []any:
		for _, value := range v {
			n += members(value)
		}
	}
	return n
}

// names counts the names before colons, whether or not they come twice.
func names(t *testing.T, raw []byte) (n int) {
	quoted, escaped := false, false
	if !json.Valid(raw) {
		t.Fatalf("%q is taken, and is not JSON", raw)
	}
	for _, c := range bytes.TrimSpace(raw) {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case !quoted && c == ':':
			n++
		}
	}
	return n
}
