package token

import "errors"

// Why a token is refused. Errors of this package wrap one of these and add what
// to do; compare with errors.Is.
var (
	// ErrMissing: the request carries no token.
	ErrMissing = errors.New("no reservation token")
	// ErrRepeated: the request carries more than one token.
	ErrRepeated = errors.New("repeated reservation token")
	// ErrMalformed: not a JWS of three parts with the members and claims of a reservation token.
	ErrMalformed = errors.New("malformed token")
	// ErrType: another kind of JWT.
	ErrType = errors.New("not a reservation token")
	// ErrAlgorithm: an algorithm that is not accepted at all, or not the one
	// that belongs to the key.
	ErrAlgorithm = errors.New("wrong algorithm")
	// ErrUnknownKey: signed with a key that the verifier does not know.
	ErrUnknownKey = errors.New("unknown key")
	// ErrKeysUnavailable: signed with a key that the verifier does not have, while the JWKS cannot be
	// fetched. It passes: answer 503.
	ErrKeysUnavailable = errors.New("keys unavailable")
	// ErrSignature: the signature does not belong to this token.
	ErrSignature = errors.New("wrong signature")
	// ErrIssuer and ErrAudience: issued by, or meant for, another party.
	ErrIssuer   = errors.New("wrong issuer")
	ErrAudience = errors.New("wrong audience")
	// ErrSubject: the token belongs to another buyer, or the order names none.
	ErrSubject = errors.New("wrong subject")
	// ErrLines: the token holds other items or quantities than the order has.
	ErrLines = errors.New("wrong lines")
	// ErrExpired: the time during which the hold is guaranteed is over.
	ErrExpired = errors.New("expired token")
	// ErrKnown: everything is correct, and the backend has answered this id before: give that answer again.
	ErrKnown = errors.New("known id")
)

// Errors of signing.
var (
	// ErrTooLarge: the signed token would exceed [MaxSize].
	ErrTooLarge = errors.New("token too large")
	// ErrClaims: a claim is missing or outside its bounds.
	ErrClaims = errors.New("wrong claims")
	// ErrKey: the key material cannot be used.
	ErrKey = errors.New("wrong key")
)
