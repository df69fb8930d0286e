package judge

import (
	"context"
	"net"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// HTTPServer is a *caddyhttp.Server as gates use it. It is an interface because the compiler reads all types that
// a package reaches: with Caddy's server among the fields of a judge, each package that has a judge would compile
// the generic types of HTTP/3 and of OpenTelemetry's metrics again. CaddyServer returns the server itself.
type HTTPServer interface {
	http.Handler
	Name() string
	RegisterConnContext(func(context.Context, net.Conn) context.Context)
	RegisterOnShutdown(func())
}

// Server is the server that the gate belongs to; nil: none.
func (j *Judge) Server() HTTPServer { return j.server }

// CaddyServer is the server that a gate belongs to; nil: none.
func CaddyServer(j *Judge) *caddyhttp.Server {
	server, _ := j.server.(*caddyhttp.Server)
	return server
}

// HasErrorRoutes reports whether routes of the server answer errors.
func (j *Judge) HasErrorRoutes() bool {
	server := CaddyServer(j)
	return server != nil && server.Errors != nil && len(server.Errors.Routes) > 0
}
