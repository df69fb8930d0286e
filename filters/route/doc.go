// Package route computes how servers may read the target of a request, and the names of its parameters.
//
// Two servers on the path of a request often read one target as two routes: one decodes
// it twice, one cuts parameters, one resolves dots. A gate that checks only one reading
// can be bypassed by another. So the guard, the gates and the fast path make the same
// calls, in this order:
//
//	path, query, shape, why := route.Check(method, target) // one scan: do servers differ?
//	all, ok := route.Readings(path)                        // the paths they may read
package route
