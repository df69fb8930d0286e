package shopapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/strictjson"
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

// complete returns the answer to a request that lacks a field; nil: it is complete.
func (c *apiCall) complete() *apiProblem {
	switch {
	case c.operation == "extend" && c.holdFor == 0:
		return malformed("hold_for is missing: say for how long from now, such as 10m")
	case c.operation == "return" && c.returned.ID == "":
		return malformed("id is missing: it names this return, so that it can be asked for again")
	}
	return nil
}

// readFields reads the named fields of a body. Any other field is an error.
func (c *apiCall) readFields(body []byte, names []string) *apiProblem {
	all := strictjson.Members{
		"sale":     strictjson.Text(&c.sale),
		"token":    strictjson.Text(&c.token),
		"cause":    textLike(&c.cause, plainCause.MatchString, "must be 1 to 64 printable ASCII characters without space"),
		"hold_for": readHoldFor(&c.holdFor),
		"id":       textLike(&c.returned.ID, sale.IsName, mustBeName),
		"restock":  strictjson.Flag(&c.returned.Restock),
		"lines":    readReturnLines(&c.returned.Lines),
	}
	known := make(strictjson.Members, len(names))
	for _, name := range names {
		known[name] = all[name]
	}
	c.returned.Restock = true
	if err := strictjson.Read(body, func(r *strictjson.Reader) error { return r.Object(known) }); err != nil {
		return malformed("%v", err)
	}
	return nil
}

const mustBeName = "must be 1 to 128 printable ASCII characters without space"

// textLike reads a text for which isIt is true.
func textLike(into *string, isIt func(string) bool, must string) strictjson.Member {
	return func(r *strictjson.Reader) error {
		if err := strictjson.Text(into)(r); err != nil || isIt(*into) {
			return err
		}
		return errors.New(must)
	}
}

func readHoldFor(into *time.Duration) strictjson.Member {
	return func(r *strictjson.Reader) error {
		var text string
		if err := strictjson.Text(&text)(r); err != nil {
			return err
		}
		span, err := sale.ParseSpan(text)
		if err != nil {
			return errors.New("must be whole hours, minutes or seconds such as 90s, 10m or 1h30m")
		}
		if *into = time.Duration(span); *into < time.Second || *into > sale.MostMaxHold {
			return fmt.Errorf("must be 1s to %s", sale.Span(sale.MostMaxHold))
		}
		return nil
	}
}

// readReturnLines reads the lines of a return. An empty list is an error: without the field
// the whole order is returned, which an empty list must not mean by mistake.
func readReturnLines(into *[]sale.Line) strictjson.Member {
	return func(r *strictjson.Reader) error {
		err := r.Array(func(int) error {
			l, err := readReturnLine(r)
			*into = append(*into, l)
			return err
		})
		if err == nil && (len(*into) == 0 || len(*into) > sale.MaxLines) {
			return fmt.Errorf("must have 1 to %d entries; leave the field out to return everything", sale.MaxLines)
		}
		return err
	}
}

func readReturnLine(r *strictjson.Reader) (l sale.Line, err error) {
	err = r.Object(strictjson.Members{
		"sku":    textLike(&l.SKU, sale.IsName, mustBeName),
		"region": textLike(&l.Region, sale.IsName, mustBeName),
		"qty": func(r *strictjson.Reader) error {
			if err := strictjson.Integer(&l.Quantity)(r); err != nil {
				return err
			}
			if l.Quantity < 1 || l.Quantity > sale.MaxUnits {
				return errors.New("must be a number of units above 0")
			}
			return nil
		},
	})
	if err == nil && (l.SKU == "" || l.Quantity == 0) {
		err = errors.New("needs sku and qty")
	}
	return l, err
}

// isJSON reports whether there is one Content-Type, and it is JSON in UTF-8.
func isJSON(values []string) bool {
	if len(values) != 1 {
		return false
	}
	media, params, err := mime.ParseMediaType(values[0])
	if err != nil || media != "application/json" && !(strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")) {
		return false
	}
	charset, given := params["charset"]
	return !given || attempt.IsUTF8(charset)
}
