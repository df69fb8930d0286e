package bearer

import "errors"

// Invalid says why a token is not accepted. It is a sentence for the client that sent
// the token. It repeats nothing of the token, and can be used as the error_description
// of a challenge (RFC 6750, section 3).
type Invalid string

func (e Invalid) Error() string { return string(e) }

// The reasons.
const (
	// ErrMalformed: it is no JWS of three parts whose payload is one JSON object
	// with each name once.
	ErrMalformed Invalid = "the bearer token is not a signed JWT"
	// ErrTooLong: it is longer than [MaxSize].
	ErrTooLong Invalid = "the bearer token is longer than 8 KiB: ask its issuer for fewer claims"
	// ErrDate: exp or nbf is no number of seconds (RFC 7519, section 2).
	ErrDate Invalid = "the bearer token has a date that is not a number of seconds"
	// ErrType: typ says that it is another kind of JWT.
	ErrType Invalid = "the JWT is not an access token: its typ says so"
	// ErrAlgorithm: alg is none, or not one that the configured keys have.
	ErrAlgorithm Invalid = "the bearer token has an algorithm that is not accepted"
	// ErrUnknownKey: no key, or more than one, fits the token.
	ErrUnknownKey Invalid = "the bearer token is signed with an unknown key"
	// ErrSignature: the signature does not belong to the token.
	ErrSignature Invalid = "the signature of the bearer token is wrong"
	// ErrIssuer and ErrAudience: it was issued by, or is meant for, another party.
	ErrIssuer   Invalid = "the bearer token is from another issuer"
	ErrAudience Invalid = "the bearer token is for another audience"
	// ErrExpired and ErrNotYet: it was valid, or will be (exp, nbf).
	ErrExpired Invalid = "the bearer token has expired"
	ErrNotYet  Invalid = "the bearer token is not valid yet"
)

// ErrUnavailable reports that the key is not known, and the JWKS cannot be fetched at present. It
// says nothing about the token.
var ErrUnavailable = errors.New("the keys of the bearer tokens are not known")
