package learn

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const sealed = "Written by caddy stockgate learn, as "

// Seal puts a first line before a text by which Unedited knows that it is as it was written. comment begins a
// line that is one: # or <!--.
func Seal(comment, text string) string {
	end := ""
	if comment == "<!--" {
		end = " -->"
	}
	return comment + " " + sealed + sum(text) + end + "\n" + text
}

func sum(text string) string {
	hash := sha256.Sum256([]byte(text))
	return hex.EncodeToString(hash[:6])
}

// Unedited reports whether a file is as Seal has made it.
func Unedited(file string) bool {
	first, text, _ := strings.Cut(file, "\n")
	return strings.Contains(first, sealed+sum(text))
}

// SealedAs reports whether a file, edited or not, was written with this text.
func SealedAs(file, text string) bool {
	first, _, _ := strings.Cut(file, "\n")
	return strings.Contains(first, sealed+sum(text))
}
