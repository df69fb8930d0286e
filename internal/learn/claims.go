package learn

import (
	"encoding/base64"
	"strings"
)

// bearerClaims returns the claims of the JWT in the Authorization of a request; nil: there is none.
func bearerClaims(x *Exchange) map[string]any {
	scheme, text, _ := strings.Cut(x.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return nil
	}
	_, claims := tokenParts(text)
	return claims
}

// tokenParts decodes a JWT without verifying it; nil: it is none.
func tokenParts(text string) (header, claims map[string]any) {
	parts := strings.Split(strings.TrimSpace(text), ".")
	if len(parts) != 3 {
		return nil, nil
	}
	return objectIn(parts[0]), objectIn(parts[1])
}

func objectIn(part string) map[string]any {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return nil
	}
	object, _ := decodeJSON(raw).(map[string]any)
	return object
}
