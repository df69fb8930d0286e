package shopapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/sale"
)

// MaxBody bounds the body of a request to the shop's API in bytes: a token has at
// most 4 KiB, fifty lines have less than 14.
const MaxBody = 16 << 10

var plainCause = regexp.MustCompile(`^[!-~]{1,64}$`)

// apiFields are the fields that a body may have, by operation.
var apiFields = map[string][]string{
	"show":    {},
	"confirm": {"sale", "token"},
	"release": {"sale", "cause"},
	"extend":  {"sale", "hold_for", "token"},
	"return":  {"sale", "id", "lines", "restock", "cause"},
}

// read reads the parameters and the body. It is strict: a misspelt field must not
// become another order of the shop.
func (c *apiCall) read(r *http.Request) error {
	query, err := request.Query(r, "sale")
	if err != nil {
		return malformed("%v", err)
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, MaxBody))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &apiProblem{Status: http.StatusRequestEntityTooLarge, Reason: "body_too_large", Detail: "the body is larger than " + strconv.FormatInt(tooLarge.Limit, 10) + " bytes"}
	} else if err != nil {
		return malformed("the body ended early")
	}
	if len(bytes.TrimSpace(body)) > 0 {
		if !isJSON(r.Header.Values("Content-Type")) {
			return &apiProblem{Status: http.StatusUnsupportedMediaType, Reason: "media_type", Detail: "a body is JSON: send `Content-Type: application/json`"}
		}
		if no := c.readFields(body, apiFields[c.operation]); no != nil {
			return no
		}
	}
	if query.Has("sale") {
		if c.sale != "" && c.sale != query.Get("sale") {
			return malformed("the body and the parameter name two sales")
		}
		c.sale = query.Get("sale")
	}
	if (c.sale != "" || query.Has("sale")) && !sale.IsID(c.sale) {
		return malformed("sale is no id of a sale: 1 to 64 of a-z, 0-9, dot, underscore and hyphen, beginning with a letter or digit")
	}
	if no := c.complete(); no != nil {
		return no
	}
	return nil
}

// complete says what is missing.
func (c *apiCall) complete() *apiProblem {
	switch {
	case c.operation == "extend" && c.holdFor == 0:
		return malformed("hold_for is missing: say for how long from now, such as 10m")
	case c.operation == "return" && c.returned.ID == "":
		return malformed("id is missing: it names this return, so that it can be asked for again")
	}
	return nil
}

// readFields reads those fields of a body.
func (c *apiCall) readFields(body []byte, names []string) *apiProblem {
	text := func(into *string) func(json.RawMessage) *apiProblem {
		return func(raw json.RawMessage) *apiProblem { return readTyped(raw, into, "must be text") }
	}
	all := map[string]func(json.RawMessage) *apiProblem{
		"sale":  text(&c.sale),
		"token": text(&c.token),
		"cause": func(raw json.RawMessage) *apiProblem {
			if no := readTyped(raw, &c.cause, "must be text"); no != nil {
				return no
			}
			if !plainCause.MatchString(c.cause) {
				return malformed("must be 1 to 64 printable ASCII characters without space")
			}
			return nil
		},
		"hold_for": func(raw json.RawMessage) *apiProblem { return readHoldFor(raw, &c.holdFor) },
		"id": func(raw json.RawMessage) *apiProblem {
			if no := readTyped(raw, &c.returned.ID, "must be text"); no != nil {
				return no
			}
			if !sale.IsName(c.returned.ID) {
				return malformed("must be 1 to 128 printable ASCII characters without space")
			}
			return nil
		},
		"restock": func(raw json.RawMessage) *apiProblem {
			return readTyped(raw, &c.returned.Restock, "must be true or false")
		},
		"lines": func(raw json.RawMessage) *apiProblem { return readReturnLines(raw, &c.returned.Lines) },
	}
	known := make(map[string]func(json.RawMessage) *apiProblem, len(all))
	for _, name := range names {
		known[name] = all[name]
	}
	c.returned.Restock = true
	return readObject(body, known)
}

