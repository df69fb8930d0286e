package accesslog

import (
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Log writes the access log of a server.
type Log struct {
	logger *zap.Logger
	// config returns how the server logs, or nil if that is not configured. The server itself is no field: see
	// judge.HTTPServer.
	config func() *caddyhttp.ServerLogConfig
}

// New returns the access log of a server of this configuration.
func New(ctx caddy.Context, server *caddyhttp.Server) *Log {
	return &Log{ctx.Logger(new(caddyhttp.App)).Named("log.access"), func() *caddyhttp.ServerLogConfig { return server.Logs }}
}

// Response is what the client got.
type Response struct {
	Status int
	Header http.Header
	Size   int // of the body
	// Read is how many bytes of the request's body were read.
	Read     int
	Duration time.Duration
}

// Write writes the line that Caddy would write for a request that PrepareRequest has prepared,
// with the share that it stands for in the field `sampled`. A site that has no access log gets
// its lines under http.log.access.
func (l *Log) Write(r *http.Request, a *Response, share Share) {
	level := zapcore.InfoLevel
	if a.Status >= 500 {
		level = zapcore.ErrorLevel
	}
	config := l.config()
	credentials := config != nil && config.ShouldLogCredentials
	var fields []zapcore.Field
	for _, name := range loggerNames(config, r.Host) {
		logger := l.logger
		if name != "" {
			logger = logger.Named(name)
		}
		entry := logger.Check(level, "handled request")
		if entry == nil {
			continue
		}
		if fields == nil {
			fields = []zapcore.Field{
				zap.Object("request", caddyhttp.LoggableHTTPRequest{Request: r, ShouldLogCredentials: credentials}),
				zap.Int("bytes_read", a.Read),
				zap.String("user_id", ""),
				zap.Duration("duration", a.Duration),
				zap.Int("size", a.Size),
				zap.Int("status", a.Status),
				zap.Object("resp_headers", caddyhttp.LoggableHTTPHeader{Header: a.Header, ShouldLogCredentials: credentials}),
				zap.String("sampled", share.text),
			}
		}
		entry.Write(fields...)
	}
}

// loggerNames are the names under http.log.access for a host, as Caddy finds them; "" is
// http.log.access itself.
func loggerNames(config *caddyhttp.ServerLogConfig, host string) []string {
	if config == nil {
		return []string{""}
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(host)
	if names, ok := config.LoggerNames[host]; ok {
		return names
	}
	labels := strings.Split(host, ".")
	for i := range labels {
		if labels[i] == "" {
			continue
		}
		labels[i] = "*"
		if names, ok := config.LoggerNames[strings.Join(labels, ".")]; ok {
			return names
		}
	}
	return []string{config.DefaultLoggerName}
}
