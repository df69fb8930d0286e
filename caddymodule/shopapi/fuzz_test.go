package shopapi_test

import (
	"encoding/json"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/shopapi"
	"github.com/stockgate/stockgate/internal/sale"
)

var plain = regexp.MustCompile(`^[!-~]{1,128}$`)

// FuzzAPIBody checks that no body makes the API panic, and that what it accepts is within
// bounds and what encoding/json reads too.
func FuzzAPIBody(f *testing.F) {
	for _, body := range []string{
		"", "{}", `{"sale":"double11","token":"x"}`, `{"cause":"late"}`, `{"hold_for":"1h30m","token":"a.b.c"}`,
		`{"id":"r","lines":[{"sku":"a","qty":1,"region":"n"},{"qty":2,"sku":"b"}],"restock":false}`, `{"id":"r","lines":[]}`,
		`{"id":"r","id":"s"}`, `{"ID":"r"}`, `{"id":null}`, "[", `{"lines":[[[[`, "{}{}", "\ufeff{}", `{"id":"\ud800"}`,
	} {
		for _, operation := range []string{"confirm", "release", "extend", "return"} {
			f.Add(operation, body)
		}
	}
	f.Fuzz(func(t *testing.T, operation, body string) {
		if !slices.Contains([]string{"confirm", "release", "extend", "return"}, operation) {
			return
		}
		r := httptest.NewRequest("POST", "/reservations/r/"+operation, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		got, err := shopapi.ReadAPI(r)
		if err != nil {
			return
		}
		back := got.Returned
		switch {
		case operation == "extend" && (got.HoldFor <= 0 || got.HoldFor > int64(sale.MostMaxHold)),
			operation == "return" && (!plain.MatchString(back.ID) || len(back.Lines) > sale.MaxLines),
			got.Sale != "" && !regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`).MatchString(got.Sale),
			got.Cause != "" && !plain.MatchString(got.Cause):
			t.Errorf("taken: %+v", got)
		}
		for _, l := range back.Lines {
			if !plain.MatchString(l.SKU) || l.Region != "" && !plain.MatchString(l.Region) || l.Quantity < 1 || l.Quantity > sale.MaxUnits {
				t.Errorf("taken: %+v", l)
			}
		}
		if strings.TrimSpace(body) == "" {
			return
		}
		other := struct {
			Sale, Token, Cause, ID string
			Restock                *bool
			Lines                  []sale.Line
		}{}
		if err := json.Unmarshal([]byte(body), &other); err != nil {
			t.Fatalf("taken, but not JSON: %v", err)
		}
		if other.Sale != got.Sale || other.Token != got.Token || other.Cause != got.Cause || other.ID != back.ID ||
			!slices.Equal(other.Lines, back.Lines) || operation == "return" && back.Restock != (other.Restock == nil || *other.Restock) {
			t.Errorf("read as %+v, by others as %+v", got, other)
		}
	})
}
