// Package filters gives the verdicts on an attempt that need no network: whether
// it comes too soon after others, which sale it is about, whether that one sells,
// and whether there is room for one more attempt. It knows neither Caddy nor Redis.
package filters
