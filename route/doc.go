// Package route tells how servers may read the target of a request.
//
// Two servers on one way often take one target for two routes: one decodes it twice,
// one cuts parameters, one resolves dots. A gate that looks at one reading only can be
// avoided by another. So the guard, the gates and the fast path ask the same questions
// here, in this order:
//
//	path, query, shape, why := route.Check(method, target) // one scan: do servers differ?
//	all, ok := route.Readings(path)                        // what they make of it
package route
