// Package fastpath answers requests at the connection, before net/http reads them,
// and shares each connection with net/http for all others.
//
// A [Conn] lies between net/http and a connection. It frames each request itself: where
// it begins and where it ends. If it can frame a request and a [Judge] answers it, the
// answer is written there. Any other request is delegated to net/http, and not a byte more;
// the connection comes back when net/http reports it as idle again. A request that
// cannot be framed with certainty is left to net/http, together with everything that
// follows on the connection.
//
// Connections that speak HTTP/2 are those of package h2 below.
//
// The package depends on net/http only, not on Caddy or the rest of Stockgate.
package fastpath
