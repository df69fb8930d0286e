package outbox

import "github.com/stockgate/stockgate/internal/post"

// Secret signs messages.
type Secret = post.Secret

// ParseSecret reads a secret: base64, after whsec_ or alone. The error does not repeat it.
func ParseSecret(text string) (Secret, error) { return post.ParseSecret(text) }
