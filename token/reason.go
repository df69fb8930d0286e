package token

import "errors"

// reasons are the words for the errors of verifying. The verifiers of other languages have the same.
var reasons = []struct {
	err  error
	word string
}{
	{ErrMissing, "missing"},
	{ErrRepeated, "repeated"},
	{ErrMalformed, "malformed"},
	{ErrType, "type"},
	{ErrAlgorithm, "algorithm"},
	{ErrUnknownKey, "unknown_key"},
	{ErrKeysUnavailable, "keys_unavailable"},
	{ErrSignature, "signature"},
	{ErrIssuer, "issuer"},
	{ErrAudience, "audience"},
	{ErrSubject, "subject"},
	{ErrLines, "lines"},
	{ErrExpired, "expired"},
	{ErrKnown, "known"},
}

// Reason is the word for an error of [FromRequest] and [Verifier.Verify], for logs and metrics: "ok" for nil, such as
// "expired" for one of this package, and "" for any other.
func Reason(err error) string {
	if err == nil {
		return "ok"
	}
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.word
		}
	}
	return ""
}