// readObject reads one JSON object: names match exactly and come once, no value is
// null.
func readObject(raw []byte, fields map[string]func(json.RawMessage) *apiProblem) *apiProblem {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') || !utf8.Valid(raw) {
		return malformed("the body must be one JSON object in UTF-8")
	}
	seen := make(map[string]bool, len(fields))
	for dec.More() {
		var value json.RawMessage
		key, err := dec.Token()
		if err == nil {
			err = dec.Decode(&value)
		}
		if err != nil {
			return malformed("the JSON cannot be read")
		}
		name, _ := key.(string)
		read, known := fields[name]
		switch {
		case !known && len(fields) == 0:
			return malformed("there is no field %.40q; none is known", name)
		case !known:
			return malformed("there is no field %.40q; known are %s", name, namesOf(fields))
		case seen[name]:
			return malformed("%s is given twice", name)
		case string(value) == "null":
			return malformed("%s is null: give a value or leave the field out", name)
		}
		seen[name] = true
		if no := read(value); no != nil {
			no.Detail = name + " " + no.Detail
			return no
		}
	}
	if _, err := dec.Token(); err != nil { // the closing brace
		return malformed("the JSON cannot be read")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return malformed("something follows the JSON object")
	}
	return nil
}

func readTyped[T any](raw json.RawMessage, into *T, must string) *apiProblem {
	if err := json.Unmarshal(raw, into); err != nil {
		return malformed("%s", must)
	}
	return nil
}

func readHoldFor(raw json.RawMessage, into *time.Duration) *apiProblem {
	var text string
	if no := readTyped(raw, &text, "must be text such as \"10m\""); no != nil {
		return no
	}
	span, err := sale.ParseSpan(text)
	if err != nil {
		return malformed("must be whole hours, minutes or seconds such as 90s, 10m or 1h30m")
	}
	if *into = time.Duration(span); *into < time.Second || *into > sale.MostMaxHold {
		return malformed("must be 1s to %s", sale.Span(sale.MostMaxHold))
	}
	return nil
}

// readReturnLines reads the lines of a return. An empty list is an error: without the
// field everything is returned, and nobody should mean that by nothing.
func readReturnLines(raw json.RawMessage, into *[]sale.Line) *apiProblem {
	var list []json.RawMessage
	if no := readTyped(raw, &list, "must be a list"); no != nil {
		return no
	}
	if len(list) == 0 || len(list) > sale.MaxLines {
		return malformed("must have 1 to %d entries; leave the field out to return everything", sale.MaxLines)
	}
	for i, entry := range list {
		var l sale.Line
		name := func(into *string) func(json.RawMessage) *apiProblem {
			return func(raw json.RawMessage) *apiProblem {
				if no := readTyped(raw, into, "must be text"); no != nil || sale.IsName(*into) {
					return no
				}
				return malformed("must be 1 to %d printable ASCII characters without space", sale.MaxName)
			}
		}
		no := readObject(entry, map[string]func(json.RawMessage) *apiProblem{
			"sku": name(&l.SKU), "region": name(&l.Region),
			"qty": func(raw json.RawMessage) *apiProblem {
				if no := readTyped(raw, &l.Quantity, "must be a whole number"); no != nil {
					return no
				}
				if l.Quantity < 1 || l.Quantity > sale.MaxUnits {
					return malformed("must be a number of units above 0")
				}
				return nil
			},
		})
		switch {
		case no != nil:
			no.Detail = "number " + strconv.Itoa(i+1) + ": " + strings.Replace(no.Detail, "the body", "it", 1)
			return no
		case l.SKU == "" || l.Quantity == 0:
			return malformed("number %d needs sku and qty", i+1)
		}
		*into = append(*into, l)
	}
	return nil
}

// isJSON says that there is one Content-Type, and that it is JSON in UTF-8.
func isJSON(values []string) bool {
	if len(values) != 1 {
		return false
	}
	media, params, err := mime.ParseMediaType(values[0])
	if err != nil || media != "application/json" && !(strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")) {
		return false
	}
	charset, given := params["charset"]
	return !given || strings.EqualFold(charset, "utf-8")
}

// namesOf lists what there is, in the order of the alphabet.
func namesOf[T any](of map[string]T) string {
	return strings.Join(slices.Sorted(maps.Keys(of)), ", ")
}
