// Package attempt reads one attempt to buy from an HTTP request, strictly.
//
// The gate decides by what it reads here, and the shop behind it reads the same request
// again with another parser. Anything that two parsers could read differently is therefore
// refused as malformed: a name that appears twice, or in another spelling that some
// framework takes for the same name, or in the query and the body at once; a number beyond
// what a double holds; a body that is not what its Content-Type says; headers that make a
// proxy drop others.
//
// Each request takes four calls:
//
//	reader.Check(r)                  // headers, before anything is read
//	body, … := reader.ReadBody(r)    // whole, and put back for the backend
//	attempt, … := reader.Read(r, body, env)
//	StripMethodOverride(r.Header)    // before the request goes on
//
// A Reader is compiled once from a Spec and is safe for concurrent use. It
// never changes the request; only ReadBody and the Strip functions do.
package attempt
