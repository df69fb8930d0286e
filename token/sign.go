package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"
)

// Signer makes tokens. It may be used by many goroutines at once.
type Signer struct {
	key    Key
	header string // encoded, with the dot behind it
	prefix string // of the claims: those that never change
}

// NewSigner makes a Signer. issuer "" means [DefaultIssuer]; audience is the
// backend's name and required. It fails with [ErrClaims] or [ErrKey].
func NewSigner(issuer, audience string, key Key) (*Signer, error) {
	if issuer == "" {
		issuer = DefaultIssuer
	}
	if audience == "" {
		return nil, fmt.Errorf("%w: the audience is empty: name the backend that the tokens are for", ErrClaims)
	}
	if !utf8.ValidString(issuer) || !utf8.ValidString(audience) {
		return nil, fmt.Errorf("%w: issuer or audience is not UTF-8", ErrClaims)
	}
	if key.alg == "" {
		return nil, fmt.Errorf("%w: there is no key to sign with", ErrKey)
	}
	header := `{"alg":"` + key.alg + `","kid":"` + key.kid + `","typ":"` + Type + `"}`
	prefix := append([]byte(`{"iss":`), appendString(nil, issuer)...)
	prefix = appendString(append(prefix, `,"aud":`...), audience)
	return &Signer{
		key:    key,
		header: b64.EncodeToString([]byte(header)) + ".",
		prefix: string(prefix),
	}, nil
}

// Sign makes the token of these claims; their Issuer and Audience are replaced
// by the Signer's. The same claims under an HMAC or Ed25519 key always give
// the same token. It fails with [ErrClaims], or with [ErrTooLarge] when the
// token would exceed [MaxSize].
func (s *Signer) Sign(c Claims) (string, error) {
	if err := c.check(); err != nil {
		return "", fmt.Errorf("%w: %w", ErrClaims, err)
	}
	room := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	b := s.appendClaims((*room)[:0], &c)
	*room = b
	begin := len(b)
	if size := s.size(begin); size > MaxSize {
		return "", fmt.Errorf("%w: %d bytes for %d lines, at most %d: fewer lines, shorter SKUs, or a shorter ref", ErrTooLarge, size, len(c.Lines), MaxSize)
	}

	b = append(b, s.header...)
	b = b64.AppendEncode(b, b[:begin])
	signature := s.key.sign(b[begin:])
	b = append(b, '.')
	b = b64.AppendEncode(b, signature)
	*room = b
	return string(b[begin:]), nil
}

// Fits reports whether the token of these claims stays within [MaxSize], whatever ID,
// times and Epoch they will have. It can be called before the stock is held.
func (s *Signer) Fits(c Claims) bool {
	if len(c.Bundles) == 0 && s.size(s.mostClaims(&c)) <= MaxSize {
		return true
	}
	c.ID, c.IssuedAt, c.ExpiresAt, c.Epoch = anyID, lastSecond, lastSecond, math.MaxInt64
	room := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	*room = s.appendClaims((*room)[:0], &c)
	return s.size(len(*room)) <= MaxSize
}

const (
	anyID      = "00000000-0000-7000-8000-000000000000"
	lastSecond = 9_999_999_999 // in the year 2286 times get another digit

	mostEscaped = 6 // bytes of JSON for one of a string, as in \u0026
	mostFixed   = len(`,"sub":"","jti":"","iat":,"exp":,"ep":,"sale":"","ref":"","lines":[]}`) + len(anyID) + 2*10 + 19
	mostOfLine  = len(`,{"sku":"","qty":,"region":""}`) + 19
)

// mostClaims is an upper bound on the length of the claims, cheap to compute: most
// orders are small.
func (s *Signer) mostClaims(c *Claims) int {
	n := len(c.Subject) + len(c.Sale) + len(c.Ref)
	for i := range c.Lines {
		n += len(c.Lines[i].SKU) + len(c.Lines[i].Region)
	}
	return len(s.prefix) + mostFixed + mostOfLine*len(c.Lines) + mostEscaped*n
}

