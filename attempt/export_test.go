package attempt

// ScanJSON tells whether a body passes the scanner when no source reads it but
// an object is wanted.
func ScanJSON(body []byte) bool {
	s := scanner{data: body, scratch: new(scratch)}
	return s.document(nil, true)
}

// MaxDepth is how deep a JSON body may nest.
const MaxDepth = maxDepth
