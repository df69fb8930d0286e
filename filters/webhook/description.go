package webhook

import (
	"errors"
	"fmt"
	"time"
)

// Description says how a provider signs its webhooks: which parts, with which algorithm, and where
// the signature is. It covers the body, except with token, which signs nothing.
type Description struct {
	// Algorithm is hmac-sha1, hmac-sha256, hmac-sha512, rsa-sha256 or rsa-sha512 (PKCS #1 v1.5),
	// ecdsa-sha256 (ASN.1), ed25519, or token: a secret that the provider sends. Required.
	Algorithm string `json:"algorithm"`
	// Key is the secret, or the provider's public key or certificate in PEM. Required.
	Key string `json:"-"`
	// KeyEncoding is text, hex, base64 or base64url. Default: text, and PEM for public keys.
	KeyEncoding string `json:"key_encoding,omitempty"`
	// Fields divide a header, for {field.NAME}.
	Fields *HeaderFields `json:"fields,omitempty"`
	// Over is what is signed, such as "{header.X-Time}.{body}". Text stands for itself; there are
	// {header.NAME}, {field.NAME}, {uri} (path with query), {body} and {newline}. Required.
	Over string `json:"over,omitempty"`
	// Signature is {header.NAME} or {field.NAME}. Required.
	Signature string `json:"signature"`
	// Encoding of the signature is hex, base64 or base64url. Required, except with token.
	Encoding string `json:"encoding,omitempty"`
	// Time is {header.NAME} or {field.NAME} where a time is signed. Unit is s or ms, since 1970.
	// Default: no time; s.
	Time string `json:"time,omitempty"`
	Unit string `json:"unit,omitempty"`
	// Tolerance is how far the time may be from now, 1s to 1h. Default: DefaultTolerance.
	Tolerance time.Duration `json:"-"`

	leastKey int    // bytes; 0: leastKey
	either   bool   // the signature is in hex or in base64
	prefix   string // the signature may stand behind it
	unclear  bool   // a part may have the text that keeps it from the next
}

// described verifies by a description.
type described struct {
	*Description
	algorithm *algorithm
	parts     []part
	signature part
	time      part // of kind literal: none
}

// Compile returns the verifier of a description. No error repeats the key.
func Compile(d Description) (Verifier, error) {
	v := &described{Description: &d}
	var err error
	if err = v.readPlaces(); err != nil {
		return nil, err
	}
	if err = v.readOver(); err != nil {
		return nil, err
	}
	if d.Tolerance, err = tolerated(d.Tolerance); err != nil {
		return nil, err
	}
	v.algorithm, err = d.algorithm()
	return v, err
}

// readPlaces reads where signature and time are.
func (v *described) readPlaces() (err error) {
	if v.signature, err = readPlace("signature", v.Signature); err != nil {
		return err
	}
	if v.Fields != nil {
		if err = v.Fields.check(); err != nil {
			return err
		}
	}
	if v.Time == "" {
		if v.Tolerance != 0 || v.Unit != "" {
			return errors.New("no time is signed: it takes no tolerance and no unit; name it with time")
		}
	} else if v.time, err = readPlace("time", v.Time); err != nil {
		return err
	}
	if err = checkUnit(v.Unit); err != nil {
		return err
	}
	if known := encodings[v.Encoding] != nil; !known && !v.either && v.Algorithm != token {
		return fmt.Errorf("the signature has the encoding %q: write hex, base64 or base64url", v.Encoding)
	}
	return nil
}

// readOver reads what is signed.
func (v *described) readOver() (err error) {
	if v.Algorithm == token {
		if v.Over != "" || v.Time != "" || v.Encoding != "" {
			return errors.New("token signs nothing: it takes no over, no time and no encoding")
		}
	} else if v.parts, err = readParts(v.Over); err != nil {
		return fmt.Errorf("over: %w", err)
	} else if err = keepApart(v.parts, v.time); err != nil {
		return err
	}
	signed, fields := false, v.signature.kind == inField || v.time.kind == inField
	for i := range v.parts {
		p := &v.parts[i]
		signed = signed || p.kind == v.time.kind && p.text == v.time.text
		fields = fields || p.kind == inField
		if v.unclear {
			p.apart = ""
		}
	}
	switch {
	case v.Time != "" && !signed:
		return fmt.Errorf("over has no {%s}: a time that is not signed can be changed", v.time.name())
	case fields != (v.Fields != nil):
		return errors.New("{field.NAME} and fields need each other: fields names the header that is divided")
	}
	return nil
}