// size is the size of a token whose claims have this many bytes.
func (s *Signer) size(claims int) int {
	return len(s.header) + b64.EncodedLen(claims) + 1 + b64.EncodedLen(s.key.signatureSize())
}

// rooms are buffers for tokens: their claims, followed by the signed text.
var rooms = sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}

func (s *Signer) appendClaims(b []byte, c *Claims) []byte {
	b = append(b, s.prefix...)
	b = appendString(append(b, `,"sub":`...), c.Subject)
	b = appendString(append(b, `,"jti":`...), c.ID)
	b = strconv.AppendInt(append(b, `,"iat":`...), c.IssuedAt, 10)
	b = strconv.AppendInt(append(b, `,"exp":`...), c.ExpiresAt, 10)
	b = strconv.AppendInt(append(b, `,"ep":`...), c.Epoch, 10)
	b = appendString(append(b, `,"sale":`...), c.Sale)
	if c.Ref != "" {
		b = appendString(append(b, `,"ref":`...), c.Ref)
	}
	b = appendLines(append(b, `,"lines":`...), c.Lines)
	for i, bundle := range c.Bundles {
		if i == 0 {
			b = append(b, `,"bundles":[`...)
		} else {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"sku":`...), bundle.SKU)
		b = appendLines(append(b, `,"components":`...), bundle.Components)
		b = append(b, '}')
	}
	if len(c.Bundles) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

func appendLines(b []byte, lines []Line) []byte {
	b = append(b, '[')
	for i, l := range lines {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"sku":`...), l.SKU)
		b = strconv.AppendInt(append(b, `,"qty":`...), l.Quantity, 10)
		if l.Region != "" {
			b = appendString(append(b, `,"region":`...), l.Region)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendString appends s as a JSON string. Nearly every claim is plain ASCII.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic("token: " + err.Error()) // a string always has a JSON form
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// check checks the required claims. It is applied to tokens to be signed and to tokens
// that were read.
func (c *Claims) check() error {
	for _, claim := range [...]struct{ name, value string }{
		{"sub", c.Subject}, {"jti", c.ID}, {"sale", c.Sale}, {"ref", c.Ref},
	} {
		if claim.value == "" && claim.name != "ref" {
			return fmt.Errorf("%s is empty", claim.name)
		}
		// Encoders replace invalid bytes: two buyers could become one.
		if !utf8.ValidString(claim.value) {
			return fmt.Errorf("%s is not UTF-8", claim.name)
		}
	}
	if c.IssuedAt < 0 || c.ExpiresAt <= c.IssuedAt {
		return fmt.Errorf("exp %d is not after iat %d", c.ExpiresAt, c.IssuedAt)
	}
	if c.Epoch < 0 {
		return fmt.Errorf("ep is %d: epochs count from 0", c.Epoch)
	}
	if len(c.Lines) == 0 {
		return errors.New("no lines")
	}
	if err := checkLines(c.Lines); err != nil {
		return err
	}
	return c.checkBundles()
}

func checkLines(lines []Line) error {
	for i, l := range lines {
		if l.SKU == "" || !utf8.ValidString(l.SKU) || !utf8.ValidString(l.Region) {
			return fmt.Errorf("line %d has no SKU, or one that is not UTF-8", i+1)
		}
		if l.Quantity < 1 || l.Quantity > MaxUnits {
			return fmt.Errorf("line %d has quantity %d", i+1, l.Quantity)
		}
	}
	return nil
}

// checkBundles checks that each bundle belongs to one line, and no other bundle has its SKU.
func (c *Claims) checkBundles() error {
	for i, b := range c.Bundles {
		if len(b.Components) == 0 {
			return fmt.Errorf("bundle %d has no components", i+1)
		}
		if err := checkLines(b.Components); err != nil {
			return fmt.Errorf("bundle %d: %w", i+1, err)
		}
		lines := 0
		for _, l := range c.Lines {
			if l.SKU == b.SKU {
				lines++
			}
		}
		again := slices.ContainsFunc(c.Bundles[:i], func(other Bundle) bool { return other.SKU == b.SKU })
		if lines != 1 || again {
			return fmt.Errorf("bundle %d does not belong to one line", i+1)
		}
	}
	return nil
}
