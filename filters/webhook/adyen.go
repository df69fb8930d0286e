package webhook

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"
)

// AdyenSigned are the fields of an item that Adyen signs, as paths, in their order. Everything
// else in a notification can be changed on its way: decide nothing by it.
var AdyenSigned = []string{
	"pspReference", "originalReference", "merchantAccountCode", "merchantReference", "amount.value", "amount.currency", "eventCode", "success",
}

const maxDepth = 32

// adyen verifies the signature of each item. It signs values, and not the bytes of the body, so that
// a Description does not describe it.
type adyen struct{ *algorithm }

// Adyen verifies Adyen's notifications. The key is in hex.
func Adyen(key string) (Verifier, error) {
	d := Description{Algorithm: "hmac-sha256", Key: key, KeyEncoding: "hex", leastKey: 16}
	a, err := d.algorithm()
	if err != nil {
		return nil, errors.New("the key is no HMAC key of Adyen's: 64 hexadecimal digits")
	}
	return &adyen{a}, nil
}

// Look accepts all headers: Adyen signs in the body.
func (a *adyen) Look(*Delivery, time.Time) error { return nil }

func (a *adyen) Verify(m *Delivery, _ time.Time) error {
	items, err := adyenItems(m.Body)
	if err != nil {
		return err
	}
	for _, item := range items {
		if err := a.item(item); err != nil {
			return err
		}
	}
	return nil
}

// AdyenEvents is how a notification of Adyen's has its items. Adyen sends one where it sends JSON.
var AdyenEvents = EventList{Path: "notificationItems", Member: "NotificationRequestItem", Min: 1, Max: 100}

// adyenItems returns the items of a notification, each as a JSON object. The error is a *Fault.
// It refuses a notification that has a name twice: what is signed are the values, so that
// another reader could take the other value.
func adyenItems(body []byte) ([]json.RawMessage, error) {
	if err := checkNames(body); err != nil {
		return nil, err
	}
	return AdyenEvents.Events(body)
}

func (a *adyen) item(raw json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // as it is written
	var item map[string]any
	if err := d.Decode(&item); err != nil {
		return unreadable("an item of the notification cannot be read")
	}
	more, _ := item["additionalData"].(map[string]any)
	text, _ := more["hmacSignature"].(string)
	if text == "" {
		return unreadable("additionalData.hmacSignature is missing: generate an HMAC key for this webhook in Adyen's Customer Area")
	}
	signature, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return unreadable("additionalData.hmacSignature is no base64")
	}
	fields := make([]string, len(AdyenSigned))
	for i, path := range AdyenSigned {
		if fields[i], err = signedText(item, path); err != nil {
			return err
		}
	}
	for i, field := range fields {
		// with a colon in two of them the same text could be split in another way
		if i != 3 && strings.Contains(field, ":") {
			return unreadable("a signed field other than merchantReference has a colon, so that what was signed is not clear")
		}
	}
	return a.verify([][]byte{[]byte(strings.Join(fields, ":"))}, [][]byte{signature})
}

// signedText returns the text of a signed field; one that is absent counts as empty.
func signedText(item map[string]any, path string) (string, error) {
	of, name, nested := strings.Cut(path, ".")
	value := item[of]
	if nested {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		if path != "amount.value" {
			return v, nil
		}
	case json.Number:
		if path == "amount.value" {
			return v.String(), nil
		}
	}
	return "", unreadable("the signed field %s is of another type than Adyen sends: success is a string, amount.value a number", path)
}

// checkNames refuses a document that has a name twice in one object, also in another case:
// readers differ in which one they take.
func checkNames(body []byte) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var open []map[string]bool // names of the objects around; nil: an array
	name := false              // a name comes next
	for {
		token, err := d.Token()
		if err == io.EOF && len(open) == 0 {
			return nil
		} else if err != nil {
			return unreadable("the body is not valid JSON")
		}
		switch token {
		case json.Delim('{'):
			open, name = append(open, map[string]bool{}), true
		case json.Delim('['):
			open, name = append(open, nil), false
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
			name = len(open) > 0 && open[len(open)-1] != nil
		default:
			if text, ok := token.(string); ok && name {
				names, folded := open[len(open)-1], strings.ToLower(text)
				if names[folded] {
					return unreadable("the name %.40q is there twice in one object", text)
				}
				names[folded], name = true, false
				continue
			}
			name = len(open) > 0 && open[len(open)-1] != nil
		}
		if len(open) > maxDepth {
			return unreadable("the body nests deeper than %d levels", maxDepth)
		}
	}
}
