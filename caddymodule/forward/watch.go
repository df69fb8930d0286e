package forward

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Watch is one request that is watched on its way through a gate in shadow, from before it is forwarded until the
// shop has answered. It keeps a copy of what the client sends and of what the shop answers, and changes neither.
type Watch struct {
	request *http.Request // as the gate got it
	body    *sentBody     // nil: it has none
	answer  Tee
}

// BeginWatch begins to watch a request. It keeps up to maxBody bytes of the body and one more, and of
// the answer what keep says. Nothing of the copy is shared with the handlers that run later.
func BeginWatch(w http.ResponseWriter, r *http.Request, maxBody int64, keep Excerpt) *Watch {
	watch := &Watch{request: r.Clone(ownVars(context.WithoutCancel(r.Context())))}
	watch.answer = Tee{ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, keep: keep}
	if r.Body != nil && r.Body != http.NoBody {
		watch.body = &sentBody{ReadCloser: r.Body, most: maxBody + 1}
		r.Body = watch.body
	}
	return watch
}

// Writer returns what the handlers behind the gate are to write to.
func (w *Watch) Writer() *Tee { return &w.answer }

// Request returns the copy of the request, with its body. False: the shop has answered before it
// read the whole body.
func (w *Watch) Request() (*http.Request, bool) {
	if w.body == nil {
		return w.request, true
	}
	kept, complete := w.body.seal(w.request.ContentLength)
	w.request.Body, w.request.GetBody = io.NopCloser(bytes.NewReader(kept)), nil
	return w.request, complete
}

// sentBody is a body that is copied while the shop reads it. A transport may still read from it
// when the shop has answered.
type sentBody struct {
	io.ReadCloser
	most int64

	mu            sync.Mutex
	kept          []byte
	ended, sealed bool
}

func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.sealed {
		b.kept = append(b.kept, p[:min(int64(n), b.most-int64(len(b.kept)))]...)
		b.ended = b.ended || err == io.EOF
	}
	return n, err
}

// seal ends the copying. It reports whether the copy has all that a gate would read.
func (b *sentBody) seal(length int64) (kept []byte, complete bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sealed = true
	return b.kept, b.ended || int64(len(b.kept)) == length || int64(len(b.kept)) == b.most
}
