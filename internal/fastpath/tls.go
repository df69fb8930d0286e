package fastpath

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"
)

// TLSConn is a connection whose bytes TLS has decrypted. net/http asks for its state by calling
// ConnectionState, and reads from it as from a connection without TLS. So what net/http does
// for a *tls.Conn is done here: the handshake with its deadline, the answer to a client that
// does not speak TLS, and the protocol that both sides have agreed on.
type TLSConn struct {
	*Conn
	tls   *tls.Conn
	state tls.ConnectionState
	ctx   atomic.Pointer[context.Context]
	shook bool // the handshake was tried
}

// WrapTLS is Wrap for a connection with TLS. The handshake happens in the first Read.
func (s *Server) WrapTLS(c *tls.Conn) *TLSConn {
	return &TLSConn{Conn: s.Wrap(c), tls: c}
}

// SetContext sets the context of the handshake. It must be called before the first Read.
func (c *TLSConn) SetContext(ctx context.Context) { c.ctx.Store(&ctx) }

// ConnectionState is that of the TLS connection.
func (c *TLSConn) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }

// Read returns the bytes that net/http may read. After a handshake that has failed, and for a
// protocol that net/http does not speak, it returns io.EOF: net/http then closes the
// connection without an answer.
func (c *TLSConn) Read(p []byte) (int, error) {
	if !c.shook {
		c.shook = true
		if !c.handshake() || !c.agreed() {
			c.mode.Store(modeRefused)
		}
	}
	return c.Conn.Read(p)
}

// handshake does what net/http does before it reads from a *tls.Conn.
func (c *TLSConn) handshake() bool {
	ctx := context.Background()
	if given := c.ctx.Load(); given != nil {
		ctx = *given
	}
	timeout := c.server.Timeouts.handshake()
	if timeout > 0 {
		_ = c.SetDeadline(time.Now().Add(timeout))
	}
	if err := c.tls.HandshakeContext(ctx); err != nil {
		reason := err.Error()
		if re, ok := err.(tls.RecordHeaderError); ok && re.Conn != nil && looksLikeHTTP(re.RecordHeader) {
			_, _ = io.WriteString(re.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
			_ = re.Conn.Close()
			reason = "client sent an HTTP request to an HTTPS server"
		}
		if failed := c.server.HandshakeFailed; failed != nil {
			failed(c, reason)
		}
		return false
	}
	_ = c.SetWriteDeadline(time.Time{})
	_ = c.SetReadDeadline(after(c.server.header())) // it has run since before the handshake
	c.state = c.tls.ConnectionState()
	c.request.TLS = &c.state
	return true
}

// agreed prepares for the protocol that ALPN has chosen. It returns false for one that
// net/http closes the connection for.
func (c *TLSConn) agreed() bool {
	switch c.state.NegotiatedProtocol {
	case "", "http/1.0", "http/1.1":
		c.alpn = alpnHTTP1
		return true
	case "h2":
		c.alpn = alpnHTTP2
		return c.permitsHTTP2()
	}
	return false
}

// permitsHTTP2 reports whether the encryption is good enough for HTTP/2 (RFC 9113, section
// 9.2). If not, it says so to the client, as net/http does.
func (c *TLSConn) permitsHTTP2() bool {
	const inadequateSecurity = "\x00\x00\x08\x07\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x0c"
	if c.state.Version >= tls.VersionTLS13 || c.state.Version == tls.VersionTLS12 && slices.Contains(suitesOfHTTP2, c.state.CipherSuite) {
		return true
	}
	_, _ = io.WriteString(c.tls, inadequateSecurity)
	return false
}

// suitesOfHTTP2 are the cipher suites of TLS 1.2 in Go that RFC 9113, appendix A, does not
// prohibit.
var suitesOfHTTP2 = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// looksLikeHTTP reports whether the first bytes of a connection are those of an HTTP request
// without TLS.
func looksLikeHTTP(b [5]byte) bool {
	switch string(b[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		return true
	}
	return false
}

// handshake is the time for a handshake: the least of the timeouts, as in net/http.
func (t *Timeouts) handshake() (least time.Duration) {
	for _, d := range [...]time.Duration{t.header(), t.Request, t.Response} {
		if d > 0 && (least <= 0 || d < least) {
			least = d
		}
	}
	return least
}

// Interface guards
var (
	_ net.Conn                                           = (*TLSConn)(nil)
	_ interface{ ConnectionState() tls.ConnectionState } = (*TLSConn)(nil)
)
