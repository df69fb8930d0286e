package adminapi

import "fmt"

// The levels of findings.
const (
	LevelOK      = "ok"
	LevelWarning = "warning" // it sells, and something should be looked at
	LevelError   = "error"   // a promise is broken, or will be
)

// Finding is one thing that was looked at.
type Finding struct {
	Level string `json:"level"`
	// Check is what was looked at: one word.
	Check string `json:"check"`
	// Text says how it is, and what to do about it, in one sentence.
	Text string `json:"text"`
}

// Diagnosis answers GET doctor.
type Diagnosis struct {
	Findings []Finding `json:"findings"`
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
}

// Add adds a finding and counts it.
func (d *Diagnosis) Add(level, check, format string, args ...any) {
	d.Findings = append(d.Findings, Finding{level, check, fmt.Sprintf(format, args...)})
	switch level {
	case LevelError:
		d.Errors++
	case LevelWarning:
		d.Warnings++
	}
}
