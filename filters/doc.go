// Package filters decides on an attempt without the network: whether it comes too soon
// after others, which sale it is for, whether that sale sells, and whether there is
// room for one more attempt. It depends on neither Caddy nor Redis.
package filters
