package sale

// IsName says whether a text can name something in a sale: a SKU, a region, a
// reservation, a ref of the shop. A name has 1 to MaxName printable ASCII characters
// and no space.
func IsName(text string) bool {
	if text == "" || len(text) > MaxName {
		return false
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}
