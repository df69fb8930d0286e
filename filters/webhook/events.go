package webhook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
)

// DefaultMaxEvents bounds the events of one webhook where nothing else is said. GoCardless sends up
// to 250.
const DefaultMaxEvents = 256

// EventList says where a webhook has several events: in an array of its body.
type EventList struct {
	// Path leads to the array through the members of objects, such as data.events. Empty: the body is
	// the array.
	Path string
	// Member is the member of each element that is the event. Empty: the element is the event.
	Member string
	// Min and Max bound the events. Defaults: 0 and DefaultMaxEvents.
	Min, Max int
}

// name is how messages name the array.
func (l *EventList) name() string { return cmp.Or(l.Path, "body") }

// Events returns the events of a body, each as a JSON object. The error is a *Fault.
func (l *EventList) Events(body []byte) ([]json.RawMessage, error) {
	list, err := l.array(body)
	if err != nil {
		return nil, err
	}
	if n, most := len(list), cmp.Or(l.Max, DefaultMaxEvents); n < l.Min || n > most {
		return nil, unreadable("the array %s has %d events: there may be %d to %d", l.name(), n, l.Min, most)
	}
	for i, element := range list {
		if list[i] = l.event(element); list[i] == nil {
			return nil, unreadable("element %d of the array %s is no event: %s", i, l.name(), l.wants())
		}
	}
	return list, nil
}

// array finds the array. Maps are used because structs take names in any case, and some letters for
// others.
func (l *EventList) array(body []byte) (list []json.RawMessage, err error) {
	at := json.RawMessage(bytes.TrimPrefix(body, []byte("\ufeff")))
	if !json.Valid(at) {
		return nil, unreadable("the body is not valid JSON: it must have its events in the array %s", l.name())
	}
	for name := range strings.SplitSeq(l.Path, ".") {
		var object map[string]json.RawMessage
		if l.Path == "" {
			break
		}
		if json.Unmarshal(at, &object) != nil || object[name] == nil {
			return nil, unreadable("the body has no %s, which must be the array of its events", l.Path)
		}
		at = object[name]
	}
	if json.Unmarshal(at, &list) != nil || list == nil {
		return nil, unreadable("the %s is no array: it must have the events of the webhook", l.name())
	}
	return list, nil
}

// event returns the event of an element; nil: there is none.
func (l *EventList) event(element json.RawMessage) json.RawMessage {
	if l.Member != "" {
		var object map[string]json.RawMessage
		if json.Unmarshal(element, &object) != nil {
			return nil
		}
		element = object[l.Member]
	}
	if len(element) == 0 || element[0] != '{' {
		return nil
	}
	return element
}

func (l *EventList) wants() string {
	if l.Member != "" {
		return "it must be an object whose " + l.Member + " is an object"
	}
	return "it must be an object"
}
