package option

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/filters/attempt"
)

// Line is one line of an attempt. One of a constant item is left out of a request that has the
// quantity 0 or an empty one.
type Line struct {
	// SKU gives the item.
	SKU []string `json:"sku"`
	// Quantity gives the number of units. Default: 1.
	Quantity []string `json:"quantity,omitempty"`
	// Absent is how many units a request means that lacks the quantity of a constant item: 0, it
	// does not order the item, or 1. Default: 1, with a warning where there are several lines.
	Absent *int `json:"absent,omitempty"`
}

// LinesFrom reads the lines from an array of objects, or from two lists of a form. One with the
// quantity 0 or an empty one is left out.
type LinesFrom struct {
	// Array is the placeholder of the array: {json.items}, {lookup.items}, or {json} and {lookup} where the
	// document is the array; an argument of a field of graphql, {graphql.inputs}; an array of a form, {form.items}
	// for items[0][sku]; or a list of SKUs, {form.sku[]}.
	Array string `json:"array"`
	// SKU is the field with the item, or @key in a form whose elements have it as their key, as in
	// quantity[A1]=2. Of a list it is left out.
	SKU string `json:"sku,omitempty"`
	// Quantity is the field with the number of units; @value, the element itself, where SKU is @key; or
	// {form.quantity[]} beside a list of SKUs. Default: 1 unit each.
	Quantity string `json:"quantity,omitempty"`
}

const lineUsage = "line <sku> [<quantity> [absent 0|1]]"

// compileLines adds what the gate reads of lines to a spec.
func (s *Setup) compileLines(spec *attempt.Spec) (err error) {
	lines := s.Lines
	if s.OnlyTurns() {
		lines = []Line{{SKU: []string{"none"}}} // none of its requests is an attempt
	}
	for _, l := range lines {
		compiled, failed := l.compile()
		err = errors.Join(err, failed)
		spec.Line = append(spec.Line, compiled)
	}
	if from := s.LinesFrom; from != nil {
		array, failed := attempt.CompileArray(from.Array)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("lines: %w", failed))
		}
		spec.Lines = &attempt.Lines{Array: array, SKU: from.SKU, Quantity: from.Quantity}
	}
	return err
}

func (l *Line) compile() (compiled attempt.LineSpec, err error) {
	var ofSKU, ofQuantity error
	compiled.SKU, ofSKU = attempt.CompileAll(l.SKU...)
	compiled.Quantity, ofQuantity = attempt.CompileAll(l.Quantity...)
	if err = errors.Join(ofSKU, ofQuantity); err != nil {
		return compiled, fmt.Errorf("line: %w", err)
	}
	switch {
	case l.Absent == nil:
	case *l.Absent == 0:
		compiled.Absent = attempt.AbsentIsNone
	case *l.Absent == 1:
		compiled.Absent = attempt.AbsentIsOne
	default:
		return compiled, fmt.Errorf("line: absent %d: there are 0, no unit, and 1", *l.Absent)
	}
	return compiled, nil
}

// lineRisks returns warnings about lines that are valid and rarely meant.
func (s *Setup) lineRisks() (risks []string) {
	var assumed []string
	for i := range s.Lines {
		l := &s.Lines[i]
		if len(s.Lines) > 1 && l.isAssumed() {
			assumed = append(assumed, l.SKU[0])
		}
		for _, sku := range l.SKU {
			if array, field, ok := elementOf(sku); ok {
				risks = append(risks, fmt.Sprintf("%s reads one element of an array, and an order that has more of them than the gate reads is refused: write `lines {%s} %s …` to sell all of them", sku, array, field))
			}
		}
	}
	if len(assumed) > 0 {
		risks = append(risks, "the lines of "+strings.Join(assumed, ", ")+" stand for one unit each where a request has no quantity for them, so that an order of one item takes the others too: "+
			"write `absent 0` behind the quantity if the shop sells none then, or `absent 1` if it sells one")
	}
	return risks
}

// isAssumed reports whether the line is reserved although a request may leave it out: nothing says what
// the shop does then.
func (l *Line) isAssumed() bool {
	compiled, err := l.compile()
	return err == nil && len(l.SKU) > 0 && allConstant(compiled.SKU) && !allConstant(compiled.Quantity) && compiled.Absent == attempt.AbsentAssumed
}

func allConstant(values attempt.Values) bool {
	for _, v := range values {
		if v.Kind() != attempt.Constant {
			return false
		}
	}
	return true
}

// elementOf returns the array of which a value reads one element, and the field there; ok is false
// where it does not.
func elementOf(expr string) (array, field string, ok bool) {
	path, closed := strings.CutSuffix(strings.TrimPrefix(expr, "{"), "}")
	steps := strings.Split(path, ".")
	if !closed || steps[0] != "json" && steps[0] != "lookup" && steps[0] != "graphql" {
		return "", "", false
	}
	for i, step := range steps[:len(steps)-1] {
		if directive.IsNumber(step) {
			return strings.Join(steps[:i], "."), strings.Join(steps[i+1:], "."), true
		}
	}
	return "", "", false
}

// Quantities lists where the gate reads quantities.
func (s *Setup) Quantities() string {
	var all []string
	for _, l := range s.Lines {
		all = append(all, l.Quantity...)
	}
	if s.LinesFrom != nil {
		all = append(all, s.LinesFrom.Array+" "+s.LinesFrom.Quantity)
	}
	return strings.Join(all, " ")
}

func (o *AttemptOptions) readLine(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, 4)
	if err != nil {
		return err
	}
	line := Line{SKU: args[:1]}
	if len(args) > 1 {
		line.Quantity = args[1:2]
	}
	if len(args) > 2 {
		units, err := strconv.Atoi(args[len(args)-1])
		if len(args) != 4 || args[2] != "absent" || err != nil || units != 0 && units != 1 {
			return d.Errf("line %s: %q is not what an absent quantity means: write `%s`", args[0], strings.Join(args[2:], " "), usage)
		}
		line.Absent = &units
	}
	o.Lines = append(o.Lines, line)
	return nil
}

func (o *AttemptOptions) readLines(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, 3)
	if err != nil {
		return err
	}
	o.LinesFrom = &LinesFrom{Array: args[0]}
	if rest := args[1:]; isList(args[0]) && (len(rest) == 0 || len(rest) == 1 && isList(rest[0])) {
		o.LinesFrom.Quantity = strings.Join(rest, "")
		return nil
	} else if len(rest) == 0 {
		return d.Errf("lines %s: name the field of an element that holds the SKU: write `%s`", args[0], usage)
	}
	o.LinesFrom.SKU = args[1]
	if len(args) == 3 {
		o.LinesFrom.Quantity = args[2]
	}
	return nil
}

// isList tells whether a placeholder is a list of a form, such as {form.sku[]}.
func isList(expr string) bool { return strings.HasSuffix(expr, "[]}") }
