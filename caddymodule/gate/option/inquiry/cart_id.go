package inquiry

import (
	"encoding/json"

	"github.com/stockgate/stockgate/internal/jsonpath"
)

// CartIDs returns the ids at paths in what the shop says about a cart, by their paths; one that is null, empty or
// missing is left out. fault says why they cannot be read; empty: they can.
func CartIDs(document []byte, paths []string) (ids map[string]string, fault string) {
	if !json.Valid(document) {
		return nil, "the answer: it is not a JSON object"
	}
	cart, ok := decode(document).(map[string]any)
	if !ok {
		return nil, "the answer: it is not a JSON object"
	}
	ids = make(map[string]string, len(paths))
	read := jsonpath.ElementsOf(paths...)
	for _, path := range paths {
		found, whole := read.At(cart, path)
		if !whole {
			return nil, "lookup." + path + ": an array on the way has more elements than are read"
		}
		switch id := found.(type) {
		case nil:
		case string:
			ids[path] = id
		case json.Number:
			ids[path] = id.String()
		default:
			return nil, "lookup." + path + ": it is neither a string nor a number"
		}
	}
	return ids, ""
}
