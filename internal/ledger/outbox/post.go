package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stockgate/stockgate/internal/post"
)

// fault says what is wrong with an answer, for the log.
func fault(a post.Receipt) error {
	switch {
	case a.Accepted():
		return nil
	case a.Status == 0:
		return fmt.Errorf("the receiver does not answer: %w", a.Err)
	case a.Status >= 300 && a.Status < 400:
		return fmt.Errorf("the receiver answers %d, which leads elsewhere, and the outbox does not follow: configure the URL that takes the movements", a.Status)
	case a.Refused():
		return fmt.Errorf("the receiver answers %d: it refuses what it is sent, see its log; nothing is skipped, it gets the same again now and then", a.Status)
	}
	return fmt.Errorf("the receiver answers %d", a.Status)
}

// post sends a batch once.
func (o *Outbox) post(ctx context.Context, b *batch) post.Receipt {
	ctx, cancel := context.WithTimeout(ctx, o.options.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, o.options.URL, bytes.NewReader(b.body))
	if err != nil {
		return post.Receipt{Err: errors.New("its URL cannot be used")}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "stockgate")
	post.Sign(request.Header, o.options.Secrets, b.id, time.Now(), b.body)
	return post.Do(o.client, request)
}
