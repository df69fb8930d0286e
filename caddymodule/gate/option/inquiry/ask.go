package inquiry

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/internal/jsonpath"
)

// Ask is the question how an order ended.
type Ask struct {
	Spec
	// Lines are what the shop has sold, as in `lines {ask.order.items} variant.sku quantity`. Default: not compared.
	Lines *SoldLines `json:"lines,omitempty"`
	// PaymentsSync: the shop decides about a payment before it answers, so that a release counts at once. Default:
	// off.
	//
	// When the shop has answered an order it will not be paid any more unless it is paid now; the release counts
	// at once where exactly one request was sent. Without it a release counts when the shop says it a second time
	// after the hold's deadline.
	PaymentsSync bool `json:"payments_sync,omitempty"`
}

// SoldLines is an array of lines in what the shop answers.
type SoldLines struct {
	// Array leads to the array: data.order.lines.
	Array string `json:"array"`
	// SKU and Quantity lead to the values in an element.
	SKU      string `json:"sku"`
	Quantity string `json:"quantity"`
}

const (
	defaultAskWait  = 5 * time.Second
	defaultAskQueue = 1024 // no more than the orders that may be under way
)

// Compile checks the question.
func (a *Ask) Compile() (*Inquiry, error) {
	if l := a.Lines; l != nil && (l.Array == "" || l.SKU == "" || l.Quantity == "") {
		return nil, errors.New("outcome ask: lines has an array, a field with the SKU and a field with the quantity")
	}
	spec := a.Spec
	if spec.Wait == 0 { // the order is at the shop already, and its client waits for the answer
		spec.Wait = caddy.Duration(defaultAskWait)
	}
	if spec.Queue == 0 {
		spec.Queue = defaultAskQueue
	}
	return spec.Compile("outcome ask", "lookup.", "jwt.", answerPrefix)
}

// answerPrefix begins the placeholders that the shop's answer to the order has.
const answerPrefix = "answer."

// ByAnswer reports whether the question names the order by the shop's answer to it.
func (a *Ask) ByAnswer() bool { return strings.Contains(a.URL+a.Body, "{"+answerPrefix) }

// ReadsAnswer reports whether the question needs what the shop answered to the order.
func (i *Inquiry) ReadsAnswer() bool {
	return slices.ContainsFunc(i.Names(), func(name string) bool { return strings.HasPrefix(name, answerPrefix) })
}

// Answered adds to the values of a question what it needs of the shop's answer to the order. lacks says
// why a value is not there, as a cause; empty: all are.
func (i *Inquiry) Answered(values map[string]string, answer *outcome.ShopAnswer) (lacks outcome.BodyFault) {
	if !i.ReadsAnswer() {
		return ""
	}
	document, lacks := answer.Plain()
	switch {
	case lacks != "":
		return lacks
	case !json.Valid(document):
		return outcome.CauseNotJSON
	}
	maps.Copy(values, i.Told(map[string][]byte{strings.TrimSuffix(answerPrefix, "."): document}))
	for _, name := range i.Names() {
		if path, ok := strings.CutPrefix(name, answerPrefix); ok && values[name] == "" {
			return outcome.Missing(path)
		}
	}
	return ""
}

// Told returns the values of a question that documents say, by the first step of their names: claims
// of the buyer's token as jwt, what the shop said about the cart as lookup, and what it answered to the
// order as answer. A value is missing where
// an array on the way to it has more elements than the question reads.
func (i *Inquiry) Told(documents map[string][]byte) map[string]string {
	values := make(map[string]string)
	decoded := make(map[string]any, len(documents))
	for kind, document := range documents {
		decoded[kind] = decode(document)
	}
	read := jsonpath.ElementsOf(i.Names()...)
	for _, name := range i.Names() {
		found, _ := read.At(decoded, name)
		switch v := found.(type) {
		case string:
			values[name] = v
		case json.Number:
			values[name] = v.String()
		}
	}
	return values
}

// decode decodes a JSON document, numbers as they are written; nil: it is none.
func decode(document []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// Sold returns how many units of each SKU the shop says that it has sold; false: it does not
// say, or says it of several orders. Like the lookup it takes a SKU that is a string or a whole number.
func (l *SoldLines) Sold(answer *outcome.ShopAnswer) (map[string]int64, bool) {
	if !answer.Whole {
		return nil, false
	}
	found, whole := jsonpath.ElementsOf(l.Array).At(decode(answer.Body), l.Array)
	array, ok := found.([]any)
	if !ok || !whole {
		return nil, false
	}
	read := jsonpath.ElementsOf(l.SKU, l.Quantity)
	sold := make(map[string]int64, len(array))
	named := len(array) == 0
	for _, element := range array {
		quantity, one := read.At(element, l.Quantity)
		item, only := read.At(element, l.SKU)
		number, ok := quantity.(json.Number)
		if !ok || !one || !only {
			return nil, false
		}
		n, err := number.Int64()
		if err != nil || n < 0 {
			return nil, false
		}
		var name string
		switch sku := item.(type) {
		case string:
			name = sku
		case json.Number: // as the lookup reads it
			if name = sku.String(); strings.ContainsAny(name, ".eE") {
				return nil, false
			}
		case nil: // an item that no sale lists
			continue
		default:
			return nil, false
		}
		named = true
		if n > 0 {
			sold[name] += n
		}
	}
	return sold, named // where no item has a name, the answer says nothing
}

const askUsage = "outcome ask [GET|POST] <url> [<body>]"

// ReadAsk reads the option outcome ask, behind that word.
func ReadAsk(d *caddyfile.Dispenser, args []string, into **Ask) error {
	if len(args) == 0 {
		return d.Errf("outcome ask has no URL: write `%s`", askUsage)
	}
	a := new(Ask)
	if err := a.Spec.Read(d, args, askUsage); err != nil {
		return err
	}
	options := a.Spec.Bounds()
	options["lines"] = directive.Option{Usage: "lines {ask.<array>} <sku-field> <quantity-field>", Read: a.readLines}
	options["payments"] = directive.Option{Usage: "payments sync", Read: a.readPayments}
	*into = a
	return directive.ReadBlock(d, options)
}

func (a *Ask) readLines(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 3, 3)
	if err != nil {
		return err
	}
	array, ok := strings.CutPrefix(args[0], "{ask.")
	array, closed := strings.CutSuffix(array, "}")
	if !ok || !closed || array == "" {
		return d.Errf("%s is no array of the shop's answer: write `%s`", args[0], usage)
	}
	a.Lines = &SoldLines{Array: array, SKU: args[1], Quantity: args[2]}
	return nil
}

func (a *Ask) readPayments(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, 1)
	if err != nil {
		return err
	}
	if args[0] != "sync" {
		return d.Errf("payments %q: write `%s`", args[0], usage)
	}
	a.PaymentsSync = true
	return nil
}
