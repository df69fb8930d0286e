package learn

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// asked writes a value of the question that shows the cart: as it is, if it is the same for all buyers; else as the
// value of the order request, or of the buyer's token, that it is equal to. text: a number may become a text.
func (l *learner) asked(c *cart, value any, text bool) (written any, ok bool) {
	own, isScalar := scalar(value)
	_, isString := value.(string)
	_, isBool := value.(bool)
	switch {
	case value == nil, isBool, isString && own == "":
		return value, true
	case !isScalar:
		return nil, false
	}
	if isString || text {
		if name := c.names(own); name != "" {
			return name, true
		}
		if claim := l.claimWith(own); claim != "" {
			return "{jwt." + claim + "}", true
		}
	}
	return value, l.isConstant(own)
}

// named notes which value of the order names the cart, and returns its placeholder. One question has one.
func (c *cart) named(v requestValue) string {
	if v.value == "" || c.ref.value != "" && c.ref.leaf.text != v.leaf.text {
		return ""
	}
	if c.ref.value == "" {
		c.ref = v
	}
	return "{ref}"
}

// valueOfOrder finds a value of the order request that is no accident: an id, or what is named like one.
func (l *learner) valueOfOrder(text string) requestValue {
	for _, v := range l.requestValues() {
		if v.leaf.text == text && l.hidden.path(v.leaf.dotted()) && (len(text) > 3 && isVariable(text) || slices.Contains(refNames, folded(v.leaf.name()))) {
			return v
		}
	}
	return requestValue{}
}

// claimWith finds a claim of the order's token that has a value; empty: there is none.
func (l *learner) claimWith(text string) string {
	claims := bearerClaims(l.order.Exchange)
	if len(text) < 3 || claimOf(claims) == "" {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		if own, ok := claims[name].(string); ok && own == text && nameLike.MatchString(name) {
			return name
		}
	}
	return ""
}

// isConstant reports whether a value may be the same for all buyers: words with commas between them, a short number.
func (l *learner) isConstant(text string) bool {
	if isNumber(text) {
		return len(text) < 5
	}
	for part := range strings.SplitSeq(text, ",") {
		if word, ok := l.hidden.word(strings.TrimLeft(part, "+-* ")); !ok || isVariable(word) {
			return false
		}
	}
	return true
}

// document writes the body of a question to a GraphQL server, with values of the buyer in its variables only.
func (l *learner) document(c *cart) (body string, ok bool) {
	op, _ := l.documents.operation(c.Exchange)
	if op == nil || op.kind != "query" || strings.ContainsAny(op.document, "`\"") || l.hidden.leaked(op.document) != "" {
		return "", false // a quote begins a value in the document
	}
	question := map[string]any{"query": squeezed(op.document)}
	if given, _ := op.variables.(map[string]any); len(given) > 0 {
		if question["variables"], ok = l.variables(c, op.document, given); !ok {
			return "", false
		}
	}
	raw, err := json.Marshal(question)
	return string(raw), err == nil
}

// variables writes the variables of a question.
func (l *learner) variables(c *cart, document string, given map[string]any) (written map[string]any, ok bool) {
	parsed, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: document}, maxTokens)
	if err != nil || len(parsed.Operations) != 1 {
		return nil, false
	}
	written = make(map[string]any)
	for name, value := range given {
		def := parsed.Operations[0].VariableDefinitions.ForName(name)
		if def == nil {
			continue
		}
		if written[name], ok = l.askedIn(c, name, value, def.Type.Name() == "ID", 0); !ok {
			return nil, false
		}
	}
	return written, true
}

// askedIn writes a variable, or a field of one that is an object.
func (l *learner) askedIn(c *cart, name string, value any, isID bool, depth int) (any, bool) {
	object, isObject := value.(map[string]any)
	if !l.hidden.name(name) || depth > maxDepth {
		return nil, false
	}
	if !isObject {
		return l.asked(c, value, isID)
	}
	written := make(map[string]any, len(object))
	for field, v := range object {
		inner, ok := l.askedIn(c, field, v, false, depth+1)
		if !ok {
			return nil, false
		}
		written[field] = inner
	}
	return written, true
}

// pathAsked writes the path and the query of a GET that shows the cart.
func (l *learner) pathAsked(c *cart) (string, bool) {
	order, own := l.order.segments(), c.segments()
	for i, s := range c.template(l.hidden) {
		if s != "*" {
			continue
		}
		at := slices.Index(order, own[i])
		name := ""
		if at >= 0 {
			name, c.index = c.named(requestValue{pathValue(at), leaf{[]string{"path"}, own[i]}}), at
		} else {
			name = c.names(own[i])
		}
		if name == "" {
			return "", false
		}
		own[i] = name
	}
	return "/" + strings.Join(own, "/") + l.queryAsked(c), true
}

// queryAsked writes the parameters. The gate adds the ones that the order request has.
func (l *learner) queryAsked(c *cart) string {
	var kept []string
	for part := range strings.SplitSeq(c.URL.RawQuery, "&") {
		name, value, _ := strings.Cut(part, "=")
		switch written, ok := l.asked(c, unescaped(value), true); {
		case part == "" || name != "" && l.order.URL.Query().Get(name) == unescaped(value):
		case !l.hidden.name(name):
			c.dropped = append(c.dropped, "one whose name is not written")
		case !ok:
			c.dropped = append(c.dropped, name)
		case written == unescaped(value):
			kept = append(kept, name+"="+value)
		default:
			kept = append(kept, name+"="+written.(string))
		}
	}
	if len(kept) == 0 {
		return ""
	}
	return "?" + strings.Join(kept, "&")
}

// askDropped asks about parameters that a question of the gate does not have.
func (l *learner) askDropped(c *cart, line string) {
	if len(c.dropped) > 0 {
		l.question("Does the shop need the other parameters of this request?", because("has parameters whose values may differ from buyer to buyer, and that are in no part of the order: "+
			strings.Join(c.dropped[:min(len(c.dropped), 20)], ", ")+". The gate leaves them out of its question. If the shop needs one, configure the question by hand, see docs/carts.md", c.Exchange), line)
	}
}
