// Package fastpath answers requests at the connection, before net/http reads them,
// and shares each connection with net/http for all others.
//
// A [Conn] stands between net/http and a connection. It frames each request itself:
// where it begins and where it ends. What it can frame and a [Judge] answers is
// answered there; any other request is lent to net/http, that one and not a byte
// more, and the connection comes back when net/http says that it is idle again. What
// cannot be framed beyond doubt is left to net/http, with all that follows on that
// connection, for good.
//
// The package knows net/http and nothing else: no Caddy, no sale.
package fastpath
