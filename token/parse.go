package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/stockgate/stockgate/sale"
)

// maxDepth is how deep unknown members may nest.
const maxDepth = 16

// joseHeader is what the JWS header must say (RFC 7515, 4.1).
type joseHeader struct{ typ, alg, kid string }

func parseHeader(raw []byte) (joseHeader, error) {
	var h joseHeader
	err := parseObject(raw, []string{"typ", "alg", "kid"}, func(p *parser, name string) error {
		switch name {
		case "typ":
			return p.text(&h.typ)
		case "alg":
			return p.text(&h.alg)
		case "kid":
			return p.text(&h.kid)
		case "crit":
			// It lists extensions that must be supported; none is (RFC 7515, 4.1.11).
			return errors.New("crit names extensions that reservation tokens do not have")
		default:
			// jwk, jku, x5c …: keys that come with the token are never used.
			return p.skip(maxDepth)
		}
	})
	return h, err
}

func parseClaims(raw []byte) (*Claims, error) {
	c := new(Claims)
	required := []string{"iss", "aud", "sub", "jti", "iat", "exp", "ep", "sale", "lines"}
	err := parseObject(raw, required, func(p *parser, name string) error {
		switch name {
		case "iss":
			return p.text(&c.Issuer)
		case "aud":
			return p.text(&c.Audience)
		case "sub":
			return p.text(&c.Subject)
		case "jti":
			return p.text(&c.ID)
		case "iat":
			return p.integer(&c.IssuedAt)
		case "exp":
			return p.integer(&c.ExpiresAt)
		case "ep":
			return p.integer(&c.Epoch)
		case "sale":
			return p.text(&c.Sale)
		case "ref":
			return p.text(&c.Ref)
		case "lines":
			return p.lines(&c.Lines)
		default:
			return p.skip(maxDepth)
		}
	})
	if err != nil {
		return nil, err
	}
	return c, c.check()
}

// parser reads JSON strictly: names match exactly and appear once, so that no other
// parser reads other values from the signed bytes.
type parser struct{ dec *json.Decoder }

// parseObject reads one object that is all of raw, and calls member for every
// name; member reads the value.
func parseObject(raw []byte, required []string, member func(*parser, string) error) error {
	if !utf8.Valid(raw) {
		return errors.New("not UTF-8")
	}
	p := &parser{dec: json.NewDecoder(bytes.NewReader(raw))}
	p.dec.UseNumber()
	if err := p.object(required, func(name string) error { return member(p, name) }); err != nil {
		return err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object")
	}
	return nil
}

func (p *parser) object(required []string, member func(string) error) error {
	if err := p.delim('{'); err != nil {
		return err
	}
	return p.members(required, member)
}

// members reads an object whose brace has been read.
func (p *parser) members(required []string, member func(string) error) error {
	seen := make([]string, 0, 10)
	for p.dec.More() {
		var name string
		if err := p.text(&name); err != nil {
			return err
		}
		if slices.Contains(seen, name) {
			return fmt.Errorf("%q comes twice", short(name))
		}
		seen = append(seen, name)
		if err := member(name); err != nil {
			return fmt.Errorf("%q: %w", short(name), err)
		}
	}
	for _, name := range required {
		if !slices.Contains(seen, name) {
			return fmt.Errorf("%q is missing", name)
		}
	}
	return p.delim('}')
}

func (p *parser) lines(to *[]sale.Line) error {
	if err := p.delim('['); err != nil {
		return err
	}
	for p.dec.More() {
		var line sale.Line
		err := p.object([]string{"sku", "qty"}, func(name string) error {
			switch name {
			case "sku":
				return p.text(&line.SKU)
			case "qty":
				return p.integer(&line.Quantity)
			case "region":
				return p.text(&line.Region)
			default:
				return p.skip(maxDepth)
			}
		})
		if err != nil {
			return err
		}
		*to = append(*to, line)
	}
	return p.delim(']')
}

func (p *parser) text(to *string) error {
	tok, err := p.next()
	if err != nil {
		return err
	}
	s, ok := tok.(string)
	if !ok {
		return errors.New("not a string")
	}
	*to = s
	return nil
}

func (p *parser) integer(to *int64) error {
	tok, err := p.next()
	if err != nil {
		return err
	}
	n, ok := tok.(json.Number)
	if !ok {
		return errors.New("not a number")
	}
	i, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil {
		return errors.New("not a whole number")
	}
	*to = i
	return nil
}

// skip reads a value of any kind, with the same strictness.
func (p *parser) skip(depth int) error {
	if depth == 0 {
		return errors.New("nested too deep")
	}
	tok, err := p.next()
	if err != nil {
		return err
	}
	switch tok {
	case json.Delim('{'):
		return p.members(nil, func(string) error { return p.skip(depth - 1) })
	case json.Delim('['):
		for p.dec.More() {
			if err := p.skip(depth - 1); err != nil {
				return err
			}
		}
		return p.delim(']')
	}
	return nil
}

func (p *parser) delim(want json.Delim) error {
	tok, err := p.next()
	if err != nil {
		return err
	}
	if tok != want {
		return fmt.Errorf("%c expected", rune(want))
	}
	return nil
}

func (p *parser) next() (json.Token, error) {
	tok, err := p.dec.Token()
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	return tok, nil
}

// short keeps a client's input from filling an error message.
func short(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
