package h2

import "golang.org/x/net/http2/hpack"

// Lay lays out a request that has these fields. False: only the server may read it.
func (c *Conn) Lay(fields []hpack.HeaderField) bool { return c.lay(&head{fields: fields}) }

// Fields yields the header fields of the request that was laid out last.
func (c *Conn) Fields(yield func(name, value string) bool) { c.request.Fields(yield) }
