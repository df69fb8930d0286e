package scope

import (
	"bytes"
	"encoding/json"
)

// mostOperations bounds a list of operations in one request.
const mostOperations = 100

// isList reports whether JSON is an array.
func isList(raw []byte) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '['
}

// judgeList judges a list of operations. Servers run all of them: it is another request if each is one.
func judgeList(raw []byte, judge func(raw []byte) Judgement) (result Judgement) {
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil || len(all) > mostOperations {
		return unclear(CauseBody)
	}
	for _, one := range all {
		found := judge(one)
		switch found.Verdict {
		case Other:
			result.Mutates = result.Mutates || found.Mutates
		case Unclear:
			return found
		default:
			return unclear(CauseBatch)
		}
	}
	return result
}
