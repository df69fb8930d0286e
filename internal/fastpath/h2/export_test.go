package h2

import "golang.org/x/net/http2/hpack"

// Lay lays out a request that has these fields. False: only the server may read it.
func (c *Conn) Lay(fields []hpack.HeaderField) bool { return c.lay(&head{fields: fields}) }

// Fields yields the header fields of the request that was laid out last.
func (c *Conn) Fields(yield func(name, value string) bool) { c.request.Fields(yield) }

// Kept is how many fields the connection has memory for, and how many bytes else it keeps of requests.
func (c *Conn) Kept() (fields, bytes int) {
	for _, f := range c.fields[:cap(c.fields)] {
		bytes += len(f.Name) + len(f.Value)
	}
	for _, f := range c.blocks.fields[:cap(c.blocks.fields)] {
		bytes += len(f.Name) + len(f.Value)
	}
	c.Fields(func(name, value string) bool { bytes += len(name) + len(value); return true })
	return cap(c.fields) + cap(c.blocks.fields), bytes + len(c.request.Target) + cap(c.pass) + c.blocks.encoded.Cap()
}
